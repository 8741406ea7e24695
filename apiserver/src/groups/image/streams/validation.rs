//! The rules of a stream (`openshift-apiserver/pkg/image/apis/image/validation`).

use std::collections::BTreeSet;

use picoshift_machinery::{FieldError, Object};
use serde_json::Value;

use crate::groups::image::model::spec_tags::{DOCKER_IMAGE, STREAM_IMAGE, STREAM_TAG};
use crate::groups::image::model::{Event, TagReference, spec_tags, status_tags};
use crate::groups::image::reference::{NAME_MAX, Reference};

/// Errors of a stream, beside those of its metadata.
pub(super) fn stream(stream: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if stream.namespace().len() + 1 + stream.name().len() > NAME_MAX {
        let why = format!("'namespace/name' cannot be longer than {NAME_MAX} characters");
        errors.push(FieldError::invalid_str("metadata.name", stream.name(), why));
    }
    errors.extend(repository(stream.str_at(&["spec", "dockerImageRepository"])));
    for (tag, reference) in spec_tags(stream) {
        errors.extend(tag_reference(reference, &format!("spec.tags[{tag}]")));
    }
    for (at, event) in events(stream) {
        let reference = &event.docker_image_reference;
        if reference.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if let Err(error) = Reference::parse(reference) {
            errors.push(FieldError::invalid_str(at, reference, error.to_string()));
        }
    }
    errors
}

/// Errors of an update of the status: only pull specs that are new to it are looked at.
pub(super) fn status_update(stream: &Object, old: &Object) -> Vec<FieldError> {
    let known: BTreeSet<String> =
        events(old).into_iter().map(|(_, event)| event.docker_image_reference).collect();
    events(stream)
        .into_iter()
        .filter(|(_, event)| !known.contains(&event.docker_image_reference))
        .filter_map(|(at, event)| {
            let error = Reference::parse(&event.docker_image_reference).err()?;
            Some(FieldError::invalid_str(at, &event.docker_image_reference, error.to_string()))
        })
        .collect()
}

/// All events with the path of their pull spec.
fn events(stream: &Object) -> Vec<(String, Event)> {
    let mut found = Vec::new();
    for entry in status_tags::status_tags(stream) {
        let tag = entry.get("tag").and_then(Value::as_str).unwrap_or("");
        for (index, item) in status_tags::items(entry).iter().enumerate() {
            let at = format!("status.tags[{tag}].items[{index}].dockerImageReference");
            found.push((at, Event::read(item)));
        }
    }
    found
}

fn repository(repository: &str) -> Vec<FieldError> {
    if repository.is_empty() {
        return Vec::new();
    }
    let invalid =
        |why: &str| FieldError::invalid_str("spec.dockerImageRepository", repository, why.to_owned());
    match Reference::parse(repository) {
        Err(error) => vec![invalid(&error.to_string())],
        Ok(reference) => {
            let tag =
                (!reference.tag.is_empty()).then(|| invalid("the repository name may not contain a tag"));
            let id = (!reference.id.is_empty()).then(|| invalid("the repository name may not contain an ID"));
            tag.into_iter().chain(id).collect()
        }
    }
}

/// Errors of a spec tag at `path`.
pub fn tag_reference(tag: TagReference<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(from) = tag.from() {
        let name = format!("{path}.from.name");
        if from.name().is_empty() {
            errors.push(FieldError::required(name.clone(), ""));
        }
        match from.kind() {
            DOCKER_IMAGE => {
                if let Err(error) = Reference::parse(from.name())
                    && !from.name().is_empty()
                {
                    errors.push(FieldError::invalid_str(name, from.name(), error.to_string()));
                }
            }
            STREAM_IMAGE | STREAM_TAG => {
                if tag.is_scheduled() {
                    let why =
                        "only tags pointing to Docker repositories may be scheduled for background import";
                    let at = format!("{path}.importPolicy.scheduled");
                    errors.push(FieldError::invalid(at, &Value::Bool(true), why));
                }
            }
            _ => {
                let why = "valid values are 'DockerImage', 'ImageStreamImage', 'ImageStreamTag'";
                errors.push(FieldError::required(format!("{path}.from.kind"), why));
            }
        }
    }
    let policy = tag.reference_policy();
    if !matches!(policy, "Source" | "Local") {
        let why = "valid values are \"Source\", \"Local\"";
        errors.push(FieldError::invalid_str(format!("{path}.referencePolicy.type"), policy, why));
    }
    errors.extend(import_mode(tag.import_mode(), &format!("{path}.importPolicy")));
    errors
}

/// The error of an import policy's mode at `path`, if it has one.
pub fn import_mode(mode: &str, path: &str) -> Option<FieldError> {
    if matches!(mode, "" | "Legacy" | "PreserveOriginal") {
        return None;
    }
    let why = "invalid import mode, valid modes are '', 'Legacy', 'PreserveOriginal'";
    Some(FieldError::invalid_str(format!("{path}.importMode"), mode, why))
}
