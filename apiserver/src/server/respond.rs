//! Answers that the server itself gives.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use picoshift_machinery::Status;
use picoshift_machinery::body::{Body, empty, full};
use serde::Serialize;

const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// A response with a content type.
fn with(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A `Status` as JSON.
#[must_use]
pub fn status(status: &Status) -> Response<Body> {
    let mut response = json(status.http_code(), &status.to_value());
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// 403, with the header that kube-apiserver adds to it.
#[must_use]
pub fn forbidden(why: &Status) -> Response<Body> {
    let mut response = status(why);
    response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}

/// A value as JSON with a line end, as the generic server writes it.
pub fn json(code: StatusCode, value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            with(code, "application/json", full(bytes))
        }
        Err(error) => plain_error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// A value as JSON for people, without a line end.
pub fn pretty_json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec_pretty(value) {
        Ok(bytes) => with(StatusCode::OK, "application/json", full(bytes)),
        Err(error) => plain_error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Plain text.
pub fn text(code: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    with(code, "text/plain; charset=utf-8", full(text))
}

/// An error in plain text, as Go's `http.Error` writes it.
#[must_use]
pub fn plain_error(code: StatusCode, message: &str) -> Response<Body> {
    let mut response = text(code, format!("{message}\n"));
    response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}

/// Plain text that browsers must not guess about.
pub fn plain(body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = text(StatusCode::OK, body);
    response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}

/// 500 of the server's own making, in the words of the generic API server.
#[must_use]
pub fn internal_error(uri: &str, message: &str) -> Response<Body> {
    let text = format!("Internal Server Error: {uri:?}: {message}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    plain_error(StatusCode::INTERNAL_SERVER_ERROR, &text)
}

/// 429: too much at a time.
#[must_use]
pub fn too_many_requests() -> Response<Body> {
    let mut response =
        plain_error(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// 404 for a path that nothing answers.
#[must_use]
pub fn not_found() -> Response<Body> {
    plain_error(StatusCode::NOT_FOUND, "404 page not found")
}

/// The head of a response without its body, for HEAD.
#[must_use]
pub fn head_only(response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let mut head = response.map(|_| empty());
    if let Some(length) = length {
        head.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    head
}
