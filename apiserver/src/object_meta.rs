//! Rules of metadata that hold for every kind (`k8s.io/apimachinery/pkg/api/validation`): for stored objects and for
//! those that are computed alike.

use std::collections::BTreeSet;

use picoshift_machinery::field_error::{FieldErrorKind, show};
use picoshift_machinery::names::{
    dns1123_label, dns1123_subdomain, label_value, path_segment, qualified_name_errors,
};
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::Value;

use crate::rest::query::check_manager;

const FIELD_IMMUTABLE: &str = "field is immutable";
/// Limit of all annotations together, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// Most bytes of all errors that show the whole list of owner references; the first is told whatever its size.
const OWNERS_SHOWN: usize = 64 * 1024;

/// What is wrong with a name; the flag says that it is a prefix to which an ending will be added.
pub(crate) type NameRule = fn(&str, bool) -> Vec<String>;

/// A DNS subdomain, as most kinds have; a prefix may end with a dash.
pub(crate) fn subdomain_name(name: &str, prefix: bool) -> Vec<String> {
    match name.strip_suffix('-').filter(|_| prefix) {
        Some(start) => dns1123_subdomain(&format!("{start}a")),
        None => dns1123_subdomain(name),
    }
}

/// A name that can stand in a path: what every kind must have, also one that is updated.
pub(crate) fn path_name(name: &str, _prefix: bool) -> Vec<String> {
    path_segment(name)
}

/// Of kinds that are computed no name is generated: who wants one is told so.
///
/// # Errors
/// 500, as upstream.
pub(crate) fn check_generated(object: &Object) -> Result<(), Status> {
    if object.name().is_empty() && !object.generate_name().is_empty() {
        return Err(Status::internal("metadata.name was not generated"));
    }
    Ok(())
}

/// Errors of any object's metadata; `namespaced` says whether a namespace is wanted.
pub(crate) fn create(object: &Object, namespaced: bool, name_rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = object.generate_name();
    if !prefix.is_empty() {
        errors.extend(
            name_rule(prefix, true)
                .into_iter()
                .map(|e| FieldError::invalid_str("metadata.generateName", prefix, e)),
        );
    }
    let name = object.name();
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(
            name_rule(name, false).into_iter().map(|e| FieldError::invalid_str("metadata.name", name, e)),
        );
    }
    errors.extend(namespace(object, namespaced));
    if let Some(generation) = object.generation().filter(|g| *g < 0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            &generation.into(),
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(maps(object));
    let finalizers = object.finalizers();
    for finalizer in &finalizers {
        errors.extend(
            qualified_name_errors(finalizer)
                .into_iter()
                .map(|e| FieldError::invalid_str("metadata.finalizers", finalizer, e)),
        );
    }
    if ["orphan", "foregroundDeletion"].iter().all(|f| finalizers.contains(f)) {
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            &finalizers.as_slice().into(),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors.extend(managed_fields(object));
    errors
}

/// Errors of the managed fields that a client sent.
fn managed_fields(object: &Object) -> Vec<FieldError> {
    let entries = object.at(&["metadata", "managedFields"]);
    picoshift_structured_merge::validate(entries, |name, path| check_manager(name, &path))
}

fn namespace(object: &Object, namespaced: bool) -> Vec<FieldError> {
    let field = "metadata.namespace";
    match (namespaced, object.namespace()) {
        (true, "") => vec![FieldError::required(field, "")],
        (true, namespace) => {
            let errors = dns1123_label(namespace).into_iter();
            errors.map(|e| FieldError::invalid_str(field, namespace, e)).collect()
        }
        (false, "") => Vec::new(),
        (false, _) => vec![FieldError::forbidden(field, "not allowed on this type")],
    }
}

/// Errors of a changed object's metadata.
pub(crate) fn update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.deletion_timestamp().is_some() {
        let had: BTreeSet<&str> = old.finalizers().into_iter().collect();
        let extra: BTreeSet<&str> = new.finalizers().into_iter().filter(|f| !had.contains(f)).collect();
        if !extra.is_empty() {
            let list: Vec<String> = extra.iter().map(|f| format!("{f:?}")).collect();
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    list.join(", ")
                ),
            ));
        }
    }
    if new.resource_version().is_empty() {
        errors.push(FieldError::invalid_str(
            "metadata.resourceVersion",
            "",
            "must be specified for an update",
        ));
    }
    let generation = new.generation().unwrap_or(0);
    if generation < old.generation().unwrap_or(0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            &generation.into(),
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid"] {
        let value = new.str_at(&["metadata", field]);
        if value != old.str_at(&["metadata", field]) {
            errors.push(FieldError::invalid_str(format!("metadata.{field}"), value, FIELD_IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new.at(&["metadata", field]).unwrap_or(&Value::Null);
        if value != old.at(&["metadata", field]).unwrap_or(&Value::Null) {
            errors.push(FieldError::invalid(format!("metadata.{field}"), value, FIELD_IMMUTABLE));
        }
    }
    errors.extend(maps(new));
    errors.extend(managed_fields(new));
    errors
}

/// Errors of labels, annotations and owner references.
fn maps(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in object.labels() {
        errors.extend(
            qualified_name_errors(key)
                .into_iter()
                .map(|e| FieldError::invalid_str("metadata.labels", key, e)),
        );
        if let Err(e) = label_value(value) {
            errors.push(FieldError::invalid_str("metadata.labels", value, e));
        }
    }
    let annotations = object.annotations();
    for key in annotations.keys() {
        errors.extend(
            qualified_name_errors(&key.to_lowercase())
                .into_iter()
                .map(|e| FieldError::invalid_str("metadata.annotations", key, e)),
        );
    }
    if annotations.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>() > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_MAX));
    }
    errors.extend(owners(object));
    errors
}

