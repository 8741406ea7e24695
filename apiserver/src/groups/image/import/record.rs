//! What an import changes in its stream (`registry/imagestreamimport/rest.go`): pure functions of the stream and of
//! what was found.

use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::pull::{Found, Pulled, PulledAll};
use super::request::Wanted;
use crate::groups::image::model::conditions::{clear_conditions, has_condition};
use crate::groups::image::model::spec_tags::set_spec_tag_field;
use crate::groups::image::model::{
    Condition, Event, REPOSITORY_CHECK, TagReference, latest_event, record_import, set_condition,
    set_spec_tag, spec_tag, status_tag, status_tags,
};
use crate::groups::image::reference::Reference;

/// Records everything; `now` is RFC 3339. A stream that an import was tried for before, and that nothing is new for,
/// stays as it is, and so does a tag that somebody changed or deleted since the import began with `began`.
pub(super) fn record(stream: &mut Object, began: &Object, import: &Object, pulled: &PulledAll, now: &str) {
    let mut changed = stream.clone();
    let recorder = Recorder { generation: stream.generation().unwrap_or(0) + 1, now };
    if let (Some(repository), Some(wanted)) = (&pulled.repository, Wanted::repository(import)) {
        for image in &repository.images {
            if overtaken(began, stream, &image.tag, image.outcome.is_ok()) {
                continue;
            }
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
        let tag = wanted.to().filter(|tag| !overtaken(began, stream, tag, outcome.is_ok()));
        let Some(tag) = tag else { continue };
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

/// Whether a tag is wanted to be something else than when the import began, or was asked for again: what was found is
/// then no news of it. Upstream's answer is a conflict, and the client begins again. A success counts beside that of
/// another import, a failure does not.
fn overtaken(began: &Object, stream: &Object, tag: &str, success: bool) -> bool {
    match (spec_tag(began, tag), spec_tag(stream, tag)) {
        (None, None) => false,
        (Some(before), Some(now)) => {
            ["from", "importPolicy", "reference"]
                .iter()
                .any(|field| before.0.get(*field) != now.0.get(*field))
                || before.generation() != now.generation()
                    && !(success && now.generation().is_some_and(|wanted| wanted <= answered(stream, tag)))
        }
        _ => true,
    }
}

/// The newest generation of a tag for which an image or a failure was recorded.
fn answered(stream: &Object, tag: &str) -> i64 {
    let Some(entry) = status_tag(stream, tag) else { return 0 };
    let image = status_tags::items(entry).iter().map(Event::read).find(|event| !event.image.is_empty());
    let conditions = entry.get("conditions").and_then(Value::as_array);
    let failures =
        conditions.into_iter().flatten().filter_map(|condition| condition.get("generation")?.as_i64());
    failures.chain(image.map(|event| event.generation)).fold(0, i64::max)
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
