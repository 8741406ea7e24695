//! Answers that the server itself gives.

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use picoshift_machinery::Status;
use picoshift_machinery::answer::with;
pub use picoshift_machinery::answer::{forbidden, json, negotiated, status};
use picoshift_machinery::body::{Body, empty, full};
pub use picoshift_machinery::plain::{not_found, plain_error, text};
use serde::Serialize;

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

/// 500: a handler panicked.
#[must_use]
pub fn panicked() -> Response<Body> {
    let text = "This request caused apiserver to panic. Look in the logs for details.";
    plain_error(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// 429: too much at a time.
#[must_use]
pub fn too_many_requests() -> Response<Body> {
    let mut response =
        plain_error(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// 504: the request's time is over. As the generic API server writes it: a bare status, said to be text.
#[must_use]
pub fn timed_out() -> Response<Body> {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    let mut value = status.to_value();
    if let Some(map) = value.as_object_mut() {
        map.retain(|field, _| field != "kind" && field != "apiVersion");
    }
    let mut response = json(status.http_code(), &value);
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response.extensions_mut().insert(Arc::new(status));
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