fn owners(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(Value::Array(references)) = object.at(&["metadata", "ownerReferences"]) else { return errors };
    let path = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    let mut list: Option<String> = None;
    let mut shown = 0;
    for reference in references {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        // A version of more than two parts is read as none.
        if api_version.rsplit('/').next().unwrap_or_default().is_empty()
            || api_version.matches('/').count() > 1
        {
            errors.push(FieldError::invalid_str(
                format!("{path}.apiVersion"),
                api_version,
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid_str(format!("{path}.{field}"), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            errors.push(FieldError::invalid(
                path,
                reference,
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) if shown < OWNERS_SHOWN => {
                    let list = list.get_or_insert_with(|| show(&references.as_slice().into()));
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    shown += list.len() + why.len();
                    errors.push(FieldError::new(FieldErrorKind::Invalid, path, Some(list.clone()), why));
                }
                Some(_) => {}
                None => controller = Some(this),
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_needs_a_version_that_can_be_read() {
        for (version, good) in [("v1", true), ("a/v1", true), ("a/b/c", false), ("a/", false), ("", false)] {
            let owner = json!({"apiVersion": version, "kind": "ConfigMap", "name": "c", "uid": "u"});
            let object = Object::from_value(json!({"metadata": {"ownerReferences": [owner]}})).unwrap();
            assert_eq!(owners(&object).is_empty(), good, "{version}");
        }
    }

    #[test]
    fn errors_of_long_lists_stay_small() {
        let owner = |n: usize| json!({"apiVersion": "v1", "kind": "K", "name": format!("n{n}"), "uid": "u", "controller": true});
        let object = |metadata: Value| Object::from_value(json!({"metadata": metadata})).unwrap();
        let told = owners(&object(json!({"ownerReferences": (0..3).map(owner).collect::<Vec<_>>()})));
        assert_eq!(told.len(), 2);
        let long = owners(&object(json!({"ownerReferences": (0..20_000).map(owner).collect::<Vec<_>>()})));
        assert_eq!(long.len(), 1);

        let entry = |manager: &str| json!({"manager": manager, "operation": "Update"});
        let many = vec![entry(&"\u{7f}".repeat(128)); 1000];
        assert_eq!(managed_fields(&object(json!({"managedFields": many}))).len(), 100);
        let long = entry(&"\u{7f}".repeat(500_000));
        assert_eq!(managed_fields(&object(json!({"managedFields": [long]}))).len(), 1);
    }
}
