//! Namespace ↔ Project: one object in two forms. Metadata is the same in both.

use std::sync::Arc;

use picoshift_machinery::Object;
use serde_json::{Map, Value};

use super::PROJECTS;
use crate::rest::Item;
use crate::store::Revision;

/// Shown name of a project.
pub(crate) const DISPLAY_NAME: &str = "openshift.io/display-name";
/// Description of a project.
pub(crate) const DESCRIPTION: &str = "openshift.io/description";
/// Who requested a project.
pub(crate) const REQUESTER: &str = "openshift.io/requester";
/// Node selector of a project's pods.
pub(crate) const NODE_SELECTOR: &str = "openshift.io/node-selector";
/// Finalizer that OpenShift's API server adds and OpenShift's controller-manager removes.
pub(crate) const ORIGIN_FINALIZER: &str = "openshift.io/origin";

/// The Project that a Namespace is.
#[must_use]
pub(crate) fn project(mut namespace: Object) -> Object {
    let mut project = Object::new(&PROJECTS.gvk.api_version(), PROJECTS.gvk.kind);
    if let Some(metadata) = namespace.0.remove("metadata") {
        project.0.insert("metadata".to_owned(), metadata);
    }
    project.0.insert("spec".to_owned(), part(&namespace, "spec", &["finalizers"]));
    project.0.insert("status".to_owned(), part(&namespace, "status", &["phase", "conditions"]));
    project
}

/// Some fields of a top-level object, without what is empty.
fn part(object: &Object, name: &str, fields: &[&str]) -> Value {
    let mut out = Map::new();
    for field in fields {
        match object.at(&[name, field]) {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) if list.is_empty() => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(value) => {
                out.insert((*field).to_owned(), value.clone());
            }
        }
    }
    Value::Object(out)
}

/// The Namespace to create for a new Project: its metadata and finalizers, but for the finalizer that nobody here
/// would remove.
#[must_use]
pub(crate) fn new_namespace(project: &Object) -> Object {
    let mut namespace = shell(project);
    // kube-apiserver drops what managers own of a kind that it does not know.
    namespace.set_metadata("managedFields", Value::Null);
    if let Some(Value::Array(finalizers)) = project.at(&["spec", "finalizers"]) {
        let kept: Vec<Value> =
            finalizers.iter().filter(|f| f.as_str() != Some(ORIGIN_FINALIZER)).cloned().collect();
        if !kept.is_empty() {
            namespace.object_mut("spec").insert("finalizers".to_owned(), kept.into());
        }
    }
    namespace
}

/// The Namespace to write for a changed Project: the Project's metadata, all else as it is.
#[must_use]
pub(crate) fn changed_namespace(project: &Object, current: &Object) -> Object {
    let mut namespace = shell(project);
    for field in ["spec", "status"] {
        if let Some(value) = current.0.get(field) {
            namespace.0.insert(field.to_owned(), value.clone());
        }
    }
    namespace
}

/// A Namespace with a Project's metadata. The display name is always set, as OpenShift does.
fn shell(project: &Object) -> Object {
    let mut namespace = Object::new("v1", "Namespace");
    if let Some(metadata) = project.0.get("metadata") {
        namespace.0.insert("metadata".to_owned(), metadata.clone());
    }
    namespace.set_metadata("namespace", Value::Null);
    if namespace.annotation(DISPLAY_NAME).is_none() {
        namespace.set_annotation(DISPLAY_NAME, "");
    }
    namespace
}

/// The item of a Namespace; `None` without a name or a numeric resourceVersion, which kube-apiserver never sends.
#[must_use]
pub(crate) fn item(namespace: Object) -> Option<Arc<Item>> {
    let revision: Revision = namespace.resource_version().parse().ok()?;
    if namespace.name().is_empty() {
        return None;
    }
    Some(Arc::new(Item::new(&PROJECTS, project(namespace), revision)))
}

/// The item of a Namespace that a dry run would have made: without a resourceVersion.
#[must_use]
pub(crate) fn unsaved_item(namespace: Object) -> Arc<Item> {
    let object = project(namespace);
    let mut item = Item::new(&PROJECTS, object.clone(), 0);
    item.bytes = object.to_bytes();
    Arc::new(item)
}

/// The object without `metadata.namespace`, which cluster-scoped objects do not have.
#[must_use]
pub(crate) fn without_namespace(mut object: Object) -> Object {
    if object.0.contains_key("metadata") {
        object.set_metadata("namespace", Value::Null);
    }
    object
}

/// The table cells of a Project.
#[must_use]
pub(crate) fn row(project: &Object) -> Vec<Value> {
    vec![
        project.name().into(),
        project.annotation(DISPLAY_NAME).unwrap_or_default().into(),
        project.str_at(&["status", "phase"]).into(),
    ]
}

#[cfg(test)]
mod tests;
