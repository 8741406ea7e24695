//! `imagetags`: a tag with its spec, its history and its image, each of which may be missing.

use std::collections::BTreeSet;

use picoshift_machinery::{FieldError, Object, Status};
use serde_json::Value;

use super::columns::IMAGE_TAGS;
use super::kind::{TagKind, object_in, semantic};
use super::{embedded, row};
use crate::groups::image::model::provisional::is_provisional;
use crate::groups::image::model::spec_tags::complete;
use crate::groups::image::model::status_tags::items;
use crate::groups::image::model::{
    TagReference, latest_event, remove_spec_tag, set_spec_tag, spec_tag, spec_tags, status_tag, status_tags,
};
use crate::groups::image::names::{join_stream_tag, split_stream_tag};
use crate::groups::image::streams::validation::tag_reference;
use crate::resource::Resource;

/// See the module.
pub(super) struct ImageTags;

impl TagKind for ImageTags {
    fn resource(&self) -> &'static Resource {
        &IMAGE_TAGS
    }

    fn taken_as(&self) -> &'static str {
        IMAGE_TAGS.plural
    }

    fn needs_image(&self) -> bool {
        false
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        row::image_tag(object, jiff::Timestamp::now())
    }

    fn names(&self, stream: &Object) -> Vec<String> {
        let status = status_tags(stream).iter().filter_map(|entry| entry.get("tag")?.as_str());
        let names: BTreeSet<&str> = spec_tags(stream).into_keys().chain(status).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn render(&self, stream: &Object, tag: &str, image: Option<&Object>, empty: bool) -> Option<Object> {
        let spec = spec_tag(stream, tag).map(|tag| tag.0.clone());
        let status = status_tag(stream, tag).cloned();
        if spec.is_none() && status.is_none() && !empty {
            return None;
        }
        let shown = match (image, latest_event(stream, tag)) {
            (Some(image), Some(event)) => {
                let mut shown = embedded::image(image);
                embedded::set_pull_spec(&mut shown, embedded::pull_spec(stream, tag, &event));
                Value::Object(shown)
            }
            _ => Value::Null,
        };
        let mut object = Object::new(&IMAGE_TAGS.gvk.api_version(), IMAGE_TAGS.gvk.kind);
        let metadata = stream.0.get("metadata").cloned();
        object.0.insert("metadata".to_owned(), metadata.unwrap_or_default());
        object.set_metadata("name", join_stream_tag(stream.name(), tag));
        object.0.insert("spec".to_owned(), spec.unwrap_or_default());
        object.0.insert("status".to_owned(), status.unwrap_or_default());
        object.0.insert("image".to_owned(), shown);
        Some(object)
    }

    fn prepare_create(&self, object: &mut Object, tag: &str) {
        complete_spec(object);
        if let Some(Value::Object(spec)) = object.0.get_mut("spec")
            && spec.get("name").and_then(Value::as_str).unwrap_or("").is_empty()
        {
            spec.insert("name".to_owned(), tag.into());
        }
        object.0.insert("status".to_owned(), Value::Null);
        object.0.insert("image".to_owned(), Value::Null);
    }

    fn validate_create(&self, object: &Object) -> Vec<FieldError> {
        if object_in(object, "spec").is_none() {
            return vec![FieldError::required("spec", "spec is a required field during creation")];
        }
        spec_errors(object)
    }

    fn wanted(&self, object: &Object) -> Option<Value> {
        object_in(object, "spec").cloned()
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _stream: &Object) {
        complete_spec(new);
        new.0.insert("image".to_owned(), old.0.get("image").cloned().unwrap_or_default());
    }

    fn validate_update(&self, new: &Object, old: &Object, stream: &Object) -> Vec<FieldError> {
        let mut errors = spec_errors(new);
        let why = "may not update fields other than spec";
        let differs = |field: &str| semantic(new.0.get(field)) != semantic(old.0.get(field));
        if differs("metadata") {
            errors.push(FieldError::invalid_str("metadata", "", why));
        }
        // Of a tag that was never imported the real server shows no status, so clients send none.
        let tag = split_stream_tag(old.name()).map_or("", |(_, tag)| tag);
        let only_provisional = is_provisional(stream, tag)
            && status_tag(stream, tag).is_some_and(|entry| items(entry).len() == 1);
        let unseen = only_provisional && object_in(new, "status").is_none();
        if differs("status") && !unseen {
            errors.push(FieldError::invalid_str("status", "", why));
        }
        errors
    }

    fn apply(&self, stream: &mut Object, tag: &str, new: &Object) -> Result<(), Status> {
        let Some(mut wanted) = object_in(new, "spec").cloned() else {
            remove_spec_tag(stream, tag);
            return Ok(());
        };
        if let Value::Object(wanted) = &mut wanted {
            wanted.insert("name".to_owned(), tag.into());
        }
        set_spec_tag(stream, wanted);
        Ok(())
    }
}

fn complete_spec(object: &mut Object) {
    if let Some(spec) = object.0.get_mut("spec") {
        complete(spec);
    }
}

fn spec_errors(object: &Object) -> Vec<FieldError> {
    let Some(spec) = object_in(object, "spec") else { return Vec::new() };
    let mut errors = Vec::new();
    let name = spec.get("name").and_then(Value::as_str).unwrap_or("");
    if split_stream_tag(object.name()).is_none_or(|(_, tag)| tag != name) {
        errors.push(FieldError::invalid_str("spec.name", name, "must match image tag name"));
    }
    errors.extend(tag_reference(TagReference(spec), "spec"));
    errors
}
