//! Answers in plain text, as Go's servers write them.

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};

use crate::body::{Body, full};

/// Browsers must not guess what the body is.
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// Plain text.
pub fn text(code: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// An error in plain text, as Go's `http.Error` writes it.
#[must_use]
pub fn plain_error(code: StatusCode, message: &str) -> Response<Body> {
    nosniff(text(code, format!("{message}\n")))
}

/// 200 with plain text that browsers must not guess about.
pub fn ok(body: impl Into<bytes::Bytes>) -> Response<Body> {
    nosniff(text(StatusCode::OK, body))
}

/// 404 for a path that nothing answers.
#[must_use]
pub fn not_found() -> Response<Body> {
    plain_error(StatusCode::NOT_FOUND, "404 page not found")
}

/// Adds the header that keeps browsers from guessing.
#[must_use]
pub fn nosniff(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}
