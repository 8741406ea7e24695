//! Which requests go to our API server without a hop.

use std::collections::{BTreeMap, HashSet};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::args::{DirectGroups, ServiceName};

/// A group and a version of it.
type Version = (String, String);

/// Knows which group versions our API server serves, from APIServices.
#[derive(Debug)]
pub struct Direct {
    allowed: DirectGroups,
    service: ServiceName,
    services: Mutex<BTreeMap<String, Version>>,
    served: ArcSwap<HashSet<Version>>,
}

/// What an APIService says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiService {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Namespace and name of the Service; `None` for what kube-apiserver serves itself.
    pub service: Option<(String, String)>,
}

impl Direct {
    /// Nothing is served yet.
    #[must_use]
    pub fn new(allowed: DirectGroups, service: ServiceName) -> Self {
        Self { allowed, service, services: Mutex::default(), served: ArcSwap::default() }
    }

    /// These are all there are.
    pub fn replace(&self, services: Vec<ApiService>) {
        let mut known = self.services.lock();
        *known = services.into_iter().filter(|service| self.is_ours(service)).map(entry).collect();
        self.publish(&known);
    }

    /// One is there, or looks like this now.
    pub fn apply(&self, service: ApiService) {
        let mut known = self.services.lock();
        if self.is_ours(&service) {
            let (name, version) = entry(service);
            known.insert(name, version);
        } else {
            known.remove(&service.name);
        }
        self.publish(&known);
    }

    /// One is gone.
    pub fn remove(&self, name: &str) {
        let mut known = self.services.lock();
        known.remove(name);
        self.publish(&known);
    }

    fn is_ours(&self, service: &ApiService) -> bool {
        let allowed = match &self.allowed {
            DirectGroups::All => true,
            DirectGroups::None => false,
            DirectGroups::Only(groups) => groups.contains(&service.group),
        };
        let names = service.service.as_ref();
        allowed && names.is_some_and(|(n, name)| (n, name) == (&self.service.namespace, &self.service.name))
    }

    fn publish(&self, known: &BTreeMap<String, Version>) {
        self.served.store(std::sync::Arc::new(known.values().cloned().collect()));
    }

    /// Whether a request for this path is for our API server, beyond doubt. What kube-apiserver, which decodes and encodes
    /// again, would pass on as another path, is left to it.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix("/apis/") else { return false };
        let served = self.served.load();
        if served.is_empty() {
            return false;
        }
        let mut parts = rest.splitn(3, '/');
        let (Some(group), Some(version)) = (parts.next(), parts.next()) else { return false };
        let odd = |segment: &str| {
            matches!(segment, "" | "." | "..")
                || segment.as_bytes().windows(3).any(|three| {
                    three.eq_ignore_ascii_case(b"%2f")
                        || three.eq_ignore_ascii_case(b"%2e")
                        || three == b"%25"
                })
        };
        if parts.next().is_some_and(|tail| tail.split('/').any(odd)) {
            return false;
        }
        served.contains(&(group.to_owned(), version.to_owned()))
    }
}

fn entry(service: ApiService) -> (String, Version) {
    (service.name, (service.group, service.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(group: &str, name: &str) -> ApiService {
        ApiService {
            name: format!("v1.{group}"),
            group: group.to_owned(),
            version: "v1".to_owned(),
            service: Some(("ns".to_owned(), name.to_owned())),
        }
    }

    fn direct(allowed: DirectGroups) -> Direct {
        Direct::new(allowed, ServiceName { namespace: "ns".to_owned(), name: "ours".to_owned() })
    }

    #[test]
    fn only_what_our_server_serves_goes_there() {
        let all = direct(DirectGroups::All);
        let local = ApiService { service: None, ..service("apps", "") };
        all.replace(vec![service("route.openshift.io", "ours"), service("metrics.k8s.io", "other"), local]);
        for path in [
            "/apis/route.openshift.io/v1",
            "/apis/route.openshift.io/v1/routes",
            "/apis/route.openshift.io/v1/namespaces/a/routes/b%3Ac",
        ] {
            assert!(all.takes(path), "{path}");
        }
        for path in [
            "/apis/route.openshift.io",
            "/apis/route.openshift.io/v2/routes",
            "/apis/metrics.k8s.io/v1/x",
            "/apis/apps/v1/deployments",
            "//apis/route.openshift.io/v1/routes",
            "/apis/route.openshift.io/v1//routes",
            "/apis/route.openshift.io/v1/../../../api/v1/secrets",
            "/apis/route.openshift.io/v1/routes/a%2Fb",
            "/apis/route.openshift.io/v1/%2e%2e/x",
            "/apis/route.openshift.io/v1/routes/",
            "/apis/route%2Eopenshift.io/v1/routes",
            "/api/v1/secrets",
        ] {
            assert!(!all.takes(path), "{path}");
        }
        all.apply(service("route.openshift.io", "other"));
        assert!(!all.takes("/apis/route.openshift.io/v1/routes"));
        all.apply(service("route.openshift.io", "ours"));
        all.remove("v1.route.openshift.io");
        assert!(!all.takes("/apis/route.openshift.io/v1/routes"));
    }

    #[test]
    fn a_list_and_off_are_heeded() {
        let some = direct("user.openshift.io".parse().unwrap());
        let none = direct(DirectGroups::None);
        for direct in [&some, &none] {
            direct.replace(vec![service("route.openshift.io", "ours"), service("user.openshift.io", "ours")]);
            assert!(!direct.takes("/apis/route.openshift.io/v1/routes"));
        }
        assert!(some.takes("/apis/user.openshift.io/v1/users"));
        assert!(!none.takes("/apis/user.openshift.io/v1/users"));
    }
}
