//! What RBAC says, whole: roles with their rules and bindings with their subjects.
//!
//! In: the objects as the watches of `groups/project/feed` show them, so that nothing is watched twice. Out: a
//! ClusterRole's rules for token scopes, who can do something, and what somebody can do. It decides nothing about
//! requests: that is kube-apiserver's. Only answers that *are* about RBAC come from here.

mod answers;
pub mod rule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Deserialize;

pub use answers::{Subjects, compacted};
pub use rule::Rule;

/// `subjects[]` of a binding, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SubjectDoc {
    /// `User`, `Group` or `ServiceAccount`.
    #[serde(default)]
    pub kind: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Namespace of a service account.
    #[serde(default)]
    pub namespace: String,
}

/// `roleRef` of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    #[serde(default)]
    pub kind: String,
    /// Name of the role.
    #[serde(default)]
    pub name: String,
}

/// A binding: which role it gives to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleBinding {
    /// The role.
    pub role: RoleRef,
    /// Whom it is given to.
    pub subjects: Vec<SubjectDoc>,
}

/// Objects by namespace (empty for cluster scope) and name.
type Named<T> = HashMap<Arc<str>, BTreeMap<Arc<str>, T>>;

/// Collections of one kind: namespaced objects and those of the cluster.
#[derive(Debug)]
struct Collection<T> {
    objects: Named<T>,
    /// Whether the objects of the cluster were listed, and the namespaced ones.
    cluster_listed: bool,
    namespaced_listed: bool,
}

impl<T> Default for Collection<T> {
    fn default() -> Self {
        Self { objects: HashMap::new(), cluster_listed: false, namespaced_listed: false }
    }
}

impl<T> Collection<T> {
    fn set(&mut self, namespace: &str, name: &str, object: Option<T>) {
        let Some(object) = object else {
            if let Some(named) = self.objects.get_mut(namespace) {
                named.remove(name);
                if named.is_empty() {
                    self.objects.remove(namespace);
                }
            }
            return;
        };
        self.objects.entry(namespace.into()).or_default().insert(name.into(), object);
    }

    fn reset(&mut self, cluster: bool, all: impl IntoIterator<Item = (Arc<str>, Arc<str>, T)>) {
        self.objects.retain(|namespace, _| namespace.is_empty() != cluster);
        for (namespace, name, object) in all {
            self.objects.entry(namespace).or_default().insert(name, object);
        }
        if cluster {
            self.cluster_listed = true;
        } else {
            self.namespaced_listed = true;
        }
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&T> {
        self.objects.get(namespace)?.get(name)
    }

    fn all_in(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.objects.get(namespace).into_iter().flat_map(BTreeMap::values)
    }
}

#[derive(Debug, Default)]
struct State {
    roles: Collection<Arc<[Rule]>>,
    bindings: Collection<Arc<RoleBinding>>,
}

/// All of RBAC; see the module.
#[derive(Debug, Default)]
pub struct Rbac(RwLock<State>);

impl Rbac {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A Role, or a ClusterRole where the namespace is empty; `None` when it is gone.
    pub fn set_role(&self, namespace: &str, name: &str, rules: Option<Arc<[Rule]>>) {
        self.0.write().roles.set(namespace, name, rules);
    }

    /// All ClusterRoles (`cluster`), or all Roles.
    pub fn reset_roles(
        &self,
        cluster: bool,
        all: impl IntoIterator<Item = (Arc<str>, Arc<str>, Arc<[Rule]>)>,
    ) {
        self.0.write().roles.reset(cluster, all);
    }

    /// A RoleBinding, or a ClusterRoleBinding where the namespace is empty; `None` when it is gone.
    pub fn set_binding(&self, namespace: &str, name: &str, binding: Option<Arc<RoleBinding>>) {
        self.0.write().bindings.set(namespace, name, binding);
    }

    /// All ClusterRoleBindings (`cluster`), or all RoleBindings.
    pub fn reset_bindings(
        &self,
        cluster: bool,
        all: impl IntoIterator<Item = (Arc<str>, Arc<str>, Arc<RoleBinding>)>,
    ) {
        self.0.write().bindings.reset(cluster, all);
    }

    /// Whether all four collections were listed.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let State { roles, bindings } = &*self.0.read();
        roles.cluster_listed
            && roles.namespaced_listed
            && bindings.cluster_listed
            && bindings.namespaced_listed
    }

    /// Whether ClusterRoles were listed.
    #[must_use]
    pub fn knows_cluster_roles(&self) -> bool {
        self.0.read().roles.cluster_listed
    }

    /// The rules of a ClusterRole; those that were aggregated into it are among them.
    #[must_use]
    pub fn cluster_role(&self, name: &str) -> Option<Arc<[Rule]>> {
        self.0.read().roles.get("", name).cloned()
    }
}
