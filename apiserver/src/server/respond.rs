//! Answers that the server itself gives.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use picoshift_machinery::Status;
use picoshift_machinery::body::{Body, empty, full};
use picoshift_machinery::plain::nosniff;
pub use picoshift_machinery::plain::{not_found, plain_error, text};
use serde::Serialize;

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
    nosniff(status(why))
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
