//! The headers that every answer carries.

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The request's audit id, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> HeaderValue {
    if let Some(id) = headers.get(&AUDIT_ID).filter(|id| !id.is_empty()) {
        return id.clone();
    }
    let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    HeaderValue::from_str(id.hyphenated().encode_lower(&mut text))
        .unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// Adds what an answer to a request for `path` lacks.
pub(super) fn complete(headers: &mut HeaderMap, path: &str, audit_id: HeaderValue) {
    headers.entry(CACHE_CONTROL).or_insert_with(|| cache_control(path));
    headers.entry(AUDIT_ID).or_insert(audit_id);
}

/// openshift-apiserver lets nothing be stored but what describes the API.
fn cache_control(path: &str) -> HeaderValue {
    if path.starts_with("/openapi/") || path.starts_with("/swagger") {
        HeaderValue::from_static("no-cache, private")
    } else {
        HeaderValue::from_static("no-store")
    }
}
