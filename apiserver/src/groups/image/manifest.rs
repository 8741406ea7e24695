//! Manifests of images: what an image object takes from them, and whether a manifest or configuration is the one that
//! the image's name promises (`openshift-apiserver/pkg/image/apiserver/internal/imageutil`).

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use picoshift_machinery::Object;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::docker_image;
pub use crate::oci::{DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST};
use crate::oci::{Descriptor, ListEntry, bounded};
use crate::registry::metadata::now;

/// Docker's image configuration.
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// OCI's image configuration.
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Docker's first manifest.
const SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+json";
const SCHEMA_1_SIGNED: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";
const SCHEMA_1_LAYER: &str = "application/vnd.docker.container.image.rootfs.diff+x-gtar";

/// On an image: how its layers are ordered.
const LAYERS_ORDER: &str = "image.openshift.io/dockerLayersOrder";
const ASCENDING: &str = "ascending";
const DESCENDING: &str = "descending";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Manifest {
    schema_version: i64,
    media_type: String,
    #[serde(deserialize_with = "bounded")]
    fs_layers: Option<Vec<FsLayer>>,
    #[serde(deserialize_with = "bounded")]
    history: Option<Vec<History>>,
    #[serde(deserialize_with = "bounded")]
    layers: Option<Vec<Descriptor>>,
    config: Descriptor,
    #[serde(deserialize_with = "bounded")]
    manifests: Option<Vec<ListEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FsLayer {
    #[serde(rename = "blobSum")]
    blob_sum: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct History {
    #[serde(rename = "v1Compatibility")]
    v1_compatibility: String,
}

/// Fills layers and metadata of an image from its raw manifest and configuration, as far as it has them.
///
/// # Errors
/// Why the manifest was not taken further; what was filled before stays, as upstream.
pub fn fill(image: &mut Object) -> Result<(), String> {
    let raw = image.str_at(&["dockerImageManifest"]).to_owned();
    if raw.is_empty() {
        return Ok(());
    }
    order_layers(image);
    let size = image.at(&["dockerImageMetadata", "Size"]).and_then(Value::as_i64).unwrap_or(0);
    if has_layers(image) && size > 0 && !image.str_at(&["dockerImageManifestMediaType"]).is_empty() {
        return Ok(());
    }
    let manifest: Manifest = serde_json::from_str(&raw).map_err(|error| error.to_string())?;
    if matches!(manifest.media_type.as_str(), DOCKER_LIST | OCI_INDEX) {
        let name = image.name().to_owned();
        let metadata = image.object_mut("dockerImageMetadata");
        metadata.insert("Id".to_owned(), name.into());
        metadata.insert("Created".to_owned(), now().into());
        return Ok(());
    }
    fill_layers(image, &manifest)?;
    let (metadata, config_size) = match manifest.schema_version {
        1 => {
            set_media_type(image, SCHEMA_1);
            let newest =
                manifest.history.iter().flatten().next().ok_or("a schema 1 manifest without history")?;
            (docker_image::from_config(&newest.v1_compatibility)?, 0)
        }
        2 => {
            if !manifest.media_type.is_empty() {
                set_media_type(image, &manifest.media_type);
            } else if image.str_at(&["dockerImageManifestMediaType"]).is_empty() {
                set_media_type(image, DOCKER_MANIFEST);
            }
            let config = image.str_at(&["dockerImageConfig"]);
            if config.is_empty() {
                return Err("dockerImageConfig must not be empty".to_owned());
            }
            let mut metadata = docker_image::from_config(config)?;
            metadata.insert("Id".to_owned(), manifest.config.digest.as_str().into());
            (metadata, i64::try_from(config.len()).unwrap_or(i64::MAX))
        }
        other => return Err(format!("unrecognized container image manifest schema {other}")),
    };
    let size = config_size.saturating_add(layers_size(image, &manifest));
    image.0.insert("dockerImageMetadata".to_owned(), with_size(metadata, size).into());
    Ok(())
}

/// Notes the manifests that an image's raw manifest lists, if it is a list.
pub(super) fn fill_manifests(image: &mut Object) {
    if !matches!(image.str_at(&["dockerImageManifestMediaType"]), DOCKER_LIST | OCI_INDEX) {
        return;
    }
    let Ok(list) = serde_json::from_str::<Manifest>(image.str_at(&["dockerImageManifest"])) else { return };
    set_manifests(image, list.manifests.as_deref().unwrap_or_default());
}

/// Notes the manifests of a list in its image.
pub(super) fn set_manifests(image: &mut Object, entries: &[ListEntry]) {
    let shown = entries.iter().map(|ListEntry { manifest, platform }| {
        let mut shown = json!({
            "digest": manifest.digest, "mediaType": manifest.media_type, "manifestSize": manifest.size,
            "architecture": platform.architecture, "os": platform.os,
        });
        if !platform.variant.is_empty() {
            shown["variant"] = platform.variant.as_str().into();
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    if !shown.is_empty() {
        image.0.insert("dockerImageManifests".to_owned(), shown.into());
    }
}

/// Whether a raw manifest is the one that an image is named after.
pub(crate) fn is_manifest_of(image: &Object, manifest: &str) -> bool {
    let name = image.name();
    match image.str_at(&["dockerImageManifestMediaType"]) {
        OCI_MANIFEST => is_json(manifest) && has_digest(manifest.as_bytes(), name),
        DOCKER_MANIFEST => {
            let parsed = serde_json::from_str::<Manifest>(manifest);
            parsed.is_ok_and(|parsed| parsed.media_type == DOCKER_MANIFEST)
                && has_digest(manifest.as_bytes(), name)
        }
        SCHEMA_1 | "" => signed_payload(manifest).is_some_and(|payload| has_digest(&payload, name)),
        _ => false,
    }
}

/// Whether a raw configuration is the one that an image's manifest names.
pub(crate) fn is_config_of(image: &Object, config: &str) -> bool {
    let known = matches!(image.str_at(&["dockerImageManifestMediaType"]), DOCKER_MANIFEST | OCI_MANIFEST);
    let manifest = serde_json::from_str::<Manifest>(image.str_at(&["dockerImageManifest"]));
    known && manifest.is_ok_and(|manifest| has_digest(config.as_bytes(), &manifest.config.digest))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Whether bytes have a digest such as `sha256:…`.
#[must_use]
pub fn has_digest(bytes: &[u8], digest: &str) -> bool {
    let Some((algorithm, wanted)) = digest.split_once(':') else { return false };
    let found: Vec<u8> = match algorithm {
        "sha256" => Sha256::digest(bytes).to_vec(),
        "sha384" => Sha384::digest(bytes).to_vec(),
        "sha512" => Sha512::digest(bytes).to_vec(),
        _ => return false,
    };
    found.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == wanted
}

/// What the signatures of a schema 1 manifest sign: its text without them. The first signature says up to where, and
/// how it ends.
fn signed_payload(manifest: &str) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Protected {
        format_length: usize,
        format_tail: String,
    }
    let parsed: Value = serde_json::from_str(manifest).ok()?;
    let protected = parsed.pointer("/signatures/0/protected")?.as_str()?;
    let protected: Protected = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(protected).ok()?).ok()?;
    let mut payload = manifest.as_bytes().get(..protected.format_length)?.to_vec();
    payload.extend(URL_SAFE_NO_PAD.decode(&protected.format_tail).ok()?);
    Some(payload)
}

fn has_layers(image: &Object) -> bool {
    image.at(&["dockerImageLayers"]).and_then(Value::as_array).is_some_and(|layers| !layers.is_empty())
}

/// Puts layers in order, the oldest first.
fn order_layers(image: &mut Object) {
    if !has_layers(image) {
        return;
    }
    let order = match image.annotation(LAYERS_ORDER) {
        Some(order) => order.to_owned(),
        None => match image.str_at(&["dockerImageManifestMediaType"]) {
            SCHEMA_1 | SCHEMA_1_SIGNED => ASCENDING.to_owned(),
            DOCKER_MANIFEST | OCI_MANIFEST => DESCENDING.to_owned(),
            _ => return,
        },
    };
    if order == DESCENDING
        && let Some(Value::Array(layers)) = image.0.get_mut("dockerImageLayers")
    {
        layers.reverse();
    }
    image.set_annotation(LAYERS_ORDER, ASCENDING);
}

fn fill_layers(image: &mut Object, manifest: &Manifest) -> Result<(), String> {
    if has_layers(image) {
        return Ok(());
    }
    let layer = |name: &str, size: i64, media_type: &str| json!({"name": name, "size": size, "mediaType": media_type});
    let steps = manifest.history.as_deref().unwrap_or_default();
    let found = manifest.fs_layers.as_deref().unwrap_or_default();
    let layers: Vec<Value> = match manifest.schema_version {
        1 if steps.len() != found.len() => {
            return Err("the manifest has not as many layers as steps".to_owned());
        }
        // The youngest comes first there.
        1 => steps
            .iter()
            .zip(found)
            .rev()
            .map(|(step, found)| layer(&found.blob_sum, step_size(step), SCHEMA_1_LAYER))
            .collect(),
        2 => {
            let layers = manifest.layers.iter().flatten();
            layers.map(|found| layer(&found.digest, found.size, &found.media_type)).collect()
        }
        other => return Err(format!("unrecognized container image manifest schema {other}")),
    };
    if !layers.is_empty() {
        image.0.insert("dockerImageLayers".to_owned(), layers.into());
    }
    image.set_annotation(LAYERS_ORDER, ASCENDING);
    Ok(())
}

fn step_size(step: &History) -> i64 {
    let parsed: Value = serde_json::from_str(&step.v1_compatibility).unwrap_or_default();
    parsed.get("size").and_then(Value::as_i64).unwrap_or(0)
}

fn set_media_type(image: &mut Object, media_type: &str) {
    image.0.insert("dockerImageManifestMediaType".to_owned(), media_type.into());
}

/// The sizes of the different layers together; the configuration is none of them.
fn layers_size(image: &Object, manifest: &Manifest) -> i64 {
    let mut counted: HashSet<&str> = HashSet::new();
    if manifest.schema_version == 2 {
        counted.insert(&manifest.config.digest);
    }
    let mut size = 0_i64;
    for layer in image.at(&["dockerImageLayers"]).and_then(Value::as_array).into_iter().flatten() {
        let name = layer.get("name").and_then(Value::as_str).unwrap_or("");
        if counted.insert(name) {
            size = size.saturating_add(layer.get("size").and_then(Value::as_i64).unwrap_or(0));
        }
    }
    size
}

fn with_size(mut metadata: Map<String, Value>, size: i64) -> Map<String, Value> {
    metadata.remove("Size");
    if size != 0 {
        metadata.insert("Size".to_owned(), size.into());
    }
    metadata
}
