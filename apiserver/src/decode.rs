//! Request bodies: bytes and a content type → an object that fits its schema, or the error that kube-apiserver gives.

mod delete_options;
mod identity;
pub mod json;
pub mod node;
mod protobuf;
pub(crate) mod strict;
mod yaml;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use picoshift_machinery::field_error::FieldError;
use picoshift_machinery::{Object, Status};

pub use delete_options::decode_delete_options;
use identity::Identity;
use node::Node;

use crate::resource::Resource;
use crate::schema::{self, FieldValidation, Schemas};

/// The largest body that is read.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// A decoded body.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, as the Go type would be encoded; `apiVersion` and `kind` are those of the resource.
    pub object: Object,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// A parsed patch document.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchDocument {
    /// The document.
    pub value: serde_json::Value,
    /// `duplicate field "spec.host"`: fields that appear twice, for [`decode_patched`].
    pub strict: Vec<String>,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    Protobuf,
    Yaml,
}

/// What is read of a body that is too large, in multiples of the limit, so that the client hears why: one that is
/// still sending when the answer comes may lose it with the stream.
const DISCARDED: usize = 4;

/// Reads a whole body.
///
/// # Errors
/// 413 above `limit` bytes; 400 when the client stops sending.
pub async fn read_body<B>(mut body: B, limit: usize) -> Result<Bytes, Status>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let too_large = || {
        let message = format!("Request entity too large: limit is {limit}");
        Status::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    };
    if body.size_hint().lower() > limit as u64 {
        discard(body, limit * DISCARDED).await;
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + more.len() + data.len() > limit {
            drop((first, more));
            discard(body, limit * (DISCARDED - 1)).await;
            return Err(too_large());
        }
        // Most bodies are one frame, which is not copied.
        if first.is_empty() && more.is_empty() {
            first = data;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&std::mem::take(&mut first));
            }
            more.extend_from_slice(&data);
        }
    }
    Ok(if more.is_empty() { first } else { more.freeze() })
}

/// Reads up to `most` bytes and keeps none.
async fn discard<B: Body<Data = Bytes> + Unpin>(mut body: B, most: usize) {
    let mut seen = 0;
    while seen < most
        && let Some(Ok(frame)) = body.frame().await
    {
        seen += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// Decodes the body of a create or an update.
///
/// # Errors
/// 415 for a content type that is not read, 400 for everything that is wrong with the body.
pub fn decode_object(
    schemas: &Schemas,
    resource: &Resource,
    content_type: Option<&str>,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let encoding = encoding(content_type)?;
    if encoding == Encoding::Protobuf {
        return protobuf::object(schemas, resource, body);
    }
    let wanted = resource.gvk.kind;
    let unreadable = |why: String| unrecognized(wanted, &why, body);
    let parsed = parse(encoding, body).map_err(unreadable)?;
    let identity = Identity::of(&parsed.node).map_err(unreadable)?.or(resource.object_kind());
    let refused = |why: &str| schema::cannot_be_handled(&identity.kind, &identity.version, wanted, why);
    identity.expect(schemas, resource.object_kind())?;
    let strict = validation != FieldValidation::Ignore;
    let checked = schemas.decode(resource, parsed.node, strict).map_err(|error| refused(&error.0))?;
    if validation == FieldValidation::Strict && (!checked.strict.is_empty() || !parsed.repeated.is_empty()) {
        let mut errors = checked.strict;
        if !parsed.repeated.is_empty() {
            errors.insert(0, yaml::strict_error(&parsed.repeated));
        }
        return Err(refused(&schema::strict_error(&errors)));
    }
    let mut object = checked.object;
    object.0.insert("apiVersion".to_owned(), resource.object_kind().api_version().into());
    object.0.insert("kind".to_owned(), wanted.into());
    let mut warnings = if strict { parsed.repeated } else { Vec::new() };
    warnings.extend(checked.strict);
    Ok(Decoded { object, warnings })
}

/// 400: a body of which not even the kind can be read.
fn unrecognized(wanted: &str, why: &dyn std::fmt::Display, body: &[u8]) -> Status {
    let summary = summary(body);
    let message =
        format!("the object provided is unrecognized (must be of type {wanted}): {why} ({summary})");
    Status::bad_request(message)
}

/// Parses a JSON or merge patch, both of which are JSON.
///
/// # Errors
/// 400.
pub fn decode_patch(body: &[u8]) -> Result<PatchDocument, Status> {
    let node =
        json::parse(body).map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let mut strict = node.duplicates();
    if matches!(node, Node::List(_)) {
        strict.iter_mut().for_each(|text| text.insert_str(0, "json patch "));
    }
    Ok(PatchDocument { value: node.into_value(), strict })
}

/// What an apply sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The document: an object, or null.
    pub value: serde_json::Value,
    /// `line 4: key "host" already set in map`.
    pub repeated: Vec<String>,
}

/// Parses the configuration of an apply, which is YAML; JSON is YAML too, and mostly what comes.
///
/// # Errors
/// 400.
pub fn decode_configuration(body: &[u8]) -> Result<Configuration, Status> {
    let bad = |why: String| Status::bad_request(format!("error decoding YAML: {why}"));
    // On which lines members are repeated, only the YAML parser knows.
    let json = json::parse(body).ok().filter(|node| node.duplicates().is_empty());
    let parsed = match json {
        Some(node) => Parsed { node, repeated: Vec::new() },
        None => yaml::parse(body).map_err(|why| bad(format!("error converting YAML to JSON: {why}")))?,
    };
    if !matches!(parsed.node, Node::Map(_) | Node::Null) {
        return Err(bad(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            parsed.node.kind()
        )));
    }
    Ok(Configuration { value: parsed.node.into_value(), repeated: parsed.repeated })
}

