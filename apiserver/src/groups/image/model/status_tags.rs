//! `status.tags`: what each tag meant, newest event first.

use std::collections::BTreeSet;

use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value, json};

use super::{DEFAULT_TAG, Event, collapse, list, list_mut, put, remove, text};
use crate::groups::image::GROUP;
use crate::groups::image::reference::image_matches;

/// The entries of `status.tags`, sorted by tag.
#[must_use]
pub fn status_tags(stream: &Object) -> &[Value] {
    list(stream, "status")
}

/// The entry of a tag: `tag`, `items` (null for none) and, where there are any, `conditions`.
#[must_use]
pub fn status_tag<'a>(stream: &'a Object, tag: &str) -> Option<&'a Value> {
    status_tags(stream).iter().rev().find(|entry| text(entry, "tag") == tag)
}

/// The events of an entry of `status.tags`, newest first.
#[must_use]
pub fn items(entry: &Value) -> &[Value] {
    entry.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The newest event of a tag; an empty name means [`DEFAULT_TAG`].
#[must_use]
pub fn latest_event(stream: &Object, tag: &str) -> Option<Event> {
    let tag = if tag.is_empty() { DEFAULT_TAG } else { tag };
    items(status_tag(stream, tag)?).first().map(Event::read)
}

/// Records an event of a tag; answers whether anything changed. Nothing happens when the newest event is the same.
/// An event of the same pull spec or of the same image is collapsed into the newest one, which keeps its time; any
/// other goes before it. Whatever changes clears the tag's conditions.
pub fn add_event(stream: &mut Object, tag: &str, next: &Event) -> bool {
    let tags = list_mut(stream, "status");
    let at = tags.binary_search_by(|entry| text(entry, "tag").cmp(tag));
    let entry = match at {
        Ok(at) => &mut tags[at],
        Err(at) => {
            tags.insert(at, json!({"tag": tag, "items": null}));
            &mut tags[at]
        }
    };
    let Value::Object(entry) = entry else { return false };
    let events = match entry.get_mut("items") {
        Some(Value::Array(events)) if !events.is_empty() => events,
        _ => {
            // As upstream, which makes a new entry without conditions.
            entry.remove("conditions");
            entry.insert("items".to_owned(), json!([next.to_value()]));
            return true;
        }
    };
    let mut newest = events.first().map(Event::read).unwrap_or_default();
    let same_reference = newest.docker_image_reference == next.docker_image_reference;
    let same_image = newest.image == next.image;
    if !same_reference && !same_image {
        events.insert(0, next.to_value());
    } else {
        if same_reference && same_image && newest.generation == next.generation {
            return false;
        }
        newest.docker_image_reference.clone_from(&next.docker_image_reference);
        newest.image.clone_from(&next.image);
        newest.generation = next.generation;
        events[0] = newest.to_value();
    }
    entry.remove("conditions");
    true
}

/// Takes the newest event of a tag away; its entry goes with the last event, unless it has conditions.
pub fn remove_latest(stream: &mut Object, tag: &str) {
    let Some(Value::Array(tags)) = stream.object_mut("status").get_mut("tags") else { return };
    let Some(Value::Object(entry)) = tags.iter_mut().find(|entry| text(entry, "tag") == tag) else { return };
    if let Some(Value::Array(events)) = entry.get_mut("items")
        && !events.is_empty()
    {
        events.remove(0);
        if events.is_empty() {
            entry.insert("items".to_owned(), Value::Null);
            if !entry.contains_key("conditions") {
                remove(stream, "status", "tag", tag);
            }
        }
    }
}

/// Sets the generation of a tag's newest event.
pub fn set_latest_generation(stream: &mut Object, tag: &str, generation: i64) {
    let Some(Value::Array(tags)) = stream.object_mut("status").get_mut("tags") else { return };
    let Some(entry) = tags.iter_mut().find(|entry| text(entry, "tag") == tag) else { return };
    if let Some(newest) = entry.get_mut("items").and_then(|items| items.get_mut(0))
        && let Value::Object(newest) = newest
    {
        newest.insert("generation".to_owned(), generation.into());
    }
}

/// Removes a tag's history and conditions; answers whether there were any.
pub fn remove_status_tag(stream: &mut Object, tag: &str) -> bool {
    remove(stream, "status", "tag", tag)
}

/// Removes entries that have neither events nor conditions.
pub fn remove_empty(stream: &mut Object) {
    let status = stream.object_mut("status");
    let Some(Value::Array(tags)) = status.get_mut("tags") else { return };
    tags.retain(|entry| !items(entry).is_empty() || entry.get("conditions").is_some());
    if tags.is_empty() {
        status.remove("tags");
    }
}

/// The event of the image that `id` means in a stream: a whole image name, or the beginning of one or of its hex
/// digits. Its time is `now`, its generation 0.
///
/// # Errors
/// 404 when no event has such an image, 409 when several images are meant.
pub fn resolve_image(stream: &Object, id: &str, now: &str) -> Result<Event, Status> {
    let mut found: Option<Event> = None;
    let mut images = BTreeSet::new();
    for item in status_tags(stream).iter().flat_map(items) {
        let image = text(item, "image");
        if image_matches(image, id) && images.insert(image) {
            found = Some(Event::read(item));
        }
    }
    match (found, images.len()) {
        (Some(event), 1) => Ok(Event { created: now.to_owned(), generation: 0, ..event }),
        (None, _) => Err(Status::not_found(GROUP, "imagestreamimage", id)),
        (Some(_), _) => {
            let list: Vec<&str> = images.into_iter().collect();
            let why = format!("multiple images match the prefix {id:?}: {}", list.join(", "));
            Err(Status::conflict(GROUP, "imagestreamimage", id, &why))
        }
    }
}

/// Makes `status.tags` of a decoded stream canonical.
pub(super) fn normalise(status: &mut Map<String, Value>) {
    match status.get_mut("tags") {
        Some(Value::Array(tags)) if !tags.is_empty() => {
            tags.iter_mut().for_each(complete);
            collapse(tags, "tag");
        }
        _ => {
            status.remove("tags");
        }
    }
}

fn complete(entry: &mut Value) {
    let Value::Object(entry) = entry else { return };
    entry.entry("tag").or_insert_with(|| json!(""));
    match entry.get_mut("items") {
        Some(Value::Array(events)) if !events.is_empty() => {
            for event in events {
                *event = Event::read(event).to_value();
            }
        }
        _ => {
            entry.insert("items".to_owned(), Value::Null);
        }
    }
    if entry.get("conditions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        entry.remove("conditions");
    }
}

/// Puts a whole entry of `status.tags` in, in place of the one of its tag.
pub(super) fn put_entry(stream: &mut Object, entry: Value) {
    put(list_mut(stream, "status"), "tag", entry);
}
