//! What an import changes in its stream (`registry/imagestreamimport/rest.go`): pure functions of the stream and of
//! what was found.

use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::pull::{Found, Pulled, PulledAll};
use super::request::Wanted;
use crate::groups::image::model::spec_tags::set_spec_tag_field;
use crate::groups::image::model::{
    Condition, Event, REPOSITORY_CHECK, TagReference, latest_event, record_import, set_condition,
    set_spec_tag, spec_tag, status_tag,
};
use crate::groups::image::reference::Reference;

/// Records everything; `now` is RFC 3339. A stream that an import was tried for before, and that nothing is new for,
/// stays as it is, and so does a tag that somebody changed or deleted since the import began with `began`.
pub(super) fn record(stream: &mut Object, began: &Object, import: &Object, pulled: &PulledAll, now: &str) {
    let mut changed = stream.clone();
    let recorder = Recorder { generation: stream.generation().unwrap_or(0) + 1, now };
    if let (Some(repository), Some(wanted)) = (&pulled.repository, Wanted::repository(import)) {
        for image in repository.images.iter().filter(|image| !overtaken(began, stream, &image.tag)) {
            // Later imports follow each tag by itself.
            let from = Reference::parse(wanted.from())
                .map(|from| Reference { tag: image.tag.clone(), id: String::new(), ..from }.exact());
            match (&image.outcome, from) {
                (Err(status), _) => recorder.failed(&mut changed, &image.tag, status),
                (Ok(found), Ok(from)) => recorder.found(&mut changed, &image.tag, &from, wanted, found),
                (Ok(_), Err(_)) => {}
            }
        }
    }
    for (wanted, Pulled { outcome, .. }) in Wanted::images(import).into_iter().zip(&pulled.images) {
        let Some(tag) = wanted.to().filter(|tag| !overtaken(began, stream, tag)) else { continue };
        match outcome {
            Ok(found) => recorder.found(&mut changed, tag, wanted.from(), wanted, found),
            Err(status) => {
                recorder.failed(&mut changed, tag, status);
                if spec_tag(&changed, tag).is_none() {
                    write_spec_tag(&mut changed, tag, wanted.from(), wanted);
                }
            }
        }
    }
    if changed != *stream || stream.annotation(REPOSITORY_CHECK).is_none() {
        changed.set_annotation(REPOSITORY_CHECK, now);
        *stream = changed;
    }
}

struct Recorder<'a> {
    /// The generation that the stream will have.
    generation: i64,
    now: &'a str,
}

impl Recorder<'_> {
    fn found(&self, stream: &mut Object, tag: &str, from: &str, wanted: Wanted<'_>, found: &Found) {
        let event = Event {
            created: self.now.to_owned(),
            docker_image_reference: found.image.str_at(&["dockerImageReference"]).to_owned(),
            image: found.image.name().to_owned(),
            generation: self.generation,
        };
        if changes(stream, tag, &event) {
            write_spec_tag(stream, tag, from, wanted);
            record_import(stream, tag, &event);
        }
        set_spec_tag_field(stream, tag, "importPolicy", wanted.import_policy());
        clear_conditions(stream, tag);
    }

    fn failed(&self, stream: &mut Object, tag: &str, status: &Status) {
        let message =
            if status.message.is_empty() { "unknown error prevented import" } else { &status.message };
        let condition = Condition::import_failed(&status.reason, message, self.generation, self.now);
        if has_condition(stream, tag, &condition) {
            return;
        }
        set_condition(stream, tag, &condition);
        // The failure is of the generation that the stream will have: so is the tag then.
        set_spec_tag_field(stream, tag, "generation", 0.into());
    }
}

/// Whether a tag means something else than when the import began: what was found is then no news of it. Upstream's
/// answer is a conflict, and the client begins again.
fn overtaken(began: &Object, stream: &Object, tag: &str) -> bool {
    let from = |stream| spec_tag(stream, tag).map(|tag| tag.0.get("from"));
    began != stream && from(began) != from(stream)
}

/// Whether an event is news for its tag.
fn changes(stream: &Object, tag: &str, event: &Event) -> bool {
    let Some(previous) = latest_event(stream, tag) else { return true };
    let Some(wanted) = spec_tag(stream, tag).and_then(TagReference::generation) else { return true };
    !previous.means(event) || wanted > previous.generation
}

/// Writes the spec tag of what is imported; a reference policy that it has stays.
fn write_spec_tag(stream: &mut Object, tag: &str, from: &str, wanted: Wanted<'_>) {
    let mut entry = spec_tag(stream, tag).map_or_else(|| json!({"name": tag}), |tag| tag.0.clone());
    let Value::Object(fields) = &mut entry else { return };
    let has_policy =
        fields.get("referencePolicy").and_then(|policy| policy.get("type")).and_then(Value::as_str);
    if has_policy.is_none_or(str::is_empty) {
        fields.insert("referencePolicy".to_owned(), wanted.reference_policy());
    }
    fields.insert("from".to_owned(), json!({"kind": "DockerImage", "name": from}));
    fields.insert("generation".to_owned(), 0.into());
    fields.insert("importPolicy".to_owned(), wanted.import_policy());
    set_spec_tag(stream, entry);
}

/// Whether a tag has a condition that says the same, also in its message.
fn has_condition(stream: &Object, tag: &str, condition: &Condition) -> bool {
    let conditions = status_tag(stream, tag).and_then(|entry| entry.get("conditions")?.as_array());
    conditions.into_iter().flatten().any(|other| {
        [
            ("type", &condition.r#type),
            ("status", &condition.status),
            ("reason", &condition.reason),
            ("message", &condition.message),
        ]
        .into_iter()
        .all(|(field, wanted)| other.get(field).and_then(Value::as_str).unwrap_or_default() == wanted)
    })
}

fn clear_conditions(stream: &mut Object, tag: &str) {
    let tags = stream.object_mut("status").get_mut("tags").and_then(Value::as_array_mut);
    for entry in tags.into_iter().flatten().filter_map(Value::as_object_mut) {
        if entry.get("tag").and_then(Value::as_str) == Some(tag) {
            entry.remove("conditions");
        }
    }
}