/// Decodes what a JSON or merge patch made of an object. `from_patch` are the strict errors of the patch document
/// itself. Answers the object and warnings.
///
/// # Errors
/// 422 about `patch`, as the real handlers answer.
pub fn decode_patched(
    schemas: &Schemas,
    resource: &Resource,
    patched: &Object,
    mut from_patch: Vec<String>,
    validation: FieldValidation,
) -> Result<(Object, Vec<String>), Status> {
    let invalid = |why: String| {
        let text = String::from_utf8_lossy(&patched.to_bytes()).into_owned();
        Status::invalid("", "", "", &[FieldError::invalid_str("patch", &text, why)])
    };
    let document = Node::from(serde_json::Value::Object(patched.0.clone()));
    let identity = Identity::of(&document).map_err(invalid)?.or(resource.object_kind());
    if !identity.is(resource.object_kind()) {
        return Err(invalid(identity.mismatch(schemas, resource.object_kind())));
    }
    let checked = schemas
        .decode(resource, document, validation != FieldValidation::Ignore)
        .map_err(|error| invalid(error.0))?;
    from_patch.extend(checked.strict);
    if validation == FieldValidation::Strict && !from_patch.is_empty() {
        return Err(invalid(schema::strict_error(&from_patch)));
    }
    Ok((checked.object, from_patch))
}

/// A parsed body.
struct Parsed {
    node: Node,
    /// YAML: `line 4: key "host" already set in map`.
    repeated: Vec<String>,
}

/// Parses a text.
fn parse(encoding: Encoding, body: &[u8]) -> Result<Parsed, String> {
    match encoding {
        Encoding::Json | Encoding::Protobuf => json::parse(body)
            .map(|node| Parsed { node, repeated: Vec::new() })
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}")),
        Encoding::Yaml => yaml::parse(body),
    }
}

/// The encoding that a content type names; JSON where there is none.
fn encoding(content_type: Option<&str>) -> Result<Encoding, Status> {
    let text = content_type.unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence {
        "" if text.is_empty() => Ok(Encoding::Json),
        _ if essence.eq_ignore_ascii_case("application/json") => Ok(Encoding::Json),
        _ if essence.eq_ignore_ascii_case("application/yaml") => Ok(Encoding::Yaml),
        _ if essence.eq_ignore_ascii_case("application/vnd.kubernetes.protobuf") => Ok(Encoding::Protobuf),
        _ => Err(Status::failure(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// The beginning of a body for error messages: as text when it looks like JSON, else in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let head = &body[..body.len().min(LENGTH)];
    let mut text = if body[0] == b'{' {
        String::from_utf8_lossy(head).into_owned()
    } else {
        head.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if body.len() > LENGTH {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests;
