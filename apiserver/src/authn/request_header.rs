//! The front proxy's word: `X-Remote-User` and its companions, believed only on a connection whose certificate comes
//! from the request-header authority and has an allowed name.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use picoshift_machinery::UserInfo;
use picoshift_machinery::peer::{BadSubject, PeerCertificate};
use picoshift_machinery::tls::{ChainError, TrustBundle};
use rustls::pki_types::UnixTime;

use super::{Identity, Method};

/// Whom to believe, and which headers.
#[derive(Debug)]
pub struct RequestHeader {
    /// Authority of front-proxy certificates.
    pub authority: Arc<TrustBundle>,
    /// Common names that may speak for others; empty means any.
    pub allowed_names: Vec<String>,
    /// Headers with the user name; the first that is there counts.
    pub user_headers: Vec<HeaderName>,
    /// Headers with groups, one per line.
    pub group_headers: Vec<HeaderName>,
    /// Headers with the uid; none are believed unless listed.
    pub uid_headers: Vec<HeaderName>,
    /// Prefixes of extra headers, in lower case.
    pub extra_prefixes: Vec<String>,
}

/// Why a connection may not speak for others.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotFrontProxy {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Subject(#[from] BadSubject),
    #[error("subject with cn={0} is not in the allowed list")]
    Name(String),
}

/// The identity that the last request of a connection claimed, with the headers that said so.
#[derive(Debug)]
pub(super) struct Remembered {
    rules: Arc<RequestHeader>,
    headers: Vec<(HeaderName, HeaderValue)>,
    identity: Arc<Identity>,
}

impl RequestHeader {
    /// The identity that a front proxy claims; `None` when it claims none.
    pub(super) fn authenticate(
        self: &Arc<Self>,
        certificate: &PeerCertificate,
        remembered: &Mutex<Option<Remembered>>,
        headers: &HeaderMap,
        now: UnixTime,
    ) -> Result<Option<Arc<Identity>>, NotFrontProxy> {
        certificate.verify(&self.authority, now)?;
        let name = &certificate.subject()?.common_name;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(name) {
            return Err(NotFrontProxy::Name(name.clone()));
        }
        if let Some(last) = remembered.lock().as_ref() {
            let claims = headers.iter().filter(|(name, _)| self.claims(name));
            let same = Arc::ptr_eq(&last.rules, self)
                && claims.eq(last.headers.iter().map(|(name, value)| (name, value)));
            if same {
                return Ok(Some(Arc::clone(&last.identity)));
            }
        }
        let Some(user) = self.user(headers) else { return Ok(None) };
        let identity = Identity::authenticated(user, Method::FrontProxy);
        let claims = headers.iter().filter(|(name, _)| self.claims(name));
        *remembered.lock() = Some(Remembered {
            rules: Arc::clone(self),
            headers: claims.map(|(name, value)| (name.clone(), value.clone())).collect(),
            identity: Arc::clone(&identity),
        });
        Ok(Some(identity))
    }

    /// Whether a header of that name is a claim of identity.
    pub(super) fn claims(&self, name: &HeaderName) -> bool {
        self.group_headers.contains(name)
            || self.user_headers.contains(name)
            || self.uid_headers.contains(name)
            || self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(prefix.as_str()))
    }

    /// The user that the headers name.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<UserInfo> {
        named_user(headers, &self.user_headers, &self.group_headers, &self.uid_headers, &self.extra_prefixes)
    }
}

/// The user that headers name, by the names of the headers.
pub(crate) fn named_user(
    headers: &HeaderMap,
    user_headers: &[HeaderName],
    group_headers: &[HeaderName],
    uid_headers: &[HeaderName],
    extra_prefixes: &[String],
) -> Option<UserInfo> {
    let first = |names: &[HeaderName]| {
        names.iter().filter_map(|name| headers.get(name)).map(text).find(|value| !value.is_empty())
    };
    let name = first(user_headers)?;
    let groups = group_headers
        .iter()
        .flat_map(|name| headers.get_all(name))
        .map(text)
        .filter(|group| !group.is_empty())
        .collect();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (header, value) in headers {
        for prefix in extra_prefixes {
            if let Some(key) = header.as_str().strip_prefix(prefix.as_str()) {
                extra.entry(extra_key(key)).or_default().push(text(value));
            }
        }
    }
    Some(UserInfo { name, uid: first(uid_headers).unwrap_or_default(), groups, extra })
}

/// A header's value; bytes that are no UTF-8 are replaced.
pub(super) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The key of an extra attribute: percent-decoded, and as it is when that fails.
pub(super) fn extra_key(encoded: &str) -> String {
    let bytes = encoded.as_bytes();
    let well_formed = bytes.iter().enumerate().all(|(at, byte)| {
        *byte != b'%' || bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    match percent_decode_str(encoded).decode_utf8() {
        Ok(key) if well_formed => key.into_owned(),
        _ => encoded.to_owned(),
    }
}
