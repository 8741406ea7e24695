//! Who owns which field after an update or an apply (`merge/update.go` of the Go library).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::conflict::{Conflict, Conflicts};
use crate::schema::{Schema, TypeId};
use crate::set::FieldSet;
use crate::typed::{self, Comparison, Typed};
use crate::value;

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The manager's name.
    pub(crate) name: String,
    /// The subresource that it writes; empty for the object itself.
    pub(crate) subresource: String,
    /// The version that the fields are of.
    pub(crate) api_version: String,
    /// Whether they were applied.
    pub(crate) applied: bool,
    pub(crate) set: FieldSet,
}

/// Owners by their identifiers (see `entries`).
pub(crate) type Owners = BTreeMap<String, Owner>;

/// What is the same for all writes of one endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Updater<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) r#type: TypeId,
    pub(crate) api_version: &'a str,
    /// Fields that the endpoint sets back, with all that is in them: nobody gets them by it.
    pub(crate) ignored: Option<&'a FieldSet>,
}

/// Why an apply was not done.
pub(crate) enum Failure {
    Conflicts(Conflicts),
    Other(String),
}

impl Updater<'_> {
    /// The owners after an update that made `new` of `live`; what changed goes to `id`, with the owner that is given.
    ///
    /// # Errors
    /// When the two cannot be compared.
    pub(crate) fn update(
        &self,
        live: &Typed<'_>,
        new: &Typed<'_>,
        owners: Owners,
        id: &str,
        owner: Owner,
    ) -> Result<Owners, String> {
        let mut owners = self.reconciled(owners);
        let changes = self.compare(live, new)?;
        yield_changed(&mut owners, &changes, id);
        let had = owners.remove(id).map(|owner| owner.set).unwrap_or_default();
        let set = had.difference(&changes.removed).union(&changes.modified).union(&changes.added);
        let set = self.without_ignored(set);
        if !set.is_empty() {
            owners.insert(id.to_owned(), Owner { set, ..owner });
        }
        Ok(owners)
    }

    /// What an apply makes of `live`, `None` where that is the same, and the owners afterwards.
    pub(crate) fn apply(
        &self,
        live: &Typed<'_>,
        config: &Typed<'_>,
        owners: Owners,
        id: &str,
        owner: Owner,
        force: bool,
    ) -> Result<(Option<Value>, Owners), Failure> {
        let mut owners = self.reconciled(owners);
        let merged = live
            .merge(config)
            .map_err(|errors| Failure::Other(format!("failed to merge config: {errors}")))?;
        let last = owners.remove(id).map(|owner| owner.set);
        let set = self.without_ignored(config.to_field_set());
        owners.insert(id.to_owned(), Owner { set, ..owner });
        let new = match last.filter(|last| !last.is_empty()) {
            Some(last) => self.prune(&live.with(&merged), &owners, &last),
            None => merged,
        };
        let changes = self.compare(live, &live.with(&new)).map_err(Failure::Other)?;
        if !force {
            let conflicts = conflicts(&owners, &changes, id);
            if !conflicts.0.is_empty() {
                return Err(Failure::Conflicts(conflicts));
            }
        }
        yield_changed(&mut owners, &changes, id);
        let changed = !value::equal(live.value, &new);
        Ok((changed.then_some(new), owners))
    }

    fn without_ignored(&self, set: FieldSet) -> FieldSet {
        match self.ignored {
            Some(ignored) => set.recursive_difference(ignored),
            None => set,
        }
    }

    fn compare(&self, live: &Typed<'_>, new: &Typed<'_>) -> Result<Comparison, String> {
        let changes = live.compare(new).map_err(|errors| format!("failed to compare objects: {errors}"))?;
        Ok(changes.without(self.ignored))
    }

    /// The owners whose version is served, with their fields as the schema has them now.
    fn reconciled(&self, owners: Owners) -> Owners {
        let mut owners = owners;
        owners.retain(|_, owner| owner.api_version == self.api_version);
        for owner in owners.values_mut() {
            if let Some(set) = typed::reconcile(self.schema, self.r#type, &owner.set) {
                owner.set = set;
            }
        }
        owners
    }

    /// Takes out what the manager applied the last time, not this time, and what nobody else owns.
    fn prune(&self, merged: &Typed<'_>, owners: &Owners, last: &FieldSet) -> Value {
        let named = |set: &FieldSet| set.with_named_fields(self.schema, Some(self.r#type));
        let last = named(last);
        let all = named(&merged.to_field_set());
        let owned = FieldSet::union_of(owners.values().map(|owner| owner.set.clone()).collect());
        let kept = |value: &Value| named(&merged.with(value).to_field_set());
        let pruned = merged.remove(&last);
        let pruned = merged.remove(&all.difference(&kept(&pruned).union(&named(&owned))));
        // What hung on something that went, but was never this manager's, stays.
        merged.remove(&all.difference(&kept(&pruned)).intersection(&last))
    }
}

/// Everybody but `id` loses what was changed and removed.
fn yield_changed(owners: &mut Owners, changes: &Comparison, id: &str) {
    let written = changes.modified.union(&changes.added);
    for (_, owner) in owners.iter_mut().filter(|(other, _)| *other != id) {
        if !written.is_empty() {
            owner.set = owner.set.difference(&written);
        }
        if !changes.removed.is_empty() {
            owner.set = owner.set.difference(&changes.removed);
        }
    }
    owners.retain(|_, owner| !owner.set.is_empty());
}

fn conflicts(owners: &Owners, changes: &Comparison, id: &str) -> Conflicts {
    let written = changes.modified.union(&changes.added);
    let mut found = Vec::new();
    for (manager, owner) in owners.iter().filter(|(other, _)| *other != id) {
        owner.set.intersection(&written).visit(&mut |path| {
            found.push(Conflict { manager: manager.clone(), path: path.to_vec() });
        });
    }
    Conflicts(found)
}
