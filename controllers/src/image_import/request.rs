//! Which tags of a stream await an import, and the ImageStreamImport that asks for it
//! (openshift-controller-manager, `pkg/image/controller`).

use std::hash::{DefaultHasher, Hash, Hasher};

use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::stream::{DOCKER_IMAGE, INSECURE, ImageStream, REPOSITORY_CHECK, Tag, generation};

/// An import that a stream awaits.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The ImageStreamImport.
    pub body: Value,
    /// Equal for two requests that ask for the same, whatever else has changed in the stream.
    pub digest: u64,
}

/// What made a controller look at a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It has changed.
    Changed,
    /// Its scheduled tags are due.
    Scheduled,
}

/// The import that `stream` awaits, if it awaits one.
#[must_use]
pub fn request(stream: &ImageStream, why: Why) -> Option<Request> {
    let tags: Vec<Tag> = stream.spec.tags.iter().flatten().map(|tag| as_due(stream, tag, why)).collect();
    let Needed { whole } = needed(stream, &tags)?;
    let images: Vec<&Tag> = tags
        .iter()
        .filter(|tag| tag.is_importable() && (whole || awaits_import(stream, tag, true)))
        .collect();
    let repository = stream.spec.docker_image_repository.as_deref().filter(|name| whole && !name.is_empty());
    if images.is_empty() && repository.is_none() {
        return None;
    }
    let mut spec = Map::new();
    spec.insert("import".to_owned(), json!(true));
    if let Some(name) = repository {
        let insecure = stream.annotations().get(INSECURE).is_some_and(|value| value == "true");
        let policy = if insecure { json!({"insecure": true}) } else { json!({}) };
        let from = json!({"kind": DOCKER_IMAGE, "name": name});
        spec.insert("repository".to_owned(), json!({"from": from, "importPolicy": policy}));
    }
    if !images.is_empty() {
        spec.insert("images".to_owned(), images.iter().map(|tag| image(tag)).collect());
    }
    let spec = Value::Object(spec);
    let digest = digest(stream, &spec, &images);
    let body = json!({
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStreamImport",
        "metadata": {
            "name": stream.name_any(),
            "namespace": stream.namespace(),
            "resourceVersion": stream.resource_version(),
            "uid": stream.uid(),
        },
        "spec": spec,
        "status": {},
    });
    Some(Request { body, digest })
}

/// Whether any tag of the stream is to be imported again and again, and still has to be.
#[must_use]
pub fn is_scheduled(stream: &ImageStream) -> bool {
    stream.spec.tags.iter().flatten().any(|tag| is_due_by_schedule(stream, tag))
}

fn is_due_by_schedule(stream: &ImageStream, tag: &Tag) -> bool {
    tag.is_scheduled() && !(tag.is_fixed() && is_imported(stream, tag))
}

/// A tag as it is seen for this import: one that is due by its schedule counts as changed just now.
fn as_due(stream: &ImageStream, tag: &Tag, why: Why) -> Tag {
    let mut tag = tag.clone();
    if why == Why::Scheduled && is_due_by_schedule(stream, &tag) {
        tag.generation = Some(generation(&stream.metadata).saturating_add(1));
    }
    tag
}

struct Needed {
    /// The repository and all tags, not only those that await it.
    whole: bool,
}

fn needed(stream: &ImageStream, tags: &[Tag]) -> Option<Needed> {
    let checked = stream.annotations().get(REPOSITORY_CHECK).is_some_and(|time| !time.is_empty());
    if !checked {
        if stream.spec.docker_image_repository.as_ref().is_some_and(|name| !name.is_empty()) {
            return Some(Needed { whole: true });
        }
        if tags.iter().any(Tag::is_importable) {
            return Some(Needed { whole: false });
        }
    }
    let awaits = tags.iter().any(|tag| awaits_import(stream, tag, false));
    awaits.then_some(Needed { whole: false })
}

/// Whether the tag is newer than what was recorded for it; `unknown` is the answer for one without a generation.
fn awaits_import(stream: &ImageStream, tag: &Tag, unknown: bool) -> bool {
    tag.is_importable()
        && tag.generation.map_or(unknown, |generation| generation > observed(stream, &tag.name))
}

/// The newest generation of a tag for which an import has had an answer, good or bad.
fn observed(stream: &ImageStream, tag: &str) -> i64 {
    let status = stream.status.iter().flat_map(|status| status.tags.iter().flatten());
    let Some(events) = status.into_iter().find(|events| events.tag == tag) else { return 0 };
    // A tag resolves to its reference at once; only an image was imported.
    let newest = events.items.iter().flatten().find(|event| !event.image.is_empty());
    let condition = events.conditions.iter().flatten().find(|condition| condition.type_ == "ImportSuccess");
    let generations = [newest.map(|event| event.generation), condition.map(|condition| condition.generation)];
    generations.into_iter().flatten().fold(0, i64::max)
}

fn is_imported(stream: &ImageStream, tag: &Tag) -> bool {
    let status = stream.status.iter().flat_map(|status| status.tags.iter().flatten());
    let events = status.into_iter().find(|events| events.tag == tag.name);
    let newest = events.and_then(|events| events.items.iter().flatten().next());
    newest.is_some_and(|event| !event.image.is_empty() && Some(event.generation) == tag.generation)
}

fn image(tag: &Tag) -> Value {
    let name = tag.from.as_ref().map(|from| from.name.as_str()).unwrap_or_default();
    let mut image = json!({
        "from": {"kind": DOCKER_IMAGE, "name": name},
        "to": {"name": tag.name},
        "importPolicy": tag.import_policy,
        "referencePolicy": tag.reference_policy,
    });
    if let Value::Object(fields) = &mut image {
        fields.retain(|_, value| !value.is_null());
    }
    image
}

fn digest(stream: &ImageStream, spec: &Value, images: &[&Tag]) -> u64 {
    let mut hasher = DefaultHasher::new();
    stream.metadata.uid.hash(&mut hasher);
    spec.to_string().hash(&mut hasher);
    for tag in images {
        tag.generation.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
