//! `kubectl.kubernetes.io/last-applied-configuration`: what a client-side apply left, which a server-side apply by
//! kubectl takes over (`managedfields/internal/lastapplied*.go`).

use serde_json::{Map, Value};

use crate::manager::FieldManager;
use crate::set::FieldSet;
use crate::typed::{Duplicates, Typed};
use crate::value;

/// The annotation.
pub(crate) const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager for which it is kept; whoever wants none of it takes another name.
pub(crate) const KUBECTL: &str = "kubectl";
/// Limit of all annotations together, in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

/// The annotation of an object; `None` where it is absent or empty.
fn last_applied(object: &Value) -> Option<&str> {
    annotations(object)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The fields that were applied by the client and are still as they were: about these a conflict is none.
pub(crate) fn still_applied(manager: &FieldManager, live: &Value) -> Option<FieldSet> {
    let text = last_applied(live)?;
    let applied: Value = serde_json::from_str(text).ok()?;
    let same = |field: &str, wanted: &str| applied.get(field).and_then(Value::as_str) == Some(wanted);
    if !same("apiVersion", &manager.api_version) || !same("kind", &manager.kind) {
        return None;
    }
    let typed = |value| Typed::new(&manager.schema, manager.r#type, value, Duplicates::Refused).ok();
    let (live, applied) = (typed(live)?, typed(&applied)?);
    let changes = applied.compare(&live).ok()?;
    let set = applied.to_field_set();
    Some(set.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Brings the annotation of an object that has one up to what was applied now.
pub(crate) fn refresh(object: &mut Value, config: &Value) {
    if last_applied(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", value::json(&config));
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_MAX {
        annotations.remove(ANNOTATION);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_annotation_goes_when_it_would_be_too_large() {
        let mut object = json!({"metadata": {"annotations": {ANNOTATION: "old", "b": "c"}}});
        refresh(&mut object, &json!({"a": "<", "metadata": {"annotations": {ANNOTATION: "x", "d": "e"}}}));
        let wanted = "{\"a\":\"\\u003c\",\"metadata\":{\"annotations\":{\"d\":\"e\"}}}\n";
        assert_eq!(last_applied(&object), Some(wanted));
        refresh(&mut object, &json!({"a": "x".repeat(ANNOTATIONS_MAX)}));
        assert_eq!(object, json!({"metadata": {"annotations": {"b": "c"}}}));
        refresh(&mut object, &json!({"a": 1}));
        assert_eq!(last_applied(&object), None);
    }
}
