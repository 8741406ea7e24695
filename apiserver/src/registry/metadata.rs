//! Metadata of stored objects: what the server sets, what it checks (`k8s.io/apimachinery/pkg/api/validation`).

use picoshift_machinery::field_error::{FieldErrorKind, quote};
use picoshift_machinery::names;
use picoshift_machinery::{FieldError, Object};
use rand::RngExt;
use serde_json::Value;

use crate::resource::Resource;

/// Most bytes of all annotations together.
const ANNOTATIONS_MAX: usize = 256 << 10;
/// Letters of generated name endings: no vowels, nothing that looks like another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of the generated ending.
const ENDING: usize = 5;
/// Finalizer of a foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of a deletion that keeps dependents.
pub const ORPHAN: &str = "orphan";

/// RFC 3339 to the second, as `metav1.Time` is.
#[must_use]
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name made from a base, as upstream's `SimpleNameGenerator` does.
#[must_use]
pub fn generate_name(base: &str) -> String {
    let max = names::LABEL_MAX - ENDING;
    let mut name: String = base.chars().take(max).collect();
    let mut rng = rand::rng();
    name.extend((0..ENDING).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])));
    name
}

/// Gives a new object its system metadata; what the client sent for it is dropped.
pub fn begin(object: &mut Object, namespace: &str, uid: &str, now: &str) {
    for field in
        ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"]
    {
        object.set_metadata(field, Value::Null);
    }
    object.set_metadata("uid", uid);
    object.set_metadata("creationTimestamp", now);
    object.set_metadata("generation", 1);
    if !namespace.is_empty() {
        object.set_metadata("namespace", namespace);
    }
}

/// Restores the metadata that an update cannot change without saying so.
pub fn carry_over(object: &mut Object, old: &Object) {
    for field in ["generation", "selfLink", "managedFields"] {
        let value = old.at(&["metadata", field]).cloned().unwrap_or(Value::Null);
        object.set_metadata(field, value);
    }
    object.set_metadata("resourceVersion", Value::Null);
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"]
    {
        let kept = old.at(&["metadata", field]).cloned();
        let missing = object.at(&["metadata", field]).is_none_or(Value::is_null);
        // Absent means "as it is"; a deletion is never taken back or begun by an update.
        if missing || field.starts_with("deletion") {
            object.set_metadata(field, kept.unwrap_or(Value::Null));
        }
    }
}

/// Checks the metadata of any object.
#[must_use]
pub fn validate(object: &Object, resource: &Resource) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let base = object.generate_name();
    if !base.is_empty() {
        // The ending makes a trailing dash legal.
        let masked = base.strip_suffix('-').map_or_else(|| base.to_owned(), |b| format!("{b}a"));
        for error in names::dns1123_subdomain(&masked) {
            errors.push(FieldError::invalid_str("metadata.generateName", base, error));
        }
    }
    let name = object.name();
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(
            names::dns1123_subdomain(name)
                .into_iter()
                .map(|why| FieldError::invalid_str("metadata.name", name, why)),
        );
    }
    if resource.namespaced {
        let namespace = object.namespace();
        if namespace.is_empty() {
            errors.push(FieldError::required("metadata.namespace", ""));
        } else {
            errors.extend(
                names::dns1123_label(namespace)
                    .into_iter()
                    .map(|why| FieldError::invalid_str("metadata.namespace", namespace, why)),
            );
        }
    } else if !object.namespace().is_empty() {
        errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
    }
    validate_maps(object, &mut errors);
    validate_owners(object, &mut errors);
    validate_finalizers(object, &mut errors);
    errors
}

fn validate_maps(object: &Object, errors: &mut Vec<FieldError>) {
    for (key, value) in object.labels() {
        for why in names::qualified_name_errors(key) {
            errors.push(FieldError::invalid_str("metadata.labels", key, why));
        }
        if let Err(why) = names::label_value(value) {
            errors.push(FieldError::invalid_str("metadata.labels", value, why));
        }
    }
    let annotations = object.annotations();
    for key in annotations.keys() {
        for why in names::qualified_name_errors(&key.to_lowercase()) {
            errors.push(FieldError::invalid_str("metadata.annotations", key, why));
        }
    }
    if annotations.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>() > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_MAX));
    }
}

fn validate_owners(object: &Object, errors: &mut Vec<FieldError>) {
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    let mut controllers = Vec::new();
    for owner in owners.into_iter().flatten() {
        let field = "metadata.ownerReferences";
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or("");
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            errors.push(FieldError::invalid_str(
                format!("{field}.apiVersion"),
                api_version,
                "version must not be empty",
            ));
        }
        for (key, why) in
            [("kind", "must not be empty"), ("name", "must not be empty"), ("uid", "must not be empty")]
        {
            if text(key).is_empty() {
                errors.push(FieldError::invalid_str(format!("{field}.{key}"), "", why));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            errors.push(FieldError::invalid_str(
                field,
                "/v1, Kind=Event",
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            controllers.push(text("name"));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            "metadata.ownerReferences",
            Some(object.at(&["metadata", "ownerReferences"]).map_or_else(String::new, Value::to_string)),
            format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
            ),
        ));
    }
}

fn validate_finalizers(object: &Object, errors: &mut Vec<FieldError>) {
    let finalizers = object.finalizers();
    for finalizer in &finalizers {
        for why in names::qualified_name_errors(finalizer) {
            errors.push(FieldError::invalid_str("metadata.finalizers", finalizer, why));
        }
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            "metadata.finalizers",
            Some(object.at(&["metadata", "finalizers"]).map_or_else(String::new, Value::to_string)),
            format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"),
        ));
    }
}

/// Checks what an update may not change.
#[must_use]
pub fn validate_update(object: &Object, old: &Object, resource: &Resource) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.deletion_timestamp().is_some() {
        let had = old.finalizers();
        let added: Vec<String> =
            object.finalizers().into_iter().filter(|f| !had.contains(f)).map(quote).collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        let value = object.str_at(&["metadata", field]);
        if value != old.str_at(&["metadata", field]) {
            errors.push(FieldError::invalid_str(format!("metadata.{field}"), value, "field is immutable"));
        }
    }
    errors.extend(validate(object, resource).into_iter().filter(|e| {
        // Names are checked at creation; an old object stays updatable when rules change.
        e.field != "metadata.name" && e.field != "metadata.generateName" && e.field != "metadata.namespace"
    }));
    errors
}
