//! `imagestreams/layers`: the blobs of all images of a stream, for a registry that decides who may pull what.

use std::collections::BTreeSet;
use std::sync::Arc;

use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value, json};

use crate::groups::image::GROUP;
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::groups::image::images::list;
use crate::groups::image::manifest::{DOCKER_CONFIG, DOCKER_MANIFEST, OCI_CONFIG, OCI_MANIFEST};
use crate::groups::image::model::{status_tags, text};
use crate::registry::Registry;
use crate::rest::{GetOptions, Item, Storage};

/// The layers of a stream.
///
/// # Errors
/// Ours; an image that is not there is part of the answer.
pub(super) async fn of(stream: &Item, images: &Arc<Registry>) -> Result<Item, Status> {
    let stream_object = stream.object().map_err(Status::internal)?;
    let mut layers = Layers::default();
    let mut open: Vec<String> = status_tags::status_tags(&stream_object)
        .iter()
        .flat_map(status_tags::items)
        .filter_map(|item| item.get("image").and_then(Value::as_str))
        .filter(|image| !image.is_empty())
        .map(str::to_owned)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match images.get(&super::context("", "get"), &name, &GetOptions::default()).await {
            Ok(image) => open.extend(layers.add(&name, &image.object().map_err(Status::internal)?)),
            Err(status) if status.is("NotFound") => layers.add_missing(name),
            Err(status) => return Err(status),
        }
    }
    let mut object = Object::new(&format!("{GROUP}/v1"), "ImageStreamLayers");
    let metadata = stream_object.0.get("metadata").cloned().unwrap_or_default();
    object.0.insert("metadata".to_owned(), metadata);
    object.0.insert("blobs".to_owned(), layers.blobs.into());
    object.0.insert("images".to_owned(), layers.images.into());
    Ok(Item::new(&IMAGE_STREAMS, object, stream.revision))
}

#[derive(Default)]
struct Layers {
    blobs: Map<String, Value>,
    images: Map<String, Value>,
}

impl Layers {
    fn add_missing(&mut self, name: String) {
        self.images.insert(name, json!({"imageMissing": true, "layers": null, "config": null}));
    }

    /// Adds an image; answers the images that it lists.
    fn add(&mut self, name: &str, image: &Object) -> Vec<String> {
        let mut names = Vec::new();
        for layer in list(image, "dockerImageLayers") {
            let layer_name = text(layer, "name");
            names.push(layer_name.to_owned());
            let size = layer.get("size").cloned().unwrap_or_default();
            self.blob(layer_name, json!({"size": size, "mediaType": text(layer, "mediaType")}));
        }
        let media_type = match image.str_at(&["dockerImageManifestMediaType"]) {
            "" => None,
            given => Some(given),
        };
        let config_type = match media_type {
            Some(DOCKER_MANIFEST) => Some(DOCKER_CONFIG),
            Some(OCI_MANIFEST) => Some(OCI_CONFIG),
            _ => None,
        };
        let config = config_type.map(|config_type| {
            let config = image.str_at(&["dockerImageMetadata", "Id"]);
            // Its size is not known.
            self.blob(config, json!({"size": null, "mediaType": config_type}));
            config
        });
        self.blob(name, json!({"size": null, "mediaType": media_type.unwrap_or(DOCKER_MANIFEST)}));
        let manifests: Vec<String> = list(image, "dockerImageManifests")
            .iter()
            .map(|manifest| text(manifest, "digest").to_owned())
            .collect();
        let layers = if names.is_empty() { Value::Null } else { names.into() };
        let mut entry = json!({"imageMissing": false, "layers": layers, "config": config});
        if !manifests.is_empty() {
            entry["manifests"] = manifests.clone().into();
        }
        self.images.insert(name.to_owned(), entry);
        manifests
    }

    fn blob(&mut self, name: &str, blob: Value) {
        self.blobs.entry(name).or_insert(blob);
    }
}
