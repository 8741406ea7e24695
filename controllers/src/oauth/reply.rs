//! Answers: the headers that every one has, redirects as Go's `http.Redirect` makes them, and those of the OAuth protocol.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, EXPIRES, HeaderName, LOCATION, PRAGMA, SET_COOKIE};
use http::{HeaderValue, Response, StatusCode};
use picoshift_machinery::body::{Body, full};
use picoshift_machinery::plain;
use serde_json::{Map, Value};

use super::call::Call;
use super::url::{self, Values};

/// An answer.
pub type Reply = Response<Body>;

const NO_CACHE: &str = "no-cache, no-store, max-age=0, must-revalidate";
/// On every answer.
const STANDARD: [(&str, &str); 8] = [
    ("cache-control", NO_CACHE),
    ("pragma", "no-cache"),
    ("expires", "0"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("x-dns-prefetch-control", "off"),
    ("x-xss-protection", "1; mode=block"),
];

/// Adds what every answer has; what the answer says itself comes after it.
#[must_use]
pub fn with_standard_headers(mut reply: Reply) -> Reply {
    let own = std::mem::take(reply.headers_mut());
    for (name, value) in STANDARD {
        reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let mut last = None;
    for (name, value) in own {
        last = name.or(last);
        let Some(name) = &last else { continue };
        if name.as_str() != "x-content-type-options" {
            reply.headers_mut().append(name, value);
        }
    }
    reply
}

/// An answer without a body.
#[must_use]
pub fn empty(code: StatusCode) -> Reply {
    let mut reply = Response::new(full(""));
    *reply.status_mut() = code;
    reply
}

/// Adds a header, if its value can stand in one.
#[must_use]
pub fn with_header(mut reply: Reply, name: HeaderName, value: &str) -> Reply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().append(name, value);
    }
    reply
}

/// Adds a cookie that lives as long as the browser, for this server only.
#[must_use]
pub fn with_cookie(reply: Reply, name: &str, value: &str) -> Reply {
    with_header(reply, SET_COOKIE, &format!("{name}={value}; Path=/; HttpOnly; Secure"))
}

/// 302 to a place that is taken as it is.
#[must_use]
pub fn found(location: &str) -> Reply {
    with_header(empty(StatusCode::FOUND), LOCATION, &ascii(location))
}

/// 302 as Go's `http.Redirect` answers: a relative place is resolved, and a browser that does not follow finds a link.
#[must_use]
pub fn redirect(call: &Call, location: &str) -> Reply {
    let location = ascii(&resolved(call, location));
    let mut reply = found(&location);
    if matches!(call.method, http::Method::GET | http::Method::HEAD) {
        *reply.body_mut() = full(format!("<a href=\"{}\">Found</a>.\n\n", escape(&location)));
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    }
    reply
}

fn resolved(call: &Call, location: &str) -> String {
    if !url::read(location).is_ok_and(|url| url.scheme.is_empty() && url.host.is_empty()) {
        return location.to_owned();
    }
    let (path, query) = location.split_at(location.find('?').unwrap_or(location.len()));
    let folder = &call.path[..call.path.rfind('/').map_or(0, |at| at + 1)];
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
    format!("{}{query}", clean(&path))
}

/// Go's `path.Clean`, of an absolute path, which keeps a slash at its end.
fn clean(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

/// What is not ASCII, escaped.
fn ascii(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02x}"));
        }
    }
    safe
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

/// 405, as a Go handler that knows its methods.
#[must_use]
pub fn method_not_allowed() -> Reply {
    plain::plain_error(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
}

/// An error of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A parameter is wrong or missing.
    InvalidRequest,
    /// The client is unknown, or has not proved who it is.
    UnauthorizedClient,
    /// The user, or we, said no.
    AccessDenied,
    /// Neither `code` nor `token`.
    UnsupportedResponseType,
    /// A scope that is none.
    InvalidScope,
    /// Our fault.
    ServerError,
    /// Not the one grant that there is.
    UnsupportedGrantType,
    /// A code that is over, or somebody else's.
    InvalidGrant,
}

impl ErrorCode {
    /// Its name in the protocol.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::AccessDenied => "access_denied",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::ServerError => "server_error",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidGrant => "invalid_grant",
        }
    }

    /// What clients are told if there is nothing more to say.
    #[must_use]
    pub fn description(self) -> &'static str {
        description(self.id())
    }
}

/// What clients are told of an error: RFC 6749's words, or the error itself.
#[must_use]
pub fn description(id: &str) -> &str {
    match id {
        "invalid_request" => {
            "The request is missing a required parameter, includes an invalid parameter value, includes a parameter more than once, or is otherwise malformed."
        }
        "unauthorized_client" => "The client is not authorized to request a token using this method.",
        "access_denied" => "The resource owner or authorization server denied the request.",
        "unsupported_response_type" => {
            "The authorization server does not support obtaining a token using this method."
        }
        "invalid_scope" => "The requested scope is invalid, unknown, or malformed.",
        "server_error" => {
            "The authorization server encountered an unexpected condition that prevented it from fulfilling the request."
        }
        "temporarily_unavailable" => {
            "The authorization server is currently unable to handle the request due to a temporary overloading or maintenance of the server."
        }
        "unsupported_grant_type" => {
            "The authorization grant type is not supported by the authorization server."
        }
        "invalid_grant" => {
            "The provided authorization grant (e.g., authorization code, resource owner credentials) or refresh token is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client."
        }
        "invalid_client" => {
            "Client authentication failed (e.g., unknown client, no client authentication included, or unsupported authentication method)."
        }
        other => other,
    }
}

/// Parameters of an error.
#[must_use]
pub fn error(id: &str, text: &str, state: &str) -> Values {
    let text = if text.is_empty() { description(id) } else { text };
    let mut values = Values::from([("error", id), ("error_description", text)]);
    if !state.is_empty() {
        values.set("state", state);
    }
    values
}

/// 302 to the client, with what it is told in the query, or in the fragment.
#[must_use]
pub fn to_client(redirect_uri: &str, told: Values, in_fragment: bool) -> Reply {
    let (place, query) = redirect_uri.split_once('?').unwrap_or((redirect_uri, ""));
    let mut values = Values::parse(query);
    values.set_all(told);
    let mark = if in_fragment { '#' } else { '?' };
    with_protocol_headers(found(&format!("{place}{mark}{}", values.encode())))
}

/// JSON for the client, in the order of the names, as Go writes a map.
#[must_use]
pub fn json(code: StatusCode, told: Map<String, Value>) -> Reply {
    let mut reply = Response::new(full(format!("{}\n", Value::Object(told))));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    with_protocol_headers(reply)
}

/// 400 with an error as JSON.
#[must_use]
pub fn json_error(code: ErrorCode, state: &str) -> Reply {
    let mut told = Map::new();
    told.insert("error".to_owned(), code.id().into());
    told.insert("error_description".to_owned(), code.description().into());
    if !state.is_empty() {
        told.insert("state".to_owned(), state.into());
    }
    json(StatusCode::BAD_REQUEST, told)
}

fn with_protocol_headers(mut reply: Reply) -> Reply {
    let headers = reply.headers_mut();
    headers.append(CACHE_CONTROL, HeaderValue::from_static(NO_CACHE));
    headers.append(PRAGMA, HeaderValue::from_static("no-cache"));
    headers.append(EXPIRES, HeaderValue::from_static("Fri, 01 Jan 1990 00:00:00 GMT"));
    reply
}

#[cfg(test)]
mod tests;
