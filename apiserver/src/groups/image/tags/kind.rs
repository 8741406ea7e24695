//! [`TagKind`]: what `imagestreamtags` and `imagetags` decide for themselves; all else is alike.

use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Map, Value};

use crate::resource::Resource;

/// One of the two resources that show a tag of a stream.
pub(super) trait TagKind: Send + Sync {
    /// The description.
    fn resource(&self) -> &'static Resource;

    /// What the resource is called when a tag is there already.
    fn taken_as(&self) -> &'static str;

    /// Whether a tag whose image is gone is gone as well.
    fn needs_image(&self) -> bool;

    /// The table cells.
    fn row(&self, object: &Object) -> Vec<Value>;

    /// The tags of a stream that may be shown, sorted.
    fn names(&self, stream: &Object) -> Vec<String>;

    /// A tag of a stream with its image, where that is known; `None` where the stream has no such tag, unless it is
    /// to be shown empty.
    fn render(&self, stream: &Object, tag: &str, image: Option<&Object>, empty: bool) -> Option<Object>;

    /// Completes what a client wants to create; `tag` is what its name says.
    fn prepare_create(&self, object: &mut Object, tag: &str);

    /// Errors of what a client wants to create, beside those of its metadata.
    fn validate_create(&self, object: &Object) -> Vec<FieldError>;

    /// The spec tag that a creator wants.
    fn wanted(&self, object: &Object) -> Option<Value>;

    /// Restores what an updater may not change; both are whole objects.
    fn prepare_update(&self, new: &mut Object, old: &Object, stream: &Object);

    /// Errors of a change, beside those that any metadata can have.
    fn validate_update(&self, new: &Object, old: &Object, stream: &Object) -> Vec<FieldError>;

    /// Makes an updated tag the stream's.
    ///
    /// # Errors
    /// What the client sees.
    fn apply(&self, stream: &mut Object, tag: &str, new: &Object) -> Result<(), Status>;
}

/// A value with all that is empty left out, at any depth: Go tells no empty list or map from none.
pub(super) fn semantic(value: Option<&Value>) -> Value {
    match value {
        None => Value::Null,
        Some(Value::Object(map)) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), semantic(Some(value))));
            let kept: Map<String, Value> = kept.filter(|(_, value)| !value.is_null()).collect();
            if kept.is_empty() { Value::Null } else { kept.into() }
        }
        Some(Value::Array(list)) if list.is_empty() => Value::Null,
        Some(Value::Array(list)) => list.iter().map(|value| semantic(Some(value))).collect(),
        Some(Value::String(text)) if text.is_empty() => Value::Null,
        Some(other) => other.clone(),
    }
}

/// An object in a field; `None` for null and for none.
pub(super) fn object_in<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.0.get(field).filter(|value| value.is_object())
}
