//! Provisional events. The real server shows nothing for a tag of a pull spec until it was imported; here such a tag
//! has at once an event with its pull spec and without an image, so that nobody waits for a registry. The import
//! takes it away and records what it found, so that the history is then the real server's.

use picoshift_machinery::Object;
use serde_json::Value;

use super::spec_tags::{Source, TagReference};
use super::status_tags::{remove_latest, status_tag};
use super::{Event, add_event, latest_event, spec_tag, text};

/// Whether the newest event of a tag is provisional: the bare pull spec of a spec tag that is to be imported.
#[must_use]
pub fn is_provisional(stream: &Object, tag: &str) -> bool {
    spec_tag(stream, tag).is_some_and(|reference| is_provisional_for(stream, tag, reference))
}

fn is_provisional_for(stream: &Object, tag: &str, reference: TagReference<'_>) -> bool {
    reference.is_imported()
        && latest_event(stream, tag).is_some_and(|event| {
            event.image.is_empty()
                && Some(event.docker_image_reference.as_str()) == reference.from().map(Source::name)
        })
}

/// Resolves a tag of a pull spec to that pull spec, until it is imported. Conditions stay.
pub fn add_provisional(stream: &mut Object, tag: &str, pull_spec: &str, generation: i64, now: &str) {
    let conditions = status_tag(stream, tag).and_then(|entry| entry.get("conditions")).cloned();
    let event = Event {
        created: now.to_owned(),
        docker_image_reference: pull_spec.to_owned(),
        image: String::new(),
        generation,
    };
    add_event(stream, tag, &event);
    if let Some(conditions) = conditions
        && let Some(mut entry) = status_tag(stream, tag).cloned()
        && let Some(map) = entry.as_object_mut()
    {
        map.insert("conditions".to_owned(), conditions);
        super::status_tags::put_entry(stream, entry);
    }
}

/// Takes a tag's provisional event away, if it has one by the spec tag `reference`: because the tag is to be
/// something else now.
pub fn drop_provisional(stream: &mut Object, tag: &str, reference: TagReference<'_>) {
    if is_provisional_for(stream, tag, reference) {
        remove_latest(stream, tag);
    }
}

/// Takes the provisional events of `old` out of a history that a writer of the status, who does not know them, put
/// others upon.
pub fn drop_buried(stream: &mut Object, old: &Object) {
    let Some(Value::Array(tags)) = stream.object_mut("status").get_mut("tags") else { return };
    for entry in tags {
        let tag = text(entry, "tag");
        let Some(buried) = latest_event(old, tag).filter(|_| is_provisional(old, tag)) else { continue };
        let Some(Value::Array(events)) = entry.get_mut("items") else { continue };
        match events.iter().position(|event| Event::read(event).means(&buried)) {
            None | Some(0) => {}
            Some(at) => drop(events.remove(at)),
        }
    }
}

/// Records what an import or a push found: in place of the provisional event, if there is one, else as any event. Answers
/// whether anything changed; conditions are cleared then.
pub fn record_import(stream: &mut Object, tag: &str, event: &Event) -> bool {
    let provisional = is_provisional(stream, tag);
    if provisional {
        remove_latest(stream, tag);
    }
    add_event(stream, tag, event) || provisional
}
