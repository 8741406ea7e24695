//! What an image stream holds, as plain functions over its object: spec tags, the events of its status tags,
//! conditions and generations. Everything that reads or changes a stream goes through here, so that lists stay
//! sorted and complete whoever writes them (`openshift-apiserver/pkg/image/apis/image` and
//! `pkg/image/apiserver/internal/imageutil`).
//!
//! Upstream keeps both lists of tags as maps: of two entries of a name the last one wins, and they are shown by name.

pub mod conditions;
pub mod event;
pub mod generations;
pub mod provisional;
pub mod spec_tags;
pub mod status_tags;

#[cfg(test)]
mod tests;

pub use conditions::{Condition, set_condition};
pub use event::Event;
pub use provisional::{drop_provisional, record_import};
pub use spec_tags::{TagReference, remove_spec_tag, set_spec_tag, spec_tag, spec_tags};
pub use status_tags::{add_event, latest_event, remove_status_tag, resolve_image, status_tag, status_tags};

use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

pub use super::reference::DEFAULT_TAG;

/// On a stream: when its last import was tried.
pub const REPOSITORY_CHECK: &str = "openshift.io/image.dockerRepositoryCheck";
/// On a stream or tag: its registry may be spoken to without TLS.
pub const INSECURE_REPOSITORY: &str = "openshift.io/image.insecureRepository";
/// On an image: the cluster's own registry holds it.
pub const MANAGED: &str = "openshift.io/image.managed";

/// Makes a stream complete and canonical: what a decoded one shows in Go, whoever built it. Lists are sorted by
/// name, of two entries of a name the last one is kept, and every field that Go always writes is there.
pub fn normalise(stream: &mut Object) {
    let spec = stream.object_mut("spec");
    let policy = child(spec, "lookupPolicy");
    policy.entry("local").or_insert_with(|| json!(false));
    prune_text(spec, "dockerImageRepository");
    spec_tags::normalise(spec);
    let status = stream.object_mut("status");
    status.entry("dockerImageRepository").or_insert_with(|| json!(""));
    prune_text(status, "publicDockerImageRepository");
    status_tags::normalise(status);
}

/// The object in a field, made where there is none.
fn child<'a>(map: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(field).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(inner) => inner,
        _ => unreachable!("made an object just above"),
    }
}

/// Removes a text that is absent in Go's encoding when it is empty.
fn prune_text(map: &mut Map<String, Value>, field: &str) {
    if matches!(map.get(field), Some(Value::Null)) || map.get(field).and_then(Value::as_str) == Some("") {
        map.remove(field);
    }
}

/// The list in a field of a top-level object, empty where there is none.
fn list<'a>(stream: &'a Object, field: &str) -> &'a [Value] {
    stream.at(&[field, "tags"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text in a field, empty where there is none.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

/// Sorts a list of named entries; of those of one name the last one is kept.
fn collapse(list: &mut Vec<Value>, key: &str) {
    list.reverse();
    list.sort_by(|a, b| text(a, key).cmp(text(b, key)));
    list.dedup_by(|later, first| text(later, key) == text(first, key));
}

/// Puts an entry into a sorted list of named entries, in place of the one of its name.
fn put(list: &mut Vec<Value>, key: &str, entry: Value) {
    match list.binary_search_by(|other| text(other, key).cmp(text(&entry, key))) {
        Ok(at) => list[at] = entry,
        Err(at) => list.insert(at, entry),
    }
}

/// The list `tags` in a top-level object, made where there is none.
fn list_mut<'a>(stream: &'a mut Object, field: &str) -> &'a mut Vec<Value> {
    let slot = stream.object_mut(field).entry("tags").or_insert(Value::Null);
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    match slot {
        Value::Array(list) => list,
        _ => unreachable!("made a list just above"),
    }
}

/// Removes the entry of a name, and the list when nothing else is in it; answers whether the entry was there.
fn remove(stream: &mut Object, field: &str, key: &str, name: &str) -> bool {
    let map = stream.object_mut(field);
    let Some(Value::Array(list)) = map.get_mut("tags") else { return false };
    let before = list.len();
    list.retain(|entry| text(entry, key) != name);
    let removed = list.len() != before;
    if list.is_empty() {
        map.remove("tags");
    }
    removed
}
