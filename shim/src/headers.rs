//! What a proxy takes out of headers and puts in.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{CONNECTION, COOKIE, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

const CLAIM_PREFIX: &[u8] = b"x-remote-";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const LEGACY_SCOPES: HeaderName = HeaderName::from_static("impersonate-user-scope");
const SCOPES: HeaderName = HeaderName::from_static("impersonate-extra-scopes.authorization.openshift.io");
/// Headers of one connection, beside `Connection` itself and what it names.
const HOP_BY_HOP: [HeaderName; 6] = [
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    TRANSFER_ENCODING,
    UPGRADE,
];
/// What a client may not have dropped by naming it in `Connection`: whoever stands before us may have added it, and
/// kube-apiserver, asked directly, would heed it.
const KEPT: [&str; 14] = [
    "accept",
    "audit-id",
    "authorization",
    "content-",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "impersonate-",
    "origin",
    "sec-",
    "te",
    "x-forwarded-",
    "x-stream-protocol-version",
];

/// Makes the headers of a client's request those that are sent on: without claims of identity and what concerns its connection
/// only, and with who asked. `upgrades` says whether the connection is to become a tunnel.
pub fn forward(headers: &mut HeaderMap, uri: &Uri, client: IpAddr, upgrades: bool) {
    drop_claims(headers);
    translate_legacy_scopes(headers);
    settle_host(headers, uri);
    let protocol = headers.get(UPGRADE).cloned().filter(|_| upgrades);
    drop_hop_by_hop(headers);
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    add_forwarded_for(headers, client);
}

/// Whether a header is a front proxy's word, in any spelling.
#[must_use]
pub fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let same = |(own, wanted): (&u8, &u8)| own == wanted || (*own == b'_' && *wanted == b'-');
    name.len() >= CLAIM_PREFIX.len() && name.iter().zip(CLAIM_PREFIX).all(same)
}

/// Drops every claim of identity.
pub fn drop_claims(headers: &mut HeaderMap) {
    drop_all(headers, is_claim);
}

/// Drops every header of impersonation.
pub fn drop_impersonation(headers: &mut HeaderMap) {
    drop_all(headers, is_impersonation);
}

/// Whether a header says for whom the caller acts.
#[must_use]
pub fn is_impersonation(name: &HeaderName) -> bool {
    name.as_str().starts_with("impersonate-")
}

fn drop_all(headers: &mut HeaderMap, unwanted: fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| unwanted(name)).cloned() {
        headers.remove(name);
    }
}

/// Drops the headers that concern one connection only.
pub fn drop_hop_by_hop(headers: &mut HeaderMap) {
    join(headers, CONNECTION, b", ");
    if let Some(value) = headers.remove(CONNECTION) {
        drop_named(headers, &value);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    let trailers = headers.get_all(TE).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case("trailers")))
    });
    headers.remove(TE);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

fn drop_named(headers: &mut HeaderMap, connection: &HeaderValue) {
    for token in connection.as_bytes().split(|byte| *byte == b',') {
        let Ok(name) = HeaderName::from_bytes(token.trim_ascii()) else { continue };
        if !is_claim(&name) && !KEPT.iter().any(|own| name.as_str().starts_with(own)) {
            headers.remove(name);
        }
    }
}

/// Joins the lines of a header.
fn join(headers: &mut HeaderMap, name: HeaderName, between: &[u8]) {
    let mut values = headers.get_all(&name).iter();
    if values.next().is_none() || values.next().is_none() {
        return;
    }
    let parts: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&parts.join(between)) {
        headers.insert(name, joined);
    }
}

/// Says for whom the request is forwarded, after what others have said.
pub fn add_forwarded_for(headers: &mut HeaderMap, client: IpAddr) {
    let mut text = String::new();
    for value in headers.get_all(FORWARDED_FOR) {
        let _ = write!(text, "{}, ", String::from_utf8_lossy(value.as_bytes()));
    }
    let _ = write!(text, "{}", client.to_canonical());
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// Adds the scopes that clients of old ask for to those that kube-apiserver knows.
pub fn translate_legacy_scopes(headers: &mut HeaderMap) {
    let scopes: Vec<HeaderValue> = headers.get_all(LEGACY_SCOPES).iter().cloned().collect();
    for scope in scopes {
        headers.append(SCOPES, scope);
    }
}

/// Makes `Host` say what the request's target says, where that names a host: HTTP/2, and absolute targets of HTTP/1. Joins
/// the cookies that HTTP/2 sends apart.
pub fn settle_host(headers: &mut HeaderMap, target: &Uri) {
    if let Some(authority) = target.authority()
        && let Ok(value) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, value);
    }
    headers.entry(HOST).or_insert(HeaderValue::from_static(""));
    join(headers, COOKIE, b"; ");
}

#[cfg(test)]
mod tests;
