//! What a list or watch selects.

use crate::resource::Resource;
use crate::rest::{Item, ListOptions};
use picoshift_machinery::selector::{FieldSelector, LabelSelector};

/// Namespace, labels and fields that an item must have.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    namespace: String,
    labels: LabelSelector,
    fields: FieldSelector,
    resource: &'static Resource,
}

impl Selection {
    pub(super) fn new(resource: &'static Resource, namespace: &str, options: &ListOptions) -> Self {
        Self {
            namespace: namespace.to_owned(),
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            resource,
        }
    }

    /// Whether every item of the namespace is selected.
    pub(super) fn selects_all_names(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that is selected, where the field selector says so.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn matches(&self, item: &Item) -> bool {
        (self.namespace.is_empty() || *self.namespace == *item.namespace)
            && self.labels.matches(|key| label(item, key))
            && self.fields.matches(|field| self.field(item, field))
    }

    fn field<'a>(&self, item: &'a Item, field: &str) -> Option<&'a str> {
        match field {
            "metadata.name" => Some(&item.name),
            "metadata.namespace" => Some(&item.namespace),
            other => {
                let at = self.resource.field_labels.iter().position(|label| *label == other)?;
                item.fields.get(at).map(|value| &**value)
            }
        }
    }
}

fn label<'a>(item: &'a Item, key: &str) -> Option<&'a str> {
    let at = item.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
    item.labels.get(at).map(|(_, value)| &**value)
}
