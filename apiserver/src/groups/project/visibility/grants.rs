//! What bindings grant, counted per subject and namespace: a change costs what it affects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::index::{Binding, Index, Key};
use super::log::Change;
use super::rules::{Access, Names};
use super::subjects::Subject;

/// How many bindings let a subject see what.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Bindings that show all namespaces.
    pub(super) all: u32,
    /// Bindings that show a namespace, for each that any shows.
    pub(super) names: BTreeMap<Arc<str>, u32>,
}

/// Changes of grants, summed up per subject and namespace (`None`: all) before they are made.
pub(super) type Deltas = BTreeMap<(Subject, Option<Arc<str>>), i64>;

impl Index {
    /// Notes what a role shows, and what that changes for its bindings.
    pub(super) fn put_role(&mut self, deltas: &mut Deltas, key: Key, access: Access) {
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

    /// Notes a binding, and what that changes.
    pub(super) fn put_binding(&mut self, deltas: &mut Deltas, key: &Key, binding: Option<Binding>) {
        if self.bindings.get(key) == binding.as_ref() {
            return;
        }
        self.count(deltas, key, -1);
        if let Some(old) = self.bindings.remove(key)
            && let Some(users) = self.by_role.get_mut(&old.role)
        {
            users.remove(key);
            if users.is_empty() {
                self.by_role.remove(&old.role);
            }
        }
        if let Some(binding) = binding {
            self.by_role.entry(binding.role.clone()).or_default().insert(key.clone());
            self.bindings.insert(key.clone(), binding);
        }
        self.count(deltas, key, 1);
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
    pub(super) fn commit(&mut self, deltas: Deltas) {
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
}
