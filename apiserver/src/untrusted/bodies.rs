//! Objects in the body of a request: JSON, YAML, protobuf.

use picoshift_machinery::{Status, protobuf};

use super::{SCHEMAS, assert_settled};
use crate::decode::{self, Decoded};
use crate::groups::{image, route, user};
use crate::schema::{FieldValidation, Schemas};

/// A body against the schema of Routes, as JSON and as YAML: what is read does not hang on how it is validated, and is what
/// will be stored.
pub(super) fn body(bytes: &[u8]) {
    let Some(schemas) = &*SCHEMAS else { return };
    for content_type in ["application/json", "application/yaml"] {
        let read = |validation| {
            decode::decode_object(schemas, &route::ROUTES, Some(content_type), bytes, validation)
        };
        let (ignore, warn, strict) =
            (read(FieldValidation::Ignore), read(FieldValidation::Warn), read(FieldValidation::Strict));
        match (&ignore, &warn, &strict) {
            (Err(ignore), Err(warn), Err(strict)) => assert!(
                ignore.message == warn.message && warn.message == strict.message,
                "{ignore:?}, {warn:?}, {strict:?}"
            ),
            (Ok(ignore), Ok(warn), strict) => {
                assert_eq!(ignore.object, warn.object);
                assert!(ignore.warnings.is_empty());
                assert_eq!(strict.is_ok(), warn.warnings.is_empty(), "{strict:?}, {warn:?}");
                assert!(strict.as_ref().is_ok_and(|strict| strict == ignore) || strict.is_err());
            }
            _ => panic!("{ignore:?}, {warn:?}, {strict:?}"),
        }
        settled(schemas, &route::ROUTES, &ignore);
        let _ = decode::decode_delete_options(schemas, Some(content_type), bytes);
    }
}

/// A body in protobuf, or the message in its envelope, as every kind that can be created: what is read is written and read
/// as itself.
pub(super) fn message(bytes: &[u8]) {
    let Some(schemas) = &*SCHEMAS else { return };
    let content_type = Some("application/vnd.kubernetes.protobuf");
    for resource in [&route::ROUTES, &image::IMAGE_STREAM_IMPORTS, &user::GROUPS] {
        for body in [bytes, &protobuf::envelope("", "", bytes)] {
            let decoded =
                decode::decode_object(schemas, resource, content_type, body, FieldValidation::Strict);
            settled(schemas, resource, &decoded);
        }
    }
    let _ = decode::decode_delete_options(schemas, content_type, bytes);
}

fn settled(schemas: &Schemas, resource: &crate::resource::Resource, decoded: &Result<Decoded, Status>) {
    match decoded {
        Ok(decoded) => assert_settled(schemas, resource, &decoded.object),
        Err(status) => assert!(matches!(status.code, 400 | 415), "{status:?}"),
    }
}
