//! Conflicts, and the texts in which clients are told of them.

use std::collections::BTreeMap;

use picoshift_machinery::field_error::quote;
use serde_json::Value;

use crate::path::{self, PathElement};
use crate::set::FieldSet;

/// A field that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The identifier of its manager.
    pub(crate) manager: String,
    pub(crate) path: Vec<PathElement>,
}

impl Conflict {
    /// `conflict with "kubectl" using v1`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", shown(&self.manager))
    }

    /// The field: `.spec.host`.
    #[must_use]
    pub fn field(&self) -> String {
        path::display(&self.path)
    }
}

/// All conflicts of an apply; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// The text about all of them.
    #[must_use]
    pub fn message(&self) -> String {
        if let [one] = self.0.as_slice() {
            return format!("Apply failed with 1 conflict: {}: {}", one.message(), one.field());
        }
        let mut by_manager: BTreeMap<&str, Vec<&Conflict>> = BTreeMap::new();
        for conflict in &self.0 {
            by_manager.entry(&conflict.manager).or_default().push(conflict);
        }
        let mut lines = Vec::new();
        for (manager, conflicts) in by_manager {
            lines.push(format!("conflicts with {}:", shown(manager)));
            lines.extend(conflicts.iter().map(|conflict| format!("- {}", conflict.field())));
        }
        format!("Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }

    pub(crate) fn to_set(&self) -> FieldSet {
        let mut set = FieldSet::default();
        self.0.iter().for_each(|conflict| set.insert(&conflict.path));
        set
    }

    pub(crate) fn without(self, set: &FieldSet) -> Self {
        Self(self.0.into_iter().filter(|conflict| !set.has(&conflict.path)).collect())
    }
}

/// A manager, of its identifier, as people read it.
fn shown(identifier: &str) -> String {
    let Ok(entry) = serde_json::from_str::<Value>(identifier) else { return quote(identifier) };
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    let mut shown = quote(text("manager"));
    if !text("subresource").is_empty() {
        shown = format!("{shown} with subresource {}", quote(text("subresource")));
    }
    if text("operation") == "Update" {
        shown = format!("{shown} using {}", text("apiVersion"));
    }
    shown
}
