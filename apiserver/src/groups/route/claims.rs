//! Who holds a host: the claims of all routes, by host, oldest first.
//!
//! The namespace of a host's oldest route owns the host. Routes of that namespace share it as long as their paths
//! differ, and a passthrough route shares it with no other route that has TLS; of two that cannot share, the older
//! holds. So it depends on older claims alone whether a claim holds, and the claims can be judged in order of age.
//! (`openshift/router/pkg/router/controller/{unique_host,hostindex}`, with namespace ownership `Strict`.)
//!
//! Age is the creation time; of the same second, the revision of the creation. The real router takes the uid there,
//! which is random: the revision is the order of arrival, and as deterministic.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::store::{Key, Revision};

/// What kind of TLS a claim has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// No TLS.
    Plain,
    /// The router ends TLS: paths can be told apart.
    Terminated,
    /// The router sees only the host.
    Passthrough,
}

/// Claim of one route to one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// Creation time in seconds, then revision of the creation.
    pub(super) age: (i64, Revision),
    pub(super) key: Key,
    pub(super) path: Box<str>,
    pub(super) transport: Transport,
}

impl Claim {
    /// The namespace in the key `resource.group/namespace/name`.
    fn namespace(&self) -> &str {
        self.key.split('/').nth(1).unwrap_or("")
    }
}

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It holds.
    Holds,
    /// An older route of the same namespace, named here, is in its way.
    Taken(Key),
    /// Another namespace owns the host.
    Elsewhere,
}

/// All claims.
#[derive(Debug, Default)]
pub(super) struct Claims {
    hosts: HashMap<Box<str>, Vec<Claim>>,
}

impl Claims {
    /// The verdict on `claim` if it were made now, in place of what its route claims of the host.
    pub(super) fn verdict(&self, host: &str, claim: &Claim) -> Verdict {
        let older = self
            .of(host)
            .iter()
            .filter(|other| other.key != claim.key)
            .take_while(|other| other.age < claim.age)
            .chain(std::iter::once(claim));
        judge(older).pop().map_or(Verdict::Holds, |(_, verdict)| verdict)
    }

    /// The other routes whose verdict changes when the route `key` claims `claim` of the host from now on.
    pub(super) fn affected(&self, host: &str, key: &str, claim: Option<&Claim>) -> Vec<Key> {
        let now = self.of(host);
        let at = now.iter().position(|other| &*other.key == key);
        if at.map(|at| &now[at]) == claim {
            return Vec::new();
        }
        // Claims older than both are judged without looking at them.
        let place = claim.map_or(now.len(), |claim| now.partition_point(|other| other.age < claim.age));
        if at.unwrap_or(now.len()).min(place) == now.len() {
            return Vec::new();
        }
        let mut then: Vec<&Claim> = now.iter().filter(|other| &*other.key != key).collect();
        if let Some(claim) = claim {
            then.insert(then.partition_point(|other| other.age < claim.age), claim);
        }
        let before: HashMap<&str, Verdict> =
            judge(now.iter()).into_iter().map(|(claim, verdict)| (&*claim.key, verdict)).collect();
        judge(then.into_iter())
            .into_iter()
            .filter(|(claim, verdict)| &*claim.key != key && before.get(&*claim.key) != Some(verdict))
            .map(|(claim, _)| Arc::clone(&claim.key))
            .collect()
    }

    /// Makes a claim, in place of what its route claims of the host.
    pub(super) fn set(&mut self, host: &str, claim: Claim) {
        self.remove(host, &claim.key);
        match self.hosts.get_mut(host) {
            Some(claims) => {
                let place = claims.partition_point(|other| other.age < claim.age);
                claims.insert(place, claim);
            }
            None => {
                self.hosts.insert(host.into(), vec![claim]);
            }
        }
    }

    /// Gives up what a route claims of the host.
    pub(super) fn remove(&mut self, host: &str, key: &str) {
        let Some(claims) = self.hosts.get_mut(host) else { return };
        claims.retain(|claim| &*claim.key != key);
        if claims.is_empty() {
            self.hosts.remove(host);
        }
    }

    fn of(&self, host: &str) -> &[Claim] {
        self.hosts.get(host).map_or(&[], Vec::as_slice)
    }
}

/// Judges the claims of one host, given oldest first.
fn judge<'a>(claims: impl Iterator<Item = &'a Claim>) -> Vec<(&'a Claim, Verdict)> {
    let mut owner = None;
    let mut paths: HashMap<&str, &Claim> = HashMap::new();
    let mut transports: HashSet<bool> = HashSet::new();
    let mut youngest: Option<&Claim> = None;
    let mut verdicts = Vec::with_capacity(claims.size_hint().0);
    for claim in claims {
        if *owner.get_or_insert(claim.namespace()) != claim.namespace() {
            verdicts.push((claim, Verdict::Elsewhere));
            continue;
        }
        let blocked = match claim.transport {
            Transport::Plain => false,
            Transport::Terminated => transports.contains(&true),
            Transport::Passthrough => !transports.is_empty(),
        };
        let rival = paths.get(&*claim.path).copied().or(if blocked { youngest } else { None });
        if let Some(rival) = rival {
            verdicts.push((claim, Verdict::Taken(Arc::clone(&rival.key))));
            continue;
        }
        paths.insert(&claim.path, claim);
        youngest = Some(claim);
        if claim.transport != Transport::Plain {
            transports.insert(claim.transport == Transport::Passthrough);
        }
        verdicts.push((claim, Verdict::Holds));
    }
    verdicts
}
