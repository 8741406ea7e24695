//! What a list or watch selects.

use std::sync::Arc;

use picoshift_machinery::selector::{FieldSelector, LabelSelector};

use super::page::Continue;
use super::tree::ItemTree;
use crate::resource::Resource;
use crate::rest::{Item, ListOptions};

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

    /// Namespace and name at which a page goes on.
    pub(super) fn place<'a>(&'a self, token: &'a Continue) -> (&'a str, &'a str) {
        token.from(&self.namespace, self.resource.namespaced)
    }

    /// The items among which to select, in order: those of the namespace, or of the one name, from a key on.
    pub(super) fn within<'a>(
        &'a self,
        tree: &'a ItemTree,
        from: Option<(&'a str, &'a str)>,
    ) -> impl Iterator<Item = &'a Arc<Item>> {
        let (namespace, name) = (self.namespace(), self.name());
        // Without a namespace, one name may be in many.
        let one = !namespace.is_empty() || !self.resource.namespaced;
        let first = one.then(|| (namespace, name.unwrap_or_default()));
        tree.iter_from(from.or(first)).take_while(move |item| {
            !one || (*item.namespace == *namespace && name.is_none_or(|name| *item.name <= *name))
        })
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
