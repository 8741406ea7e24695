//! A user in the front proxy's headers, as kube-apiserver and our API server read them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use picoshift_machinery::peer::PeerCertificate;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA_PREFIX: &str = "x-remote-extra-";
/// Extra key under which kube-apiserver records which credential was used.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A user as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// A user as `SelfSubjectReview` names it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User {
    /// Its name.
    pub username: String,
    /// Its uid, mostly empty.
    pub uid: String,
    /// Its groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Headers cannot carry this user: another one would arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the user cannot be named in headers")]
pub struct Unspeakable;

impl Claims {
    /// The headers that name `user`.
    ///
    /// # Errors
    /// [`Unspeakable`] when a part would arrive as something else: readers cut blanks at the ends, and leave out groups that
    /// are empty.
    pub fn new(user: &User) -> Result<Self, Unspeakable> {
        if user.username.is_empty() {
            return Err(Unspeakable);
        }
        let mut headers = vec![(USER, value(&user.username)?)];
        if !user.uid.is_empty() {
            headers.push((UID, value(&user.uid)?));
        }
        for group in user.groups.iter().filter(|group| !group.is_empty()) {
            headers.push((GROUP, value(group)?));
        }
        for (key, values) in &user.extra {
            let name = format!("{EXTRA_PREFIX}{}", escaped(key));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unspeakable)?;
            for text in values {
                headers.push((name.clone(), value(text)?));
            }
        }
        Ok(Self { headers })
    }

    /// The user that a verified certificate names, as kube-apiserver reads it. `None` when it names nobody.
    ///
    /// # Errors
    /// [`Unspeakable`], also when kube-apiserver would refuse the subject.
    pub fn of_certificate(certificate: &PeerCertificate) -> Result<Option<Self>, Unspeakable> {
        let subject = certificate.subject().map_err(|_| Unspeakable)?;
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        let uid = match subject.uids.as_slice() {
            [] => String::new(),
            [uid] if !uid.is_empty() => uid.clone(),
            _ => return Err(Unspeakable),
        };
        let mut id = "X509SHA256=".to_owned();
        for byte in Sha256::digest(certificate.der()) {
            let _ = write!(id, "{byte:02x}");
        }
        let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
        let (username, groups) = (subject.common_name.clone(), subject.organizations.clone());
        Self::new(&User { username, uid, groups, extra }).map(Some)
    }

    /// Puts the headers in; what was there of the kind has been dropped before.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        headers.reserve(self.headers.len());
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
    }

    /// Name of the user, for the log.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.headers.first().map(|(_, value)| String::from_utf8_lossy(value.as_bytes()));
        name.unwrap_or_default().into_owned()
    }
}

fn value(text: &str) -> Result<HeaderValue, Unspeakable> {
    if text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']) {
        return Err(Unspeakable);
    }
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| Unspeakable)
}

/// A key in a header's name: what is no token is percent-encoded, percent signs too.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        User { username: name.to_owned(), groups, ..User::default() }
    }

    #[test]
    fn a_user_is_one_header_a_group() {
        let mut eve = user("eve", &["a", "", "b"]);
        eve.extra.insert("authentication.kubernetes.io/x%".to_owned(), vec!["1".to_owned(), String::new()]);
        let mut headers = HeaderMap::new();
        Claims::new(&eve).unwrap().add_to(&mut headers);
        assert_eq!(headers.get_all(GROUP).iter().collect::<Vec<_>>(), ["a", "b"]);
        let extra = headers.get_all("x-remote-extra-authentication.kubernetes.io%2Fx%25");
        assert_eq!(extra.iter().collect::<Vec<_>>(), ["1", ""]);
        assert_eq!(headers.get(UID), None);
    }

    #[test]
    fn a_user_that_would_arrive_as_another_is_not_sent() {
        for (name, group) in [
            ("", "a"),
            (" root", "a"),
            ("root\t", "a"),
            ("a", " system:masters"),
            ("a\nb", "c"),
            ("a", "b\0"),
        ] {
            assert_eq!(Claims::new(&user(name, &[group])), Err(Unspeakable), "{name:?} {group:?}");
        }
        assert!(Claims::new(&user("jürgen", &["größe"])).is_ok());
    }

    proptest! {
        #[test]
        fn no_name_adds_a_header(name in ".{0,20}", group in ".{0,20}", key in ".{0,10}") {
            let mut named = user(&name, &[&group]);
            named.extra.insert(key, vec!["v".to_owned()]);
            if let Ok(claims) = Claims::new(&named) {
                let mut headers = HeaderMap::new();
                claims.add_to(&mut headers);
                prop_assert_eq!(headers[USER].as_bytes(), name.as_bytes());
                prop_assert!(headers.keys().all(|key| key.as_str().starts_with("x-remote-")));
                prop_assert!(headers.len() <= 3);
            }
        }
    }
}
