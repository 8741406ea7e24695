//! Answers that the server itself gives.

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use picoshift_machinery::body::{Body, empty, full};
use picoshift_machinery::media_type::{self, Answer, Encoding};
use picoshift_machinery::plain::nosniff;
pub use picoshift_machinery::plain::{not_found, plain_error, text};
use picoshift_machinery::{Status, protobuf};
use serde::Serialize;

/// A response with a content type.
fn with(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A `Status` as JSON. The answer carries the status along, for the audit.
#[must_use]
pub fn status(status: &Status) -> Response<Body> {
    let mut response = json(status.http_code(), &status.to_value());
    response.extensions_mut().insert(Arc::new(status.clone()));
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// A `Status` in the encoding that is asked for first, else as JSON.
#[must_use]
pub fn negotiated(status: &Status, accept: Option<&HeaderValue>) -> Response<Body> {
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let form = media_type::of_errors(accept);
    let mut response = self::status(status);
    let content = match form.encoding {
        Encoding::Json => return response,
        Encoding::Yaml => serde_saphyr::to_string(&status.to_value()).unwrap_or_default().into(),
        Encoding::Protobuf => protobuf::status(status),
    };
    *response.body_mut() = full(content);
    let content_type = HeaderValue::from_static(form.content_type(Answer::One));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// 403, with the header that kube-apiserver adds to it.
#[must_use]
pub fn forbidden(why: &Status, accept: Option<&HeaderValue>) -> Response<Body> {
    nosniff(negotiated(why, accept))
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_refusal_is_in_the_encoding_that_is_asked_for() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        for (accept, content_type, begins) in [
            (Some("application/vnd.kubernetes.protobuf,application/json"), protobuf, "k8s\0"),
            (Some("application/vnd.kubernetes.protobuf;stream=watch"), protobuf, "k8s\0"),
            (Some("application/json"), "application/json", "{"),
            (Some("application/yaml"), "application/yaml", "apiVersion"),
            (
                Some("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json"),
                "application/json",
                "{",
            ),
            (Some("text/html"), "application/json", "{"),
            (None, "application/json", "{"),
        ] {
            let accept = accept.map(HeaderValue::from_static);
            let response = forbidden(&Status::unauthorized(), accept.as_ref());
            assert_eq!(response.headers()[CONTENT_TYPE], content_type);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(body.starts_with(begins.as_bytes()), "{accept:?}");
        }
    }
}
