//! An image as it stands inside of another object.

use std::collections::BTreeMap;

use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

use crate::groups::image::model::{Event, spec_tag};
use crate::groups::image::reference::Reference;

/// Without its kind, and without manifest and config, which are large.
pub(super) fn image(image: &Object) -> Map<String, Value> {
    let mut map = image.0.clone();
    for field in ["apiVersion", "kind", "dockerImageManifest", "dockerImageConfig"] {
        map.remove(field);
    }
    map
}

/// An image of which at most the name is known, as Go encodes it.
pub(super) fn unknown_image(name: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("metadata".to_owned(), if name.is_empty() { json!({}) } else { json!({ "name": name }) });
    map.insert(
        "dockerImageMetadata".to_owned(),
        json!({
            "kind": "DockerImage",
            "apiVersion": "image.openshift.io/1.0",
            "Id": "",
            "Created": null,
            "ContainerConfig": {},
        }),
    );
    map.insert("dockerImageMetadataVersion".to_owned(), json!("1.0"));
    map
}

/// Adds annotations.
pub(super) fn annotate(image: &mut Map<String, Value>, annotations: &BTreeMap<&str, &str>) {
    if annotations.is_empty() {
        return;
    }
    let mut object = Object(std::mem::take(image));
    for (key, value) in annotations {
        object.set_annotation(key, value);
    }
    *image = object.0;
}

/// Sets the text by which the image is pulled.
pub(super) fn set_pull_spec(image: &mut Map<String, Value>, pull_spec: String) {
    if pull_spec.is_empty() {
        image.remove("dockerImageReference");
    } else {
        image.insert("dockerImageReference".to_owned(), pull_spec.into());
    }
}

/// How a tag's image is pulled: from where it came, or, with the policy `Local`, through the cluster's registry where
/// there is one and the image is known.
pub(super) fn pull_spec(stream: &Object, tag: &str, event: &Event) -> String {
    let local = spec_tag(stream, tag).is_some_and(|tag| tag.reference_policy() == "Local");
    // Empty where there is no registry, which is no reference.
    let repository = stream.str_at(&["status", "dockerImageRepository"]);
    if local
        && !event.image.is_empty()
        && let Ok(repository) = Reference::parse(repository)
    {
        return Reference { tag: String::new(), id: event.image.clone(), ..repository }.exact();
    }
    event.docker_image_reference.clone()
}
