//! `images`: one object per image, named by its digest. Almost nothing of it can be changed: what cannot is put back
//! in silence, as upstream (`openshift-apiserver/pkg/image/apiserver/registry/image`).

pub(super) mod validation;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::Value;

use super::columns::IMAGES;
use super::{docker_image, manifest, printing};
use crate::admission::Admission;
use crate::object_meta::{self, NameRule};
use crate::registry::Registry;
use crate::registry::strategy::Strategy;
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::schema::cannot_be_handled;
use crate::store::{Engine, StoreError};

/// On an image: a registry keeps its manifest, so that it need not be kept here.
const MANIFEST_STORED: &str = "image.openshift.io/manifestBlobStored";
/// On a signature: a mark of former versions, which goes.
const MANAGED_SIGNATURE: &str = "image.openshift.io/managed-signature";
/// Fields that an update cannot change.
const FIXED: [&str; 3] = ["dockerImageLayers", "dockerImageMetadata", "dockerImageMetadataVersion"];

/// Loads the images.
///
/// # Errors
/// The store's.
pub(super) async fn start(
    engine: Arc<dyn Engine>,
    admission: Arc<Admission>,
) -> Result<Arc<Registry>, StoreError> {
    Registry::start(engine, Arc::new(ImageStrategy), admission).await
}

/// The strategy of `images`.
struct ImageStrategy;

#[async_trait]
impl Strategy for ImageStrategy {
    fn resource(&self) -> &'static Resource {
        &IMAGES
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::image_row(object)
    }

    fn name_rule(&self) -> NameRule {
        object_meta::path_name
    }

    fn set_defaults(&self, object: &mut Object) {
        // What cannot be decoded stays, for validation to refuse.
        let _ = docker_image::complete(object);
    }

    fn prepare_create(&self, _cx: &RequestContext, object: &mut Object) {
        object.set_metadata("generation", Value::Null);
        fill(object);
        manifest::fill_manifests(object);
        tidy(object);
    }

    fn prepare_update(&self, _cx: &RequestContext, _subresource: &str, object: &mut Object, old: &Object) {
        for field in FIXED {
            restore(object, old, field);
        }
        if old.0.contains_key("dockerImageSignatures") {
            restore(object, old, "dockerImageSignatures");
        }
        let kept = |field: &str, object: &Object| object.str_at(&[field]) == old.str_at(&[field]);
        let given = object.str_at(&["dockerImageManifest"]);
        if !given.is_empty() && !kept("dockerImageManifest", object) && !manifest::is_manifest_of(old, given)
        {
            restore(object, old, "dockerImageManifest");
        }
        let given = object.str_at(&["dockerImageConfig"]);
        if !given.is_empty() && !kept("dockerImageConfig", object) && !manifest::is_config_of(object, given) {
            restore(object, old, "dockerImageConfig");
        }
        fill(object);
        tidy(object);
    }

    fn generation_changed(&self, _object: &Object, _old: &Object) -> bool {
        false
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        check_metadata(object)?;
        Ok(validation::image(object))
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        _old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(validation::image(object))
    }
}

/// The list in a field of an image or a signature, empty where there is none.
pub(super) fn list<'a>(object: &'a Object, field: &str) -> &'a [Value] {
    object.at(&[field]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Refuses metadata that cannot be decoded.
pub(super) fn check_metadata(image: &Object) -> Result<(), Status> {
    let mut decoded = image.clone();
    docker_image::complete(&mut decoded).map_err(|why| cannot_be_handled("Image", "v1", "Image", &why))
}

fn fill(image: &mut Object) {
    if let Err(error) = manifest::fill(image) {
        tracing::warn!(image = image.name(), error, "an image's metadata cannot be taken from its manifest");
    }
}

/// Drops what is kept elsewhere, and marks of former versions.
fn tidy(image: &mut Object) {
    if image.annotation(MANIFEST_STORED) == Some("true") {
        image.0.remove("dockerImageManifest");
        image.0.remove("dockerImageConfig");
    }
    let Some(Value::Array(signatures)) = image.0.get_mut("signatures") else { return };
    for signature in signatures {
        let Some(Value::Object(metadata)) = signature.get_mut("metadata") else { continue };
        let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { continue };
        annotations.remove(MANAGED_SIGNATURE);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Puts a field back to what it was.
fn restore(object: &mut Object, old: &Object, field: &str) {
    match old.0.get(field) {
        Some(value) => object.0.insert(field.to_owned(), value.clone()),
        None => object.0.remove(field),
    };
}
