//! What the index answers: what a viewer sees, at the cost of what is returned.

use std::collections::BTreeSet;
use std::sync::Arc;

use picoshift_machinery::UserInfo;
use picoshift_machinery::scope::{ALL_NAMESPACES, Scope};

use super::index::{Index, Key};
use super::rules::Names;
use super::subjects::{Limit, Subject, Viewer};
use crate::rest::Item;

impl Index {
    /// What token scopes let through: `user:full` and `user:list-projects` all, `role:NAME:NAMESPACE` its namespace
    /// (`*` all) when the ClusterRole shows namespaces without wildcards (`:!` at the end: with them), others nothing.
    #[must_use]
    pub(crate) fn limit(&self, scopes: &[String]) -> Limit {
        if scopes.is_empty() {
            return Limit::None;
        }
        let mut names = BTreeSet::new();
        for scope in scopes {
            match self.scope_namespace(scope) {
                Some(namespace) if namespace == ALL_NAMESPACES => return Limit::None,
                Some(namespace) => {
                    names.insert(namespace.into_boxed_str());
                }
                None => {}
            }
        }
        Limit::Only(names)
    }

    fn scope_namespace(&self, scope: &str) -> Option<String> {
        match scope.parse() {
            Ok(Scope::UserFull | Scope::UserListProjects) => Some(ALL_NAMESPACES.to_owned()),
            Ok(Scope::Role(scope)) => {
                let access = self.roles.get(&Key::new("", &scope.role))?;
                let shows = if scope.escalating { access.names == Names::All } else { access.scoped };
                shows.then_some(scope.namespace)
            }
            _ => None,
        }
    }

    /// A project by name, whoever asks.
    #[must_use]
    pub(crate) fn project(&self, name: &str) -> Option<&Arc<Item>> {
        self.namespaces.get(name)
    }

    /// All projects, whoever asks, sorted by name.
    pub(crate) fn projects(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Item>)> {
        self.namespaces.iter()
    }

    /// The viewer that a user is, by the groups that came with the request.
    #[must_use]
    pub(crate) fn viewer(&self, user: &UserInfo) -> Viewer {
        Viewer::new(user, self.members.get(user.name.as_str()), self.limit(user.scopes()))
    }

    /// The groups that Group objects give to a viewer now, beside those that it has anyway.
    pub(super) fn joined<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Subject> {
        let groups = viewer.member.as_ref().and_then(|user| self.members.get(user));
        groups.into_iter().flatten().filter(|group| !viewer.is(group))
    }

    /// All that a viewer is to RBAC now.
    fn subjects<'a>(&'a self, viewer: &'a Viewer) -> impl Iterator<Item = &'a Subject> {
        viewer.subjects.iter().chain(self.joined(viewer))
    }

    /// How many of the viewer's subjects see every namespace.
    pub(crate) fn sees_all(&self, viewer: &Viewer) -> usize {
        let granted = |s: &&Subject| self.grants.get(*s).is_some_and(|g| g.all > 0);
        self.subjects(viewer).filter(granted).count() + usize::from(viewer.master)
    }

    /// How many of the viewer's subjects see a namespace by its name.
    pub(crate) fn sees_by_name(&self, viewer: &Viewer, namespace: &str) -> usize {
        let granted = |s: &&Subject| self.grants.get(*s).is_some_and(|g| g.names.contains_key(namespace));
        self.subjects(viewer).filter(granted).count()
    }

    /// Whether the viewer sees a namespace, if it is there.
    #[must_use]
    pub(crate) fn sees(&self, viewer: &Viewer, namespace: &str) -> bool {
        viewer.limit.allows(namespace)
            && (self.sees_all(viewer) > 0 || self.sees_by_name(viewer, namespace) > 0)
    }

    /// The projects that a viewer sees, sorted by name; costs what it returns.
    #[must_use]
    pub(crate) fn visible(&self, viewer: &Viewer) -> Vec<Arc<Item>> {
        match (&viewer.limit, self.sees_all(viewer) > 0) {
            (Limit::Only(names), _) => names
                .iter()
                .filter(|n| self.sees(viewer, n))
                .filter_map(|n| self.namespaces.get(&**n).cloned())
                .collect(),
            (Limit::None, true) => self.namespaces.values().cloned().collect(),
            (Limit::None, false) => {
                let grants = self.subjects(viewer).filter_map(|s| self.grants.get(s));
                let names: BTreeSet<&Arc<str>> = grants.flat_map(|g| g.names.keys()).collect();
                names.into_iter().filter_map(|n| self.namespaces.get(n).cloned()).collect()
            }
        }
    }
}
