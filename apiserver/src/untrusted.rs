//! What strangers send, one function for each kind of it: `hack/fuzz` and the tests below call the same. In: anything. Out:
//! nothing; a panic, endless work or a broken promise is the finding.

mod bodies;
mod images;
mod patches;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use picoshift_machinery::{Object, protobuf};

use crate::decode;
use crate::resource::Resource;
use crate::schema::{FieldValidation, Schemas};

/// A function that is fed bytes.
pub type Target = fn(&[u8]);

/// The targets by name, which is also that of the folder of their corpus in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 17] = [
    ("accept", |bytes| requests::accept(text(bytes))),
    ("applies", patches::applies),
    ("body", bodies::body),
    ("certificate", requests::certificate),
    ("continue_token", |bytes| requests::continue_token(text(bytes))),
    ("docker_config", images::docker_config),
    ("front_proxy_headers", requests::front_proxy_headers),
    ("image_manifest", images::image_manifest),
    ("image_reference", |bytes| images::image_reference(text(bytes))),
    ("message", bodies::message),
    ("patches", patches::patches),
    ("query_string", |bytes| requests::query_string(text(bytes))),
    ("registry_documents", images::registry_documents),
    ("registry_headers", |bytes| images::registry_headers(text(bytes))),
    ("request_path", |bytes| requests::request_path(text(bytes))),
    ("selectors", |bytes| requests::selectors(text(bytes))),
    ("user_names", |bytes| requests::user_names(text(bytes))),
];

/// The bytes as text, up to where they are none.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// What stands before the first zero byte, and behind it; all of it twice where there is none.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, bytes),
    }
}

static SCHEMAS: LazyLock<Option<Schemas>> = LazyLock::new(|| Schemas::load().ok());

/// What was decoded, or made to fit its schema, is read again as itself: from JSON, which is what is stored, and from
/// protobuf, where an empty list is none.
fn assert_settled(schemas: &Schemas, resource: &Resource, object: &Object) {
    let json = object.to_bytes();
    let again = decode::decode_object(schemas, resource, None, &json, FieldValidation::Strict);
    match again {
        Ok(again) => assert_eq!(&again.object, object, "JSON is not read as it was written"),
        Err(status) => panic!("JSON that was written is not read: {}: {object:?}", status.message),
    }
    let Some(message) = schemas.to_protobuf(object) else { panic!("{object:?} has no protobuf") };
    let body = protobuf::envelope(object.api_version(), object.kind(), &message);
    let content_type = Some("application/vnd.kubernetes.protobuf");
    match decode::decode_object(schemas, resource, content_type, &body, FieldValidation::Strict) {
        Ok(again) => {
            let written = schemas.to_protobuf(&again.object);
            assert_eq!(written, Some(message), "protobuf is not read as it was written: {object:?}");
        }
        Err(status) => panic!("protobuf that was written is not read: {}: {object:?}", status.message),
    }
}
