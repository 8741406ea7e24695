//! The rules of images and of their signatures (`openshift-apiserver/pkg/image/apis/image/validation`).

use std::sync::LazyLock;

use picoshift_machinery::{FieldError, Object};
use regex::Regex;
use serde_json::Value;

use super::list;
use crate::groups::image::model::text;
use crate::groups::image::reference::Reference;
use crate::object_meta;

/// A digest of the OCI specification; `None` only if the pattern were wrong, and then nothing matches.
static DIGEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*[:][[:xdigit:]]{32,}").ok()
});
static MEDIA_TYPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^ *([A-Za-z0-9][A-Za-z0-9!#$&^_-]{0,126})/([A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}) *$").ok()
});

/// Errors of an image, beside those of its metadata.
pub(in crate::groups::image) fn image(image: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let reference = image.str_at(&["dockerImageReference"]);
    if reference.is_empty() {
        errors.push(FieldError::required("dockerImageReference", ""));
    } else if let Err(error) = Reference::parse(reference) {
        errors.push(FieldError::invalid_str("dockerImageReference", reference, error.to_string()));
    }
    for (index, value) in list(image, "signatures").iter().enumerate() {
        let Some(object) = value.as_object() else { continue };
        errors.extend(under(&format!("signatures[{index}]"), signature(&Object(object.clone()))));
    }
    let manifests = list(image, "dockerImageManifests");
    for (index, manifest) in manifests.iter().enumerate() {
        errors.extend(under(&format!("dockerImageManifests[{index}]"), sub_manifest(manifest)));
    }
    let layers = list(image, "dockerImageLayers");
    if !manifests.is_empty() && !layers.is_empty() {
        let why = "dockerImageLayers should not be set when dockerImageManifests is set";
        errors.push(FieldError::invalid("dockerImageLayers", &layers.into(), why));
    }
    errors
}

/// Errors of an image with its metadata, all under `path`: as part of a mapping.
pub(in crate::groups::image) fn image_at(path: &str, nested: &Object) -> Vec<FieldError> {
    let mut errors = object_meta::create(nested, false, object_meta::path_name);
    errors.extend(image(nested));
    under(path, errors)
}

/// Errors of a signature, those of its metadata included.
pub(in crate::groups::image) fn signature(signature: &Object) -> Vec<FieldError> {
    let mut errors = object_meta::create(signature, false, object_meta::path_name);
    for (field, is_set) in
        [("labels", !signature.labels().is_empty()), ("annotations", !signature.annotations().is_empty())]
    {
        if is_set {
            let why = format!("signature {field} cannot be set");
            errors.push(FieldError::forbidden(format!("metadata.{field}"), why));
        }
    }
    if split_name(signature.name()).is_none() {
        let why = "name must be of format <imageName>@<signatureName>";
        errors.push(FieldError::invalid_str("metadata.name", signature.name(), why));
    }
    for field in ["type", "content"] {
        if signature.str_at(&[field]).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    errors.extend(trust(signature));
    errors
}

/// What the conditions allow the server-side fields to be.
fn trust(signature: &Object) -> Vec<FieldError> {
    let conditions = list(signature, "conditions");
    let newest = |kind: &str| {
        let of_kind = conditions.iter().filter(|condition| text(condition, "type") == kind);
        of_kind.max_by_key(|condition| text(condition, "lastProbeTime"))
    };
    let (trusted, for_image) = (newest("Trusted"), newest("ForImage"));
    let mut errors = Vec::new();
    for (this, other, missing) in [(trusted, for_image, "ForImage"), (for_image, trusted, "Trusted")] {
        if this.is_some() && other.is_none() {
            let why = format!("missing \"{missing}\" condition type");
            errors.push(FieldError::invalid("conditions", &conditions.into(), why));
        }
    }
    if trusted.is_none_or(|condition| text(condition, "status") == "Unknown") {
        for field in ["imageIdentity", "signedClaims", "issuedBy", "issuedTo"] {
            let Some(value) = signature.0.get(field) else { continue };
            let is_empty = match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Object(claims) => field == "signedClaims" && claims.is_empty(),
                _ => false,
            };
            if !is_empty {
                errors.push(FieldError::invalid(field, value, "must be unset for unknown signature state"));
            }
        }
    }
    errors
}

fn sub_manifest(manifest: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let digest = text(manifest, "digest");
    if !matches(&DIGEST, digest) {
        errors.push(FieldError::invalid_str(
            "digest",
            digest,
            "digest does not conform with OCI image specification",
        ));
    }
    let media_type = text(manifest, "mediaType");
    if !matches(&MEDIA_TYPE, media_type) {
        errors.push(FieldError::invalid_str(
            "mediaType",
            media_type,
            "media type does not conform to RFC6838",
        ));
    }
    for field in ["architecture", "os"] {
        if text(manifest, field).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let size = manifest.get("manifestSize").cloned().unwrap_or_default();
    if size.as_i64().is_some_and(|size| size < 0) {
        errors.push(FieldError::invalid("size", &size, "manifest size cannot be negative"));
    }
    errors
}

/// Image and signature of `image@signature`; `None` for another form.
pub(in crate::groups::image) fn split_name(name: &str) -> Option<(&str, &str)> {
    let (image, signature) = name.split_once('@')?;
    (!image.is_empty() && !signature.is_empty() && !signature.contains('@')).then_some((image, signature))
}

fn under(path: &str, errors: Vec<FieldError>) -> Vec<FieldError> {
    errors.into_iter().map(|error| FieldError { field: format!("{path}.{}", error.field), ..error }).collect()
}

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}
