//! Which projects a list or watch wants: label and field selectors.

use std::sync::Arc;

use picoshift_machinery::selector::{FieldSelector, LabelSelector};

use super::super::PROJECTS;
use crate::rest::{Item, ListOptions, WatchEvent};

/// The selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// The selectors of a list or watch.
    #[must_use]
    pub(crate) fn of(options: &ListOptions) -> Self {
        Self { labels: options.labels.clone(), fields: options.fields.clone() }
    }

    /// The only name that can match, where the field selector says so.
    #[must_use]
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    /// Whether all is wanted.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a project is wanted.
    #[must_use]
    pub(crate) fn matches(&self, item: &Item) -> bool {
        let label = |key: &str| {
            let at = item.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
            item.labels.get(at).map(|(_, value)| &**value)
        };
        let field = |name: &str| {
            if name == "metadata.name" {
                return Some(&*item.name);
            }
            let at = PROJECTS.field_labels.iter().position(|l| *l == name)?;
            item.fields.get(at).map(|value| &**value)
        };
        (self.labels.is_empty() || self.labels.matches(label))
            && (self.fields.is_empty() || self.fields.matches(field))
    }

    /// What a watcher who saw `old` and sees `new` is told. `gone` is the last state with the revision of the
    /// deletion. An object that leaves the selection is deleted for the watcher, at the revision of the change.
    #[must_use]
    pub(crate) fn event(
        &self,
        old: Option<&Arc<Item>>,
        new: Option<&Arc<Item>>,
        gone: Option<&Arc<Item>>,
    ) -> Option<WatchEvent> {
        let wanted = |item: &&Arc<Item>| self.matches(item);
        match (old.filter(wanted), new.filter(wanted)) {
            (None, None) => None,
            (None, Some(new)) => Some(WatchEvent::Added(new.clone())),
            (Some(_), Some(new)) => Some(WatchEvent::Modified(new.clone())),
            (Some(old), None) => Some(WatchEvent::Deleted(match (new, gone) {
                (Some(new), _) => at_revision(old, new),
                (None, Some(gone)) => gone.clone(),
                (None, None) => old.clone(),
            })),
        }
    }
}

/// The old state with the revision of the new one.
fn at_revision(old: &Arc<Item>, new: &Arc<Item>) -> Arc<Item> {
    match old.object() {
        Ok(object) => Arc::new(Item::new(&PROJECTS, object, new.revision)),
        Err(_) => old.clone(),
    }
}
