//! Table rows of the computed resources.

use jiff::Timestamp;
use picoshift_machinery::Object;
use serde_json::Value;

use super::kind::object_in;
use crate::groups::image::model::conditions::IMPORT_SUCCESS;
use crate::groups::image::model::status_tags::items;
use crate::groups::image::model::{Event, TagReference};
use crate::groups::image::names::{split_stream_image, split_stream_tag};
use crate::groups::image::printing::age;

/// How old something is of which no time is known: as long as Go can count.
const UNKNOWN_AGE: &str = "292 years ago";

/// The cells of an image stream tag.
pub(super) fn stream_tag(object: &Object, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.str_at(&["image", "dockerImageReference"]).into(),
        since_creation(object, now).into(),
        object.str_at(&["image", "metadata", "name"]).into(),
    ]
}

/// The cells of an image stream image.
pub(super) fn stream_image(object: &Object, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        since_creation(object, now).into(),
        object.str_at(&["image", "dockerImageReference"]).into(),
        object.str_at(&["image", "metadata", "name"]).into(),
    ]
}

fn since_creation(object: &Object, now: Timestamp) -> String {
    let age = age(object.creation_timestamp(), now);
    if age.is_empty() { UNKNOWN_AGE.to_owned() } else { age }
}

/// The cells of an image tag.
pub(super) fn image_tag(object: &Object, now: Timestamp) -> Vec<Value> {
    let spec = object_in(object, "spec").map(Spec::read).unwrap_or_default();
    let status = object_in(object, "status");
    let Spec { word, source, wrong, generation } = spec;
    let mut cells = Cells { spec: word, source, status: wrong.to_owned(), last: None };
    let mut count = 0;
    if let Some(status) = status {
        let events = items(status);
        count = events.len();
        if let Some(newest) = events.first() {
            cells.take_event(&Event::read(newest), generation);
        }
        let conditions = status.get("conditions").and_then(Value::as_array);
        for condition in conditions.into_iter().flatten() {
            cells.take_condition(condition);
        }
    }
    let Cells { spec, source, status, last } = cells;
    vec![
        object.name().into(),
        spec.into(),
        if status.is_empty() { source } else { status }.into(),
        if count > 0 { count.into() } else { Value::Null },
        last.map_or_else(String::new, |last| age(&last.to_string(), now)).into(),
    ]
}

/// What the spec of an image tag says.
#[derive(Default)]
struct Spec {
    /// How the tag is set.
    word: &'static str,
    /// Where it points to.
    source: String,
    /// What is wrong with it.
    wrong: &'static str,
    generation: i64,
}

impl Spec {
    fn read(spec: &Value) -> Self {
        let tag = TagReference(spec);
        let mut word = if tag.is_reference() { "Ref" } else { "Tag" };
        if tag.is_scheduled() {
            word = "Scheduled";
        }
        let generation = tag.generation().unwrap_or(0);
        let Some(from) = tag.from() else { return Self { generation, ..Self::default() } };
        let (mut source, mut wrong) = (String::new(), "");
        match from.kind() {
            "DockerImage" => source = from.name().to_owned(),
            "ImageStreamImage" => match split_stream_image(from.name()) {
                Some((_, id)) => source = format!("image/{id}"),
                None => wrong = "InvalidRefName",
            },
            "ImageStreamTag" => {
                source = match from.namespace() {
                    "" => format!("istag/{}", from.name()),
                    namespace => format!("istag {namespace}/{}", from.name()),
                };
                // A tag of the same stream: it follows.
                if split_stream_tag(from.name()).is_none() {
                    word = "Track";
                }
            }
            _ => wrong = "InvalidRefKind",
        }
        Self { word, source, wrong, generation }
    }
}

/// The cells as they come to be.
struct Cells {
    spec: &'static str,
    source: String,
    status: String,
    last: Option<Timestamp>,
}

impl Cells {
    fn take_event(&mut self, event: &Event, generation: i64) {
        self.last = event.created.parse().ok();
        let known = generation > 0 && event.generation > 0;
        if known && event.generation < generation {
            "Importing".clone_into(&mut self.status);
        } else if !event.image.is_empty() {
            self.source = format!("image/{}", event.image);
        } else if !event.docker_image_reference.is_empty() {
            self.source.clone_from(&event.docker_image_reference);
        }
        let unset = !self.source.is_empty() && self.spec.is_empty();
        // What is newer than the spec was pushed (or the spec was set back). Of a tag that follows nobody can tell.
        let newer = self.spec != "Track" && known && event.generation > generation;
        if unset || newer {
            self.spec = "Push";
        }
    }

    fn take_condition(&mut self, condition: &Value) {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or("");
        if text("type") == IMPORT_SUCCESS && text("status") == "False" {
            self.status = format!("ImportFailed ({})", text("reason"));
        }
        let changed: Option<Timestamp> = text("lastTransitionTime").parse().ok();
        self.last = self.last.max(changed);
    }
}
