//! What is the cluster's own: its id, the versions it was, its domain and its address.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::version::OpenShiftVersion;
use crate::failure::Failure;
use crate::pki::IngressCertificate;

/// What is decided once and kept in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installed {
    /// A random UUID.
    pub(crate) cluster_id: String,
    /// The versions that the cluster was, the newest first; never empty.
    pub(crate) history: Vec<Release>,
}

/// A version that the cluster was, from a time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Release {
    pub(crate) version: OpenShiftVersion,
    pub(crate) since: jiff::Timestamp,
}

impl Installed {
    /// What `up` is to install: what there is already, moved on to the version that is asked for. Times are in whole seconds.
    pub(crate) fn next(before: Option<Self>, wanted: Option<OpenShiftVersion>) -> Result<Self> {
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
        let Some(mut installed) = before else {
            let version = wanted.unwrap_or(OpenShiftVersion::newest());
            let cluster_id = uuid::Uuid::new_v4().to_string();
            return Ok(Self { cluster_id, history: vec![Release { version, since: now }] });
        };
        let current = installed.version()?;
        match wanted {
            Some(wanted) if wanted < current => Err(Failure::new(
                format!("the cluster is OpenShift {current}, and OpenShift does not go back to {wanted}"),
                "`picoshift down --purge`, then `picoshift up --openshift-version` starts afresh",
            )
            .into()),
            Some(version) if version > current => {
                installed.history.insert(0, Release { version, since: now });
                Ok(installed)
            }
            _ => Ok(installed),
        }
    }

    /// The version that the cluster is.
    pub(crate) fn version(&self) -> Result<OpenShiftVersion> {
        Ok(self.history.first().context("the settings name no version of OpenShift")?.version)
    }
}

/// What the objects are completed with.
#[derive(Clone)]
pub(crate) struct Facts {
    version: OpenShiftVersion,
    pub(crate) installed: Installed,
    ingress_domain: String,
    api_url: String,
    ingress: IngressCertificate,
}

impl Facts {
    /// The facts of a cluster.
    pub(crate) fn new(
        installed: Installed,
        ingress_domain: &str,
        api_url: &str,
        ingress: IngressCertificate,
    ) -> Result<Self> {
        let version = installed.version()?;
        Ok(Self {
            version,
            installed,
            ingress_domain: ingress_domain.to_owned(),
            api_url: api_url.to_owned(),
            ingress,
        })
    }

    /// The version that the cluster is.
    pub(crate) fn version(&self) -> OpenShiftVersion {
        self.version
    }

    /// When the cluster became what it is.
    pub(crate) fn since(&self) -> String {
        self.installed.history.first().map(|release| release.since.to_string()).unwrap_or_default()
    }

    /// When the cluster was made.
    fn born(&self) -> String {
        self.installed.history.last().map(|release| release.since.to_string()).unwrap_or_default()
    }

    /// Completes the texts of an object: `$(name)` becomes what that name stands for.
    pub(crate) fn fill(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains("$(") => {
                for (name, fact) in self.named() {
                    if text.contains(name) {
                        *text = text.replace(name, &fact);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill(field)),
            _ => {}
        }
    }

    fn named(&self) -> [(&'static str, String); 12] {
        let base = self.ingress_domain.strip_prefix("apps.").unwrap_or(&self.ingress_domain);
        let name = base.split('.').next().unwrap_or_default();
        let id = &self.installed.cluster_id;
        [
            ("$(clusterID)", id.clone()),
            ("$(version)", self.version.to_string()),
            ("$(stream)", self.version.stream()),
            ("$(ingressDomain)", self.ingress_domain.clone()),
            ("$(baseDomain)", base.to_owned()),
            ("$(clusterName)", name.to_owned()),
            ("$(infrastructureName)", format!("{name}-{}", id.get(..5).unwrap_or_default())),
            ("$(apiURL)", self.api_url.clone()),
            ("$(born)", self.born()),
            // As a Secret has them.
            (
                "$(ingressCertificate)",
                STANDARD.encode(format!("{}{}", self.ingress.certificate, self.ingress.authority)),
            ),
            ("$(ingressKey)", STANDARD.encode(&self.ingress.key)),
            ("$(ingressAuthority)", self.ingress.authority.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(text: &str) -> OpenShiftVersion {
        text.parse().unwrap()
    }

    #[test]
    fn the_id_is_made_once() {
        let first = Installed::next(None, None).unwrap();
        assert!(uuid::Uuid::parse_str(&first.cluster_id).is_ok());
        assert_eq!(Installed::next(Some(first.clone()), None).unwrap(), first);
        assert_ne!(Installed::next(None, None).unwrap().cluster_id, first.cluster_id);
    }

    #[test]
    fn versions_go_on_and_not_back() {
        let first = Installed::next(None, Some(version("4.18"))).unwrap();
        let second = Installed::next(Some(first.clone()), Some(version("4.20.1"))).unwrap();
        let versions: Vec<_> = second.history.iter().map(|release| release.version.to_string()).collect();
        assert_eq!(versions, ["4.20.1", "4.18.0"]);
        assert_eq!(second.cluster_id, first.cluster_id);
        assert_eq!(Installed::next(Some(second.clone()), Some(version("4.20.1"))).unwrap(), second);
        assert!(Installed::next(Some(second), Some(version("4.19"))).is_err());
    }

    #[test]
    fn texts_are_completed() {
        let installed = Installed::next(None, Some(version("4.20"))).unwrap();
        let ingress = IngressCertificate { certificate: "a".into(), key: "b".into(), authority: "c".into() };
        let facts = Facts::new(installed, "apps.lab.example.org", "https://127.0.0.1:6443", ingress).unwrap();
        let mut value = json!({"a": ["$(ingressDomain) $(stream)", 1], "b": "$(baseDomain)", "c": "$(clusterName)", "d": "$(x)"});
        facts.fill(&mut value);
        assert_eq!(
            value,
            json!({"a": ["apps.lab.example.org 4.20", 1], "b": "lab.example.org", "c": "lab", "d": "$(x)"})
        );
    }
}
