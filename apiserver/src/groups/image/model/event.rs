//! One event in the history of a tag: from when on it meant which image.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::text;

/// An entry of `status.tags[].items`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// RFC 3339; empty for none.
    pub created: String,
    /// Pull spec.
    pub docker_image_reference: String,
    /// Name of the Image object; empty for a reference that was not imported.
    pub image: String,
    /// Generation of the stream (or of the spec tag) that the event belongs to.
    pub generation: i64,
}

impl Event {
    /// Reads an item of `status.tags[].items`; a field of a wrong type reads as empty.
    #[must_use]
    pub fn read(item: &Value) -> Self {
        Self {
            created: text(item, "created").to_owned(),
            docker_image_reference: text(item, "dockerImageReference").to_owned(),
            image: text(item, "image").to_owned(),
            generation: item.get("generation").and_then(Value::as_i64).unwrap_or(0),
        }
    }

    /// The item as Go encodes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let created = if self.created.is_empty() { Value::Null } else { self.created.as_str().into() };
        json!({
            "created": created,
            "dockerImageReference": self.docker_image_reference,
            "image": self.image,
            "generation": self.generation,
        })
    }

    /// Whether both mean the same image by the same pull spec.
    #[must_use]
    pub fn means(&self, other: &Self) -> bool {
        self.image == other.image && self.docker_image_reference == other.docker_image_reference
    }
}
