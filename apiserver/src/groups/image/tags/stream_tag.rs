//! `imagestreamtags`: a tag with the image that it means.

use std::collections::BTreeMap;

use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Map, Value, json};

use super::columns::IMAGE_STREAM_TAGS;
use super::kind::{TagKind, object_in, semantic};
use super::{embedded, row};
use crate::groups::image::model::spec_tags::complete;
use crate::groups::image::model::{
    Event, TagReference, latest_event, set_spec_tag, spec_tag, status_tag, status_tags,
};
use crate::groups::image::names::join_stream_tag;
use crate::groups::image::streams::validation::tag_reference;
use crate::resource::Resource;

/// See the module.
pub(super) struct StreamTags;

impl TagKind for StreamTags {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAM_TAGS
    }

    fn taken_as(&self) -> &'static str {
        IMAGE_STREAM_TAGS.singular
    }

    fn needs_image(&self) -> bool {
        true
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        row::stream_tag(object, jiff::Timestamp::now())
    }

    fn names(&self, stream: &Object) -> Vec<String> {
        status_tags(stream).iter().filter_map(|entry| entry.get("tag")?.as_str()).map(str::to_owned).collect()
    }

    fn render(&self, stream: &Object, tag: &str, image: Option<&Object>, empty: bool) -> Option<Object> {
        let event = latest_event(stream, tag)
            .filter(|event| !event.image.is_empty() || !event.docker_image_reference.is_empty());
        let event = match event {
            Some(event) => event,
            None if empty => Event { created: stream.creation_timestamp().to_owned(), ..Event::default() },
            None => return None,
        };
        let spec = spec_tag(stream, tag);
        let annotations = spec.map(|tag| annotations_of(tag.0)).unwrap_or_default();
        let mut shown = match image {
            Some(image) => embedded::image(image),
            None => embedded::unknown_image(&event.image),
        };
        if image.is_some() {
            embedded::annotate(&mut shown, &annotations);
        }
        embedded::set_pull_spec(&mut shown, embedded::pull_spec(stream, tag, &event));

        let mut object = Object::new(&IMAGE_STREAM_TAGS.gvk.api_version(), IMAGE_STREAM_TAGS.gvk.kind);
        object.0.insert("metadata".to_owned(), metadata(stream, tag, &event, &annotations).into());
        object.0.insert("tag".to_owned(), spec.map_or(Value::Null, |tag| tag.0.clone()));
        object.0.insert("generation".to_owned(), event.generation.into());
        let lookup = stream.at(&["spec", "lookupPolicy"]).cloned();
        object.0.insert("lookupPolicy".to_owned(), lookup.unwrap_or_else(|| json!({"local": false})));
        if let Some(conditions) = status_tag(stream, tag).and_then(|entry| entry.get("conditions")) {
            object.0.insert("conditions".to_owned(), conditions.clone());
        }
        object.0.insert("image".to_owned(), shown.into());
        Some(object)
    }

    fn prepare_create(&self, object: &mut Object, tag: &str) {
        complete_tag(object);
        if let Some(Value::Object(given)) = object.0.get_mut("tag")
            && given.get("name").and_then(Value::as_str).unwrap_or("").is_empty()
        {
            given.insert("name".to_owned(), tag.into());
        }
        object.0.remove("conditions");
        object.0.insert("image".to_owned(), embedded::unknown_image("").into());
    }

    fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        tag_errors(object)
    }

    fn wanted(&self, object: &Object) -> Option<Value> {
        object_in(object, "tag").cloned()
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, stream: &Object) {
        // Clients of old send none.
        if new.labels().is_empty() && !stream.labels().is_empty() {
            let labels = stream.at(&["metadata", "labels"]).cloned();
            new.set_metadata("labels", labels.unwrap_or(Value::Null));
        }
        complete_tag(new);
        // Nobody has to write annotations in both places.
        let annotations = annotations(new);
        if let Some(Value::Object(tag)) = new.0.get_mut("tag") {
            tag.insert("annotations".to_owned(), annotations);
        }
        for field in ["conditions", "image"] {
            match old.0.get(field) {
                Some(value) => new.0.insert(field.to_owned(), value.clone()),
                None => new.0.remove(field),
            };
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, _stream: &Object) -> Vec<FieldError> {
        let mut errors = tag_errors(new);
        let rest = |object: &Object| {
            let mut metadata = object.0.get("metadata").cloned().unwrap_or(Value::Null);
            if let Value::Object(metadata) = &mut metadata {
                metadata.remove("annotations");
            }
            semantic(Some(&metadata))
        };
        if rest(new) != rest(old) {
            let why = "may not update fields other than metadata.annotations";
            errors.push(FieldError::invalid_str("metadata", "", why));
        }
        errors
    }

    fn apply(&self, stream: &mut Object, tag: &str, new: &Object) -> Result<(), Status> {
        let had = spec_tag(stream, tag).map(|had| had.0.clone());
        let Some(mut wanted) = object_in(new, "tag").cloned().or(had) else {
            return Err(Status::bad_request(format!(
                "imagestreamtag {tag} is not a spec tag in imagestream {}/{}, cannot be updated",
                stream.namespace(),
                stream.name()
            )));
        };
        if let Value::Object(wanted) = &mut wanted {
            wanted.insert("name".to_owned(), tag.into());
            wanted.insert("annotations".to_owned(), annotations(new));
        }
        set_spec_tag(stream, wanted);
        Ok(())
    }
}

fn metadata(
    stream: &Object,
    tag: &str,
    event: &Event,
    annotations: &BTreeMap<&str, &str>,
) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), join_stream_tag(stream.name(), tag).into());
    for field in ["labels", "namespace", "resourceVersion", "uid"] {
        if let Some(value) = stream.at(&["metadata", field]) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if !event.created.is_empty() {
        metadata.insert("creationTimestamp".to_owned(), event.created.as_str().into());
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), json!(annotations));
    }
    metadata
}

fn annotations_of(tag: &Value) -> BTreeMap<&str, &str> {
    let map = tag.get("annotations").and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The object's own annotations; null for none.
fn annotations(object: &Object) -> Value {
    let annotations = object.annotations();
    if annotations.is_empty() { Value::Null } else { json!(annotations) }
}

fn complete_tag(object: &mut Object) {
    if let Some(tag) = object.0.get_mut("tag") {
        complete(tag);
    }
}

fn tag_errors(object: &Object) -> Vec<FieldError> {
    let Some(tag) = object_in(object, "tag") else { return Vec::new() };
    let mut errors = tag_reference(TagReference(tag), "tag");
    let given = tag.get("annotations").filter(|annotations| !annotations.is_null());
    if given.is_some() && annotations_of(tag) != object.annotations() {
        let why = "tag annotations must not be provided or must be equal to the object meta annotations";
        errors.push(FieldError::invalid_str("tag.annotations", "<map>", why));
    }
    errors
}
