//! Metadata of stored objects that the server sets. What it checks is in `object_meta`.

use picoshift_machinery::{Object, names};
use rand::RngExt;
use serde_json::Value;

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
    if !namespace.is_empty() {
        object.set_metadata("namespace", namespace);
    }
}

/// Gives an object the `managedFields` that it had.
pub fn keep_owners(object: &mut Object, old: &Object) {
    object.set_metadata("managedFields", old.at(&["metadata", "managedFields"]).cloned().unwrap_or_default());
}

/// Restores the metadata that an update does not change, whatever it says (`rest.BeforeUpdate`), `managedFields` apart:
/// who tracks them has set them, who does not calls [`keep_owners`] too. Another uid or
/// namespace, or a deletion that an update means to begin, stays for validation to refuse.
pub fn carry_over(object: &mut Object, old: &Object) {
    for field in ["generation", "selfLink"] {
        let value = old.at(&["metadata", field]).cloned().unwrap_or(Value::Null);
        object.set_metadata(field, value);
    }
    for field in ["uid", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let missing = object.at(&["metadata", field]).is_none_or(Value::is_null);
        let kept = old.at(&["metadata", field]).filter(|_| missing || field.ends_with("Timestamp"));
        if let Some(kept) = kept {
            object.set_metadata(field, kept.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_changes_no_time_and_begins_no_deletion_unseen() {
        let carried = |new: Value, old: Value| {
            let object = |metadata: Value| Object::from_value(json!({"metadata": metadata})).unwrap();
            let mut new = object(new);
            carry_over(&mut new, &object(old));
            new.0["metadata"].clone()
        };
        let old = json!({"uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"});
        assert_eq!(carried(json!({"creationTimestamp": "2021-01-01T00:00:00Z"}), old.clone()), old);
        let begun = carried(json!({"uid": "v", "deletionTimestamp": "2021-01-01T00:00:00Z"}), old);
        assert_eq!(
            (&begun["uid"], &begun["deletionTimestamp"]),
            (&json!("v"), &json!("2021-01-01T00:00:00Z"))
        );
        let going = json!({"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0});
        let kept = carried(json!({"deletionTimestamp": "2021-01-01T00:00:00Z"}), going.clone());
        assert_eq!(kept, going);
        assert_eq!(carried(json!({"deletionGracePeriodSeconds": 7}), going)["deletionGracePeriodSeconds"], 7);
    }
}
