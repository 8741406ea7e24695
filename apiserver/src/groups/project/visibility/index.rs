//! Who sees which projects: namespaces, and what RBAC grants on them, kept ready to be read per subject.
//!
//! In: namespaces, roles and bindings as they change. Out: the projects of a viewer, at the cost of what is returned,
//! and a log of changes. It knows no clock but revisions, does no I/O and never waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::grants::{Deltas, Grants};
use super::log::{Change, Log};
use super::rules::Access;
use super::subjects::Subject;
use crate::authn::memberships::MembersChange;
use crate::rest::Item;
use crate::store::Revision;

/// One of the collections that feed the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Namespaces.
    Namespaces,
    /// Roles.
    Roles,
    /// RoleBindings.
    RoleBindings,
    /// ClusterRoles.
    ClusterRoles,
    /// ClusterRoleBindings.
    ClusterRoleBindings,
}

/// Number of sources.
const SOURCES: usize = 5;

/// Namespace (empty for cluster-scoped objects) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Namespace, or empty.
    pub(crate) namespace: Arc<str>,
    /// Name.
    pub(crate) name: Arc<str>,
}

impl Key {
    /// A key.
    #[must_use]
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    fn is_in(&self, source: Source) -> bool {
        matches!(source, Source::ClusterRoles | Source::ClusterRoleBindings) == self.namespace.is_empty()
    }
}

/// A binding: which role it gives to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The role.
    pub(crate) role: Key,
    /// Whom it is given to.
    pub(crate) subjects: BTreeSet<Subject>,
}

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    pub(super) namespaces: BTreeMap<Arc<str>, Arc<Item>>,
    /// Roles that show something; all others are as if absent.
    pub(super) roles: HashMap<Key, Access>,
    pub(super) bindings: HashMap<Key, Binding>,
    pub(super) by_role: HashMap<Key, HashSet<Key>>,
    pub(super) grants: HashMap<Subject, Grants>,
    /// The groups that Group objects give to users.
    pub(super) members: HashMap<Arc<str>, BTreeSet<Subject>>,
    /// The newest revision of each source; `None` until it was listed.
    seen: [Option<Revision>; SOURCES],
    pub(super) log: Log,
}

