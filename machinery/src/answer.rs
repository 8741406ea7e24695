//! Answers in JSON, and `Status` in the encoding that is asked for: as the generic API server writes them.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::body::{Body, full};
use crate::media_type::{self, Answer, Encoding};
use crate::plain::{nosniff, plain_error};
use crate::{Status, protobuf};

/// A response with a content type.
#[must_use]
pub fn with(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
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
