//! Patches: JSON patch (RFC 6902) and merge patch (RFC 7386), bounded as kube-apiserver bounds them, and strategic merge
//! patches (`strategic_patch`). Other patch types answer 415.

use http::{HeaderMap, StatusCode, header};
use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value};

use super::json_patch::{self, Failure, Operation};
use super::storage::Updater;
use crate::decode::json;

/// Most operations of a JSON patch (`handlers/patch.go`).
const OPERATIONS_MAX: usize = 10_000;
/// Most bytes that the copies of one JSON patch may add, so that doubling copies end early.
const COPIED_MAX: usize = 3 << 20;

/// Where a patch names the version that it expects.
const VERSION: &str = "/metadata/resourceVersion";

/// A patch, read and checked.
#[derive(Debug)]
pub enum ParsedPatch {
    /// A list of operations.
    Json(Vec<Operation>),
    /// A partial object.
    Merge(Value),
    /// A partial object with directives, merged by a schema.
    Strategic(Map<String, Value>),
}

/// Reads a patch by its content type.
///
/// # Errors
/// 415 for a type that is not there, 400 for a body that is no such patch, 413 for too many operations.
pub fn parse(headers: &HeaderMap, body: &[u8]) -> Result<ParsedPatch, Status> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let media_type = content_type.split(';').next().unwrap_or("").trim();
    match media_type {
        "application/json-patch+json" => {
            let list = |value: &Value| value.is_array() || value.is_null();
            let operations = Operation::read(decode(body, "[]handlers.jsonPatchOp", list)?);
            if operations.len() > OPERATIONS_MAX {
                return Err(Status::failure(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    format!(
                        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                        operations.len()
                    ),
                ));
            }
            Ok(ParsedPatch::Json(operations))
        }
        "application/merge-patch+json" => {
            let object = |value: &Value| value.is_object() || value.is_null();
            match decode(body, "map[string]interface {}", object)? {
                Value::Null => Err(Status::bad_request("Invalid JSON Patch")),
                patch => Ok(ParsedPatch::Merge(patch)),
            }
        }
        "application/strategic-merge-patch+json" => {
            match read(body, "map[string]interface {}", |value| value.is_object() || value.is_null()) {
                Ok(Value::Object(patch)) => Ok(ParsedPatch::Strategic(patch)),
                Ok(_) => Ok(ParsedPatch::Strategic(Map::new())),
                Err(why) => Err(Status::bad_request(why)),
            }
        }
        _ => {
            let message = "415: Unsupported Media Type";
            Err(Status::router(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message))
        }
    }
}

/// The patch as JSON of the kind that is `expected`, `go_type` in Go, whose words an error has.
fn decode(body: &[u8], go_type: &str, expected: fn(&Value) -> bool) -> Result<Value, Status> {
    read(body, go_type, expected).map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))
}

fn read(body: &[u8], go_type: &str, expected: fn(&Value) -> bool) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let syntax = json::parse(body).err().map(|error| error.0);
        syntax.unwrap_or_else(|| error.to_string())
    })?;
    if expected(&value) {
        return Ok(value);
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Err(format!("json: cannot unmarshal {found} into Go value of type {go_type}"))
}

/// 422 for operations that are unknown or do not fit the object.
fn does_not_apply(failure: Failure) -> Status {
    match failure {
        Failure::Unfit(why) => {
            tracing::debug!(why, "a JSON patch does not apply");
            let message = "the server rejected our request due to an error in our request";
            Status::router(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
        }
        Failure::Large(limit) => Status::failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("the copies of the JSON patch exceed the limit of {limit} bytes"),
        ),
        Failure::TooMuchWork => Status::failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            "the patch moves too many items of lists",
        ),
    }
}

impl ParsedPatch {
    /// The patched object; a strategic merge patch needs a schema and is for [`super::strategic_patch::apply`].
    ///
    /// # Errors
    /// 422 when an operation does not apply or a test fails, as upstream.
    pub fn apply(&self, current: &Object) -> Result<Object, Status> {
        let mut value = Value::Object(current.0.clone());
        match self {
            Self::Json(patch) => {
                json_patch::apply(patch, &mut value, COPIED_MAX).map_err(does_not_apply)?;
            }
            Self::Merge(patch) => ::json_patch::merge(&mut value, patch),
            Self::Strategic(_) => return Err(Status::internal("a strategic merge patch without a schema")),
        }
        let mut object = Object::from_value(value)
            .ok_or_else(|| Status::bad_request("the patched object is not a JSON object"))?;
        // A patch cannot take the type away: the decoder knows which one is wanted.
        for field in ["apiVersion", "kind"] {
            let slot = object.0.entry(field).or_insert(Value::Null);
            if matches!(slot, Value::Null) || *slot == "" {
                *slot = current.0.get(field).cloned().unwrap_or_default();
            }
        }
        Ok(object)
    }

