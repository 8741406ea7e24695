//! Requests that go no further: those that two readers could understand in two ways, and answers of our own.

use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, UPGRADE,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use picoshift_machinery::body::Body;
use picoshift_machinery::{Status, answer, plain};
use uuid::Uuid;

use crate::credentials::{self, Carried};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Why a request is refused before anybody looks at who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no single meaning; the words are those of Go's server where it has some.
    Malformed(&'static str),
    /// It asks for a tunnel in a way that nobody behind us understands.
    Connect,
}

/// Looks at the head of a request. `ends` says that it has no body.
///
/// # Errors
/// [`Refusal`].
pub fn check(head: &Parts, ends: bool) -> Result<(), Refusal> {
    if head.method == Method::CONNECT {
        return Err(Refusal::Connect);
    }
    let count = |name: HeaderName| head.headers.get_all(name).iter().count();
    if head.version < Version::HTTP_2 {
        match (count(HOST), head.version) {
            (0, Version::HTTP_11) => return Err(Refusal::Malformed("missing required Host header")),
            (0 | 1, _) => {}
            _ => return Err(Refusal::Malformed("too many Host headers")),
        }
    } else if count(HOST) > 1 {
        return Err(Refusal::Malformed("too many Host headers"));
    }
    if head.headers.get(HOST).is_some_and(|host| !host.as_bytes().iter().all(is_host_byte)) {
        return Err(Refusal::Malformed("malformed Host header"));
    }
    if count(AUTHORIZATION) > 1 {
        return Err(Refusal::Malformed("too many Authorization headers"));
    }
    // Which of two tokens kube-apiserver takes depends on both; we could not tell whose end is the stream's.
    if let (Carried::Token(one), Carried::Token(other)) =
        (credentials::bearer(&head.headers), credentials::websocket(&head.headers))
        && one != other
    {
        return Err(Refusal::Malformed("two bearer tokens"));
    }
    if count(CONTENT_LENGTH) > 1 {
        return Err(Refusal::Malformed("too many Content-Length headers"));
    }
    if !head.uri.path().starts_with('/') {
        return Err(Refusal::Malformed("malformed target"));
    }
    // What follows belongs to the other protocol, or to the next request: nobody may take it for the other.
    if head.headers.contains_key(UPGRADE) && credentials::asks_for_upgrade(&head.headers) && !ends {
        return Err(Refusal::Malformed("upgrade with a body"));
    }
    Ok(())
}

/// Whether a byte may be in `Host`, as Go's server has it.
fn is_host_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=@[]_~".contains(byte)
}

/// Answers a refusal. A connection of HTTP/1 ends with it: what would come next may be part of the attack.
#[must_use]
pub fn refused(refusal: Refusal, version: Version) -> Response<Body> {
    match refusal {
        Refusal::Malformed(why) => {
            let mut response = plain::text(StatusCode::BAD_REQUEST, format!("400 Bad Request: {why}"));
            if version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
        Refusal::Connect => answer::status(&Status::no_such_method()),
    }
}

/// What a request says of the form of its answer.
#[derive(Clone, Debug)]
pub struct Form {
    accept: Option<HeaderValue>,
    audit_id: Option<HeaderValue>,
    /// Version of HTTP.
    pub version: Version,
}

impl Form {
    /// Reads it from the head.
    #[must_use]
    pub fn of(head: &Parts) -> Self {
        let audit_id = head.headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        Self { accept: head.headers.get(ACCEPT).cloned(), audit_id, version: head.version }
    }
}

/// 401 as kube-apiserver gives it, in the encoding that is asked for.
#[must_use]
pub fn unauthorized(form: &Form) -> Response<Body> {
    let mut response = answer::negotiated(&Status::unauthorized(), form.accept.as_ref());
    let id = form.audit_id.clone().or_else(|| HeaderValue::from_str(&Uuid::new_v4().to_string()).ok());
    if let Some(id) = id {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// 503: the server behind us cannot be reached, or went away in the middle. Who has lost nothing may try again at once.
#[must_use]
pub fn unreachable(form: &Form, why: &str, untouched: bool) -> Response<Body> {
    let status = Status::unavailable(format!("error trying to reach service: {why}"));
    let mut response = answer::negotiated(&status, form.accept.as_ref());
    if untouched {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// 504: the answer did not begin in time.
#[must_use]
pub fn too_slow(form: &Form) -> Response<Body> {
    let status = Status::timeout("request did not complete within the allotted timeout", 0);
    answer::negotiated(&status, form.accept.as_ref())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(target: &str, pairs: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(target);
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn one_host_and_one_credential() {
        let ok = |pairs: &[(&str, &str)]| check(&head("/api", pairs), true);
        assert_eq!(ok(&[("host", "a:1")]), Ok(()));
        assert_eq!(ok(&[("host", "[::1]:6443")]), Ok(()));
        for bad in [
            &[][..],
            &[("host", "a"), ("host", "a")],
            &[("host", "a b")],
            &[("host", "a/b")],
            &[("host", "a"), ("authorization", "Bearer a"), ("authorization", "Bearer a")],
            &[("host", "a"), ("content-length", "0"), ("content-length", "0")],
        ] {
            assert!(matches!(ok(bad), Err(Refusal::Malformed(_))), "{bad:?}");
        }
        assert!(matches!(check(&head("*", &[("host", "a")]), true), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn two_tokens_are_one_or_none() {
        use base64::Engine as _;
        let ask = |bearer: &str, protocol: &str| {
            let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(protocol);
            let protocols = format!("v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.{encoded}");
            let upgrade = [("host", "a"), ("connection", "Upgrade"), ("upgrade", "websocket")];
            let tokens = [("authorization", bearer), ("sec-websocket-protocol", protocols.as_str())];
            check(&head("/", &[&upgrade[..], &tokens[..]].concat()), true)
        };
        assert_eq!(ask("Bearer sha256~a", "sha256~a"), Ok(()));
        assert_eq!(ask("Basic x", "sha256~a"), Ok(()));
        assert!(matches!(ask("Bearer sha256~a", "sha256~b"), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn an_upgrade_has_no_body() {
        let pairs = [("host", "a"), ("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
        assert_eq!(check(&head("/", &pairs), true), Ok(()));
        assert!(check(&head("/", &pairs), false).is_err());
    }

    #[test]
    fn a_refusal_is_kube_apiservers() {
        let response = unauthorized(&Form::of(&head("/", &[("audit-id", "mine")])));
        assert_eq!(
            (response.status().as_u16(), &response.headers()["audit-id"]),
            (401, &"mine".parse().unwrap())
        );
        assert_eq!(response.headers()["content-type"], "application/json");
    }
}
