//! Conditions of a status tag: what went wrong with its last import.

use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

use super::status_tags::{put_entry, status_tag};

/// The condition that says how an import went.
pub const IMPORT_SUCCESS: &str = "ImportSuccess";

/// A condition of a status tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// For example [`IMPORT_SUCCESS`].
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// RFC 3339.
    pub last_transition_time: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Generation of the spec tag that the condition is about.
    pub generation: i64,
}

impl Condition {
    /// `ImportSuccess=False`.
    #[must_use]
    pub fn import_failed(reason: &str, message: &str, generation: i64, now: &str) -> Self {
        Self {
            r#type: IMPORT_SUCCESS.to_owned(),
            status: "False".to_owned(),
            last_transition_time: now.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            generation,
        }
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), json!(self.r#type));
        map.insert("status".to_owned(), json!(self.status));
        map.insert("lastTransitionTime".to_owned(), json!(self.last_transition_time));
        for (field, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                map.insert(field.to_owned(), json!(text));
            }
        }
        map.insert("generation".to_owned(), json!(self.generation));
        Value::Object(map)
    }
}

/// Makes `condition` the only condition of a tag; the tag's history stays, and is `items: null` where there is none.
pub fn set_condition(stream: &mut Object, tag: &str, condition: &Condition) {
    let mut entry = status_tag(stream, tag).cloned().unwrap_or_else(|| json!({"tag": tag, "items": null}));
    if let Value::Object(entry) = &mut entry {
        entry.insert("conditions".to_owned(), json!([condition.to_value()]));
    }
    put_entry(stream, entry);
}

/// Whether a tag has a condition that says the same, also in its message.
#[must_use]
pub fn has_condition(stream: &Object, tag: &str, condition: &Condition) -> bool {
    let conditions =
        status_tag(stream, tag).and_then(|entry| entry.get("conditions")).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|other| {
        [
            ("type", &condition.r#type),
            ("status", &condition.status),
            ("reason", &condition.reason),
            ("message", &condition.message),
        ]
        .iter()
        .all(|(field, wanted)| super::text(other, field) == wanted.as_str())
    })
}

/// Removes the conditions of a tag.
pub fn clear_conditions(stream: &mut Object, tag: &str) {
    let tags = stream.object_mut("status").get_mut("tags").and_then(Value::as_array_mut);
    for entry in tags.into_iter().flatten().filter(|entry| super::text(entry, "tag") == tag) {
        if let Value::Object(entry) = entry {
            entry.remove("conditions");
        }
    }
}