    /// Whether the patch names a resourceVersion (or could): then a conflict is the client's to see.
    fn names_version(&self) -> bool {
        match self {
            Self::Merge(patch) => patch.pointer(VERSION).is_some(),
            Self::Strategic(patch) => {
                patch.get("metadata").is_some_and(|m| m.get("resourceVersion").is_some())
            }
            Self::Json(patch) => patch.iter().any(|operation| operation.path() == VERSION),
        }
    }
}

/// An update by a patch; `apply` makes of patch and current object one that has gone through what every decoded object
/// does (schema, validation of fields).
pub struct PatchUpdater<F> {
    patch: ParsedPatch,
    apply: F,
}

impl<F> PatchUpdater<F>
where
    F: Fn(&ParsedPatch, &Object) -> Result<Object, Status> + Send + Sync,
{
    /// A patch and how it is applied.
    pub fn new(patch: ParsedPatch, apply: F) -> Self {
        Self { patch, apply }
    }
}

impl<F> Updater for PatchUpdater<F>
where
    F: Fn(&ParsedPatch, &Object) -> Result<Object, Status> + Send + Sync,
{
    fn update(&self, current: &Object) -> Result<Object, Status> {
        (self.apply)(&self.patch, current)
    }

    fn retries(&self) -> bool {
        !self.patch.names_version()
    }
}

/// An update by a whole object.
pub struct Replacement(pub Object);

impl Updater for Replacement {
    fn update(&self, _current: &Object) -> Result<Object, Status> {
        Ok(self.0.clone())
    }

    fn retries(&self) -> bool {
        false
    }

    fn replaces(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn headers(content_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
    }

    fn object() -> Object {
        Object::from_value(json!({"kind": "Route", "metadata": {"name": "r"}, "spec": {"host": "a"}}))
            .unwrap()
    }

    #[test]
    fn merges_and_patches() {
        let merge = parse(&headers("application/merge-patch+json"), br#"{"spec":{"host":null,"path":"/x"}}"#)
            .unwrap();
        assert_eq!(merge.apply(&object()).unwrap().0["spec"], json!({"path": "/x"}));
        let patch = br#"[{"op":"replace","path":"/spec/host","value":"b"}]"#;
        let patch = parse(&headers("application/json-patch+json; charset=utf-8"), patch).unwrap();
        assert_eq!(patch.apply(&object()).unwrap().0["spec"], json!({"host": "b"}));
    }

    #[test]
    fn a_patch_takes_no_type_away() {
        let merge = parse(&headers("application/merge-patch+json"), br#"{"kind":null}"#).unwrap();
        assert_eq!(merge.apply(&object()).unwrap().0["kind"], "Route");
        let whole = br#"[{"op":"replace","path":"","value":{}}]"#;
        let whole = parse(&headers("application/json-patch+json"), whole).unwrap();
        assert_eq!(whole.apply(&object()).unwrap().0["kind"], "Route");
    }

    #[test]
    fn null_is_an_empty_json_patch_and_no_merge_patch() {
        assert!(parse(&headers("application/json-patch+json"), b"null").unwrap().apply(&object()).is_ok());
        let status = parse(&headers("application/merge-patch+json"), b"null").unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, "Invalid JSON Patch"));
    }

    #[test]
    fn failed_tests_are_unprocessable() {
        let patch = br#"[{"op":"test","path":"/spec/host","value":"zzz"}]"#;
        let status =
            parse(&headers("application/json-patch+json"), patch).unwrap().apply(&object()).unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    }

    #[test]
    fn doubling_copies_end_early() {
        let mut operations = vec![json!({"op": "add", "path": "/spec/a", "value": "x".repeat(1000)})];
        operations
            .extend((0..60).map(|n| json!({"op": "copy", "from": "/spec", "path": format!("/spec/c{n}")})));
        let body = serde_json::to_vec(&operations).unwrap();
        let status =
            parse(&headers("application/json-patch+json"), &body).unwrap().apply(&object()).unwrap_err();
        assert_eq!(status.code, 413);
    }

    #[test]
    fn other_patch_types_are_named() {
        for media_type in ["application/apply-patch+yaml", "text/plain"] {
            let status = parse(&headers(media_type), b"{}").unwrap_err();
            assert_eq!((status.code, status.reason.as_str()), (415, "UnsupportedMediaType"));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_patch_or_an_error(body in ".{0,200}", json in any::<bool>()) {
            let kind = if json { "application/json-patch+json" } else { "application/merge-patch+json" };
            if let Ok(patch) = parse(&headers(kind), body.as_bytes()) {
                let _ = patch.apply(&object());
            }
        }
    }
}
