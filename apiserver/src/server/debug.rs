//! `/debug/flags/v`: how much the log says, changed while the server runs, as kube-apiserver has it. RBAC says who may:
//! verb `put`, non-resource URL `/debug/flags/v`. And `/debug/pprof/`, which says where profiles are to be had.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use picoshift_machinery::body::Body;
use picoshift_machinery::field_error::quote;
use picoshift_machinery::log::Verbosity;

use super::respond::{self, plain_error};
use super::{Endpoint, Endpoints};
use crate::rest::RequestContext;

/// Nobody needs more digits.
const MAX_BODY: usize = 1024;

const INDEX: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
    <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

const NO_PROFILES: &str =
    "no profiles are taken inside this process; take them from outside: perf record -g -p PID";

struct Flag(Verbosity);
struct Index;
struct NoProfiles;

/// Adds the paths.
#[must_use]
pub fn add(endpoints: Endpoints, verbosity: Verbosity) -> Endpoints {
    let index = Arc::new(Index);
    endpoints
        .path("/debug/flags", Arc::clone(&index) as Arc<dyn Endpoint>)
        .prefix("/debug/flags/", index)
        .path("/debug/flags/v", Arc::new(Flag(verbosity)))
        .prefix("/debug/pprof/", Arc::new(NoProfiles))
}

#[async_trait]
impl Endpoint for Index {
    async fn call(&self, _cx: Arc<RequestContext>, _request: Request<Incoming>) -> Response<Body> {
        let mut response = respond::text(StatusCode::OK, INDEX.to_owned());
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, html);
        response
    }
}

#[async_trait]
impl Endpoint for NoProfiles {
    async fn call(&self, _cx: Arc<RequestContext>, _request: Request<Incoming>) -> Response<Body> {
        plain_error(StatusCode::NOT_FOUND, NO_PROFILES)
    }
}

#[async_trait]
impl Endpoint for Flag {
    async fn call(&self, cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body> {
        let (code, text) = if request.method() == Method::PUT {
            match Limited::new(request.into_body(), MAX_BODY).collect().await {
                Ok(body) => self.put(&cx, &String::from_utf8_lossy(&body.to_bytes())),
                Err(error) => (StatusCode::BAD_REQUEST, format!("error reading request body: {error}")),
            }
        } else {
            (StatusCode::NOT_ACCEPTABLE, "unsupported http method".to_owned())
        };
        let mut response = plain_error(code, &text);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        response
    }
}

impl Flag {
    fn put(&self, cx: &RequestContext, body: &str) -> (StatusCode, String) {
        let level = match read(body) {
            Ok(level) => level,
            Err(why) => return (StatusCode::BAD_REQUEST, why),
        };
        if !self.0.set(level) {
            return (
                StatusCode::BAD_REQUEST,
                format!("failed set klog.logging.verbosity {body}: the log is gone"),
            );
        }
        tracing::info!(user = cx.user.name, level, "log verbosity set");
        (StatusCode::OK, format!("successfully set klog.logging.verbosity to {body}"))
    }
}

/// Reads a number as Go does.
fn read(text: &str) -> Result<u32, String> {
    let error = |why: &str| format!("strconv.ParseUint: parsing {}: {why}", quote(text));
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error("invalid syntax"));
    }
    text.parse().map_err(|_| error("value out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_go_s() {
        assert_eq!(read("4"), Ok(4));
        assert_eq!(read("007"), Ok(7));
        for text in ["", "-1", "+1", "4 ", "debug"] {
            assert_eq!(read(text), Err(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")));
        }
        assert_eq!(
            read("99999999999"),
            Err("strconv.ParseUint: parsing \"99999999999\": value out of range".to_owned())
        );
    }
}
