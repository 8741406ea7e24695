//! Requests that SCCs have no say in.

use serde_json::{Map, Value};

/// Subresources that change nothing an SCC looks at, or are looked at elsewhere.
const SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
/// Annotations that a pod may get at any time.
const ANNOTATIONS: [&str; 1] = ["k8s.ovn.org/pod-networks"];
/// What a garbage collector may change: who may delete may do this too. Who owns which field says nothing.
const METADATA: [&str; 4] = ["ownerReferences", "finalizers", "selfLink", "managedFields"];

pub(super) fn by_subresource(subresource: &str) -> bool {
    SUBRESOURCES.contains(&subresource)
}

/// Whether an update changes nothing but what is ignored.
pub(super) fn by_changes(new: &Value, old: &Value) -> bool {
    same(&new["spec"], &old["spec"])
        && same_annotations(new, old)
        && same_but(&new["metadata"], &old["metadata"], &[&METADATA[..], &["annotations"]].concat())
        && same_but(new, old, &["spec", "metadata"])
}

fn same_annotations(new: &Value, old: &Value) -> bool {
    same_but(&new["metadata"]["annotations"], &old["metadata"]["annotations"], &ANNOTATIONS)
}

/// Whether two objects are one but for some of their fields.
fn same_but(one: &Value, other: &Value, fields: &[&str]) -> bool {
    let empty = Map::new();
    let [one, other] = [one, other].map(|value| value.as_object().unwrap_or(&empty));
    let covers = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter()
            .filter(|(field, _)| !fields.contains(&field.as_str()))
            .all(|(field, value)| same(value, other.get(field).unwrap_or(&Value::Null)))
    };
    covers(one, other) && covers(other, one)
}

/// Whether two values are one to Kubernetes: what is empty is what is absent, but for objects.
fn same(one: &Value, other: &Value) -> bool {
    let none = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    match (one, other) {
        (Value::Object(_), Value::Object(_)) => same_but(one, other, &[]),
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len() && first.iter().zip(second).all(|(first, second)| same(first, second))
        }
        _ => one == other || (none(one) && none(other)),
    }
}
