//! Who sees which projects: namespaces, and what RBAC grants on them, kept ready to be read per subject.
//!
//! In: namespaces, roles and bindings as they change. Out: the projects of a viewer, at the cost of what is returned,
//! and a log of changes. It knows no clock but revisions, does no I/O and never waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::log::{Change, Log};
use super::rules::{Access, Names};
use super::subjects::{Limit, Subject, Viewer};
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

/// How many bindings let a subject see what.
#[derive(Debug, Default)]
struct Grants {
    all: u32,
    names: BTreeMap<Arc<str>, u32>,
}

/// Changes of grants, summed up per subject and namespace (`None`: all) before they are made.
type Deltas = BTreeMap<(Subject, Option<Arc<str>>), i64>;

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    namespaces: BTreeMap<Arc<str>, Arc<Item>>,
    /// Roles that show something; all others are as if absent.
    roles: HashMap<Key, Access>,
    bindings: HashMap<Key, Binding>,
    by_role: HashMap<Key, HashSet<Key>>,
    grants: HashMap<Subject, Grants>,
    /// The newest revision of each source; `None` until it was listed.
    seen: [Option<Revision>; SOURCES],
    log: Log,
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
        key: Key,
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
            self.put_binding(&mut deltas, key, None);
        }
        for (key, binding) in bindings {
            self.put_binding(&mut deltas, key, Some(binding));
        }
        self.commit(deltas);
        self.mark(source, revision);
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

    fn put_role(&mut self, deltas: &mut Deltas, key: Key, access: Access) {
        let same_names = self
            .roles
            .get(&key)
            .map_or_else(|| access.names == Names::default(), |old| old.names == access.names);
        if same_names {
            self.store_role(key, access);
            return;
        }
        let bindings: Vec<Key> = self.by_role.get(&key).into_iter().flatten().cloned().collect();
        for binding in &bindings {
            self.count(deltas, binding, -1);
        }
        self.store_role(key, access);
        for binding in &bindings {
            self.count(deltas, binding, 1);
        }
    }

    fn store_role(&mut self, key: Key, access: Access) {
        if access.is_empty() {
            self.roles.remove(&key);
        } else {
            self.roles.insert(key, access);
        }
    }

    fn put_binding(&mut self, deltas: &mut Deltas, key: Key, binding: Option<Binding>) {
        if self.bindings.get(&key) == binding.as_ref() {
            return;
        }
        self.count(deltas, &key, -1);
        if let Some(old) = self.bindings.remove(&key) {
            if let Some(users) = self.by_role.get_mut(&old.role) {
                users.remove(&key);
                if users.is_empty() {
                    self.by_role.remove(&old.role);
                }
            }
        }
        if let Some(binding) = binding {
            self.by_role.entry(binding.role.clone()).or_default().insert(key.clone());
            self.bindings.insert(key.clone(), binding);
        }
        self.count(deltas, &key, 1);
    }

    /// Adds `weight` for all that a binding grants now.
    fn count(&self, deltas: &mut Deltas, key: &Key, weight: i64) {
        let Some(binding) = self.bindings.get(key) else { return };
        let Some(access) = self.roles.get(&binding.role) else { return };
        let mut add = |namespace: Option<&Arc<str>>| {
            for subject in &binding.subjects {
                *deltas.entry((subject.clone(), namespace.cloned())).or_default() += weight;
            }
        };
        if key.namespace.is_empty() {
            match &access.names {
                Names::All => add(None),
                Names::Some(names) => names.iter().for_each(|n| add(Some(n))),
            }
        } else if access.names.covers(&key.namespace) {
            add(Some(&key.namespace));
        }
    }

    /// Makes the changes; gains before losses, so that nobody loses for a moment what he keeps.
    fn commit(&mut self, deltas: Deltas) {
        let (gains, losses): (Vec<_>, Vec<_>) =
            deltas.into_iter().filter(|(_, d)| *d != 0).partition(|(_, d)| *d > 0);
        for ((subject, namespace), delta) in gains.into_iter().chain(losses) {
            if let Some(gained) = self.grant(&subject, namespace.as_ref(), delta) {
                self.log.push(Change::Grant { subject, namespace, gained });
            }
        }
    }

    /// Changes one count; whether the subject gained or lost sight by it.
    fn grant(&mut self, subject: &Subject, namespace: Option<&Arc<str>>, delta: i64) -> Option<bool> {
        let grants = self.grants.entry(subject.clone()).or_default();
        let slot = match namespace {
            None => &mut grants.all,
            Some(name) => grants.names.entry(name.clone()).or_default(),
        };
        let before = *slot;
        let after = u32::try_from((i64::from(before) + delta).max(0)).unwrap_or(u32::MAX);
        *slot = after;
        if after == 0 {
            if let Some(name) = namespace {
                grants.names.remove(name);
            }
            if grants.all == 0 && grants.names.is_empty() {
                self.grants.remove(subject);
            }
        }
        match (before, after) {
            (0, 1..) => Some(true),
            (1.., 0) => Some(false),
            _ => None,
        }
    }

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
                Some("*") => return Limit::None,
                Some(namespace) => {
                    names.insert(Box::from(namespace));
                }
                None => {}
            }
        }
        Limit::Only(names)
    }

    fn scope_namespace<'a>(&self, scope: &'a str) -> Option<&'a str> {
        if matches!(scope, "user:full" | "user:list-projects") {
            return Some("*");
        }
        let rest = scope.strip_prefix("role:")?;
        let (rest, escalating) = rest.strip_suffix(":!").map_or((rest, false), |r| (r, true));
        let (role, namespace) = rest.rsplit_once(':').filter(|(r, n)| !r.is_empty() && !n.is_empty())?;
        let access = self.roles.get(&Key::new("", role))?;
        let shows = if escalating { access.names == Names::All } else { access.scoped };
        shows.then_some(namespace)
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

    /// How many of the viewer's subjects see every namespace.
    pub(crate) fn sees_all(&self, viewer: &Viewer) -> usize {
        let granted = |s: &&Subject| self.grants.get(*s).is_some_and(|g| g.all > 0);
        viewer.subjects.iter().filter(granted).count() + usize::from(viewer.master)
    }

    /// How many of the viewer's subjects see a namespace by its name.
    pub(crate) fn sees_by_name(&self, viewer: &Viewer, namespace: &str) -> usize {
        let granted = |s: &&Subject| self.grants.get(*s).is_some_and(|g| g.names.contains_key(namespace));
        viewer.subjects.iter().filter(granted).count()
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
                let grants = viewer.subjects.iter().filter_map(|s| self.grants.get(s));
                let names: BTreeSet<&Arc<str>> = grants.flat_map(|g| g.names.keys()).collect();
                names.into_iter().filter_map(|n| self.namespaces.get(n).cloned()).collect()
            }
        }
    }
}