impl Index {
    /// An empty index whose log keeps about `capacity` changes.
    #[must_use]
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            namespaces: BTreeMap::new(),
            roles: HashMap::new(),
            bindings: HashMap::new(),
            by_role: HashMap::new(),
            grants: HashMap::new(),
            members: HashMap::new(),
            seen: [None; SOURCES],
            log: Log::new(capacity),
        }
    }

    /// Whether every source was listed.
    #[must_use]
    pub(crate) fn is_synced(&self) -> bool {
        self.seen.iter().all(Option::is_some)
    }

    /// The newest revision of a source.
    #[must_use]
    pub(crate) fn seen(&self, source: Source) -> Option<Revision> {
        self.seen.get(source as usize).copied().flatten()
    }

    /// The newest revision of any source.
    #[must_use]
    pub(crate) fn clock(&self) -> Revision {
        self.log.clock()
    }

    /// The log.
    #[must_use]
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// A source has nothing to tell up to a revision.
    pub(crate) fn progress(&mut self, source: Source, revision: Revision) {
        self.log.begin(revision);
        self.mark(source, revision);
    }

    /// A namespace is there, as the project `item`.
    pub(crate) fn set_namespace(&mut self, item: Arc<Item>) {
        self.log.begin(item.revision);
        self.mark(Source::Namespaces, item.revision);
        self.put_namespace(item);
    }

    /// A namespace is gone; `gone` is its last state with the revision of the deletion.
    pub(crate) fn remove_namespace(&mut self, gone: &Arc<Item>) {
        self.log.begin(gone.revision);
        self.mark(Source::Namespaces, gone.revision);
        self.drop_namespace(&gone.name, Some(gone.clone()));
    }

    /// All namespaces at a revision. A namespace that `is_other` says was made anew is shown as gone and new.
    pub(crate) fn reset_namespaces(
        &mut self,
        items: Vec<Arc<Item>>,
        revision: Revision,
        is_other: impl Fn(&Item, &Item) -> bool,
    ) {
        self.log.begin(revision);
        let kept: HashSet<&str> = items.iter().map(|i| &*i.name).collect();
        let lost: Vec<Arc<str>> = self.namespaces.keys().filter(|n| !kept.contains(&***n)).cloned().collect();
        for name in lost {
            self.drop_namespace(&name, None);
        }
        for item in items {
            let name: &str = &item.name;
            if self.namespaces.get(name).is_some_and(|old| is_other(old, &item)) {
                self.drop_namespace(name, None);
            }
            self.put_namespace(item);
        }
        self.mark(Source::Namespaces, revision);
    }

    /// A role, or with an empty access its absence.
    pub(crate) fn set_role(&mut self, source: Source, key: Key, access: Access, revision: Revision) {
        self.log.begin(revision);
        let mut deltas = Deltas::new();
        self.put_role(&mut deltas, key, access);
        self.commit(deltas);
        self.mark(source, revision);
    }

    /// All roles of a source at a revision.
    pub(crate) fn reset_roles(&mut self, source: Source, roles: Vec<(Key, Access)>, revision: Revision) {
        self.log.begin(revision);
        let mut deltas = Deltas::new();
        let kept: HashSet<Key> = roles.iter().map(|(k, _)| k.clone()).collect();
        let lost: Vec<Key> =
            self.roles.keys().filter(|k| k.is_in(source) && !kept.contains(*k)).cloned().collect();
        for key in lost {
            self.put_role(&mut deltas, key, Access::default());
        }
        for (key, access) in roles {
            self.put_role(&mut deltas, key, access);
        }
        self.commit(deltas);
        self.mark(source, revision);
    }

    /// A binding, or its absence.
    pub(crate) fn set_binding(
        &mut self,
        source: Source,
        key: &Key,
        binding: Option<Binding>,
        revision: Revision,
    ) {
        self.log.begin(revision);
        let mut deltas = Deltas::new();
        self.put_binding(&mut deltas, key, binding);
        self.commit(deltas);
        self.mark(source, revision);
    }

    /// All bindings of a source at a revision.
    pub(crate) fn reset_bindings(
        &mut self,
        source: Source,
        bindings: Vec<(Key, Binding)>,
        revision: Revision,
    ) {
        self.log.begin(revision);
        let mut deltas = Deltas::new();
        let kept: HashSet<Key> = bindings.iter().map(|(k, _)| k.clone()).collect();
        let lost: Vec<Key> =
            self.bindings.keys().filter(|k| k.is_in(source) && !kept.contains(*k)).cloned().collect();
        for key in lost {
            self.put_binding(&mut deltas, &key, None);
        }
        for (key, binding) in bindings {
            self.put_binding(&mut deltas, &key, Some(binding));
        }
        self.commit(deltas);
        self.mark(source, revision);
    }

    /// Users joined or left a group. It has no revision: whoever read at the clock's reading is told again.
    pub(crate) fn change_members(&mut self, change: &Arc<MembersChange>) {
        self.log.begin(0);
        let group = Subject::Group(Arc::clone(&change.group));
        for user in &change.joined {
            self.members.entry(Arc::clone(user)).or_default().insert(group.clone());
        }
        for user in &change.left {
            if let Some(groups) = self.members.get_mut(user) {
                groups.remove(&group);
                if groups.is_empty() {
                    self.members.remove(user);
                }
            }
        }
        let grants = self.grants.get(&group);
        let all = grants.is_some_and(|grants| grants.all > 0);
        let names = grants.into_iter().flat_map(|grants| grants.names.keys().cloned()).collect();
        self.log.push(Change::Members { change: Arc::clone(change), all, names });
    }

    fn mark(&mut self, source: Source, revision: Revision) {
        let before = self.is_synced();
        if let Some(slot) = self.seen.get_mut(source as usize) {
            *slot = Some(slot.unwrap_or(0).max(revision));
        }
        if !before && self.is_synced() {
            self.log.record();
        }
    }

    fn put_namespace(&mut self, item: Arc<Item>) {
        let old = self.namespaces.get(&*item.name).cloned();
        if old.as_ref().is_some_and(|old| old.revision >= item.revision) {
            return;
        }
        let name: Arc<str> = match self.namespaces.get_key_value(&*item.name) {
            Some((name, _)) => name.clone(),
            None => Arc::from(&*item.name),
        };
        self.namespaces.insert(name.clone(), item.clone());
        self.log.push(Change::Namespace { name, old, new: Some(item), gone: None });
    }

    fn drop_namespace(&mut self, name: &str, gone: Option<Arc<Item>>) {
        if let Some((name, old)) = self.namespaces.remove_entry(name) {
            self.log.push(Change::Namespace { name, old: Some(old), new: None, gone });
        }
    }
}
