//! Patches: JSON patch (RFC 6902) and merge patch (RFC 7386), bounded as kube-apiserver bounds them. Other patch
//! types answer 415.

use http::{HeaderMap, StatusCode, header};
use json_patch::{AddOperation, CopyOperation, Patch, PatchOperation, TestOperation};
use picoshift_machinery::{Object, Status};
use serde_json::Value;

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
    Json(Patch),
    /// A partial object.
    Merge(Value),
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
            let value = decode(body, "[]handlers.jsonPatchOp", Value::is_array)?;
            let patch: Patch = serde_json::from_value(value).map_err(|error| does_not_apply(&error))?;
            if patch.0.len() > OPERATIONS_MAX {
                return Err(Status::failure(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    format!(
                        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
                        patch.0.len()
                    ),
                ));
            }
            Ok(ParsedPatch::Json(patch))
        }
        "application/merge-patch+json" => {
            decode(body, "map[string]interface {}", Value::is_object).map(ParsedPatch::Merge)
        }
        _ => {
            let message = "415: Unsupported Media Type";
            Err(Status::router(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message))
        }
    }
}

/// The patch as JSON of the kind that is `expected`, `go_type` in Go, whose words an error has.
fn decode(body: &[u8], go_type: &str, expected: fn(&Value) -> bool) -> Result<Value, Status> {
    let bad = |why: &str| Status::bad_request(format!("error decoding patch: {why}"));
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let syntax = json::parse(body).err().map(|error| error.0);
        bad(&syntax.unwrap_or_else(|| error.to_string()))
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
    Err(bad(&format!("json: cannot unmarshal {found} into Go value of type {go_type}")))
}

/// 422 for operations that are unknown or do not fit the object.
fn does_not_apply(error: &dyn std::fmt::Display) -> Status {
    tracing::debug!(%error, "a JSON patch does not apply");
    let message = "the server rejected our request due to an error in our request";
    Status::router(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
}

impl ParsedPatch {
    /// The patched object.
    ///
    /// # Errors
    /// 422 when an operation does not apply or a test fails, as upstream.
    pub fn apply(&self, current: &Object) -> Result<Object, Status> {
        let mut value = Value::Object(current.0.clone());
        match self {
            Self::Json(patch) => {
                check_copies(patch, &value)?;
                json_patch::patch(&mut value, &patch.0).map_err(|error| does_not_apply(&error))?;
            }
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
        }
        Object::from_value(value)
            .ok_or_else(|| Status::bad_request("the patched object is not a JSON object"))
    }

    /// Whether the patch names a resourceVersion (or could): then a conflict is the client's to see.
    fn names_version(&self) -> bool {
        match self {
            Self::Merge(patch) => patch.pointer("/metadata/resourceVersion").is_some(),
            Self::Json(patch) => patch.0.iter().any(|operation| match operation {
                PatchOperation::Add(AddOperation { path, .. })
                | PatchOperation::Test(TestOperation { path, .. }) => path.as_str() == VERSION,
                PatchOperation::Replace(replace) => replace.path.as_str() == VERSION,
                _ => false,
            }),
        }
    }
}

/// Adds up what copies can grow to, before anything is copied.
fn check_copies(patch: &Patch, value: &Value) -> Result<(), Status> {
    let copies = patch.0.iter().filter(|o| matches!(o, PatchOperation::Copy(CopyOperation { .. }))).count();
    if copies == 0 {
        return Ok(());
    }
    // Each copy can at most double the object; the bound is reached after a few of them.
    let mut size = value.to_string().len();
    let mut working = value.clone();
    for operation in &patch.0 {
        if let PatchOperation::Copy(copy) = operation {
            let source = working.pointer(&copy.from.to_string()).map_or(0, |v| v.to_string().len());
            size = size.saturating_add(source);
            if size > COPIED_MAX {
                return Err(Status::failure(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    format!("the copies of the JSON patch exceed the limit of {COPIED_MAX} bytes"),
                ));
            }
        }
        // An operation that does not apply is reported by the real run.
        if json_patch::patch(&mut working, std::slice::from_ref(operation)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// An update by a patch; `check` is what every decoded object goes through (schema, validation of fields).
pub struct PatchUpdater<F> {
    patch: ParsedPatch,
    check: F,
}

impl<F> PatchUpdater<F>
where
    F: Fn(&Object) -> Result<Object, Status> + Send + Sync,
{
    /// A patch with its check.
    pub fn new(patch: ParsedPatch, check: F) -> Self {
        Self { patch, check }
    }
}

impl<F> Updater for PatchUpdater<F>
where
    F: Fn(&Object) -> Result<Object, Status> + Send + Sync,
{
    fn update(&self, current: &Object) -> Result<Object, Status> {
        (self.check)(&self.patch.apply(current)?)
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
        for media_type in
            ["application/strategic-merge-patch+json", "application/apply-patch+yaml", "text/plain"]
        {
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
