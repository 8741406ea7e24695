//! Browser sessions: who has logged in, in a cookie that only we can read and make. The keys lie in a Secret, so a restart
//! logs nobody out.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng as _;
use serde::{Deserialize, Serialize};

/// The cookie's name, which the seal covers too.
pub const COOKIE: &str = "ssn";
/// Seconds that a session lasts.
pub const LASTS: i64 = 300;
/// Seconds that the session of kube:admin lasts.
pub const LASTS_FOR_KUBE_ADMIN: i64 = 3600;
const NONCE: usize = 12;
const LONGEST: usize = 4096;
/// What separates this use of the keys from any other.
const CONTEXT: &[u8] = b"picoshift session cookie";

/// A user, as far as tokens and grants need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
}

#[derive(Serialize, Deserialize)]
struct Session {
    #[serde(flatten)]
    user: User,
    expires: i64,
}

/// The Secret's content.
#[derive(Serialize, Deserialize)]
struct File {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    secrets: Vec<Pair>,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    authentication: String,
    encryption: String,
}

/// Keys of sessions: the first seals, each of them opens.
pub struct Keys(Vec<RandomizedNonceKey>);

impl Keys {
    /// Reads the content of the Secret; `None` if it has no keys.
    #[must_use]
    pub fn read(file: &[u8]) -> Option<Self> {
        let file: File = serde_json::from_slice(file).ok()?;
        let long_enough = |pair: &&Pair| pair.authentication.len() >= 32 && pair.encryption.len() >= 32;
        let keys: Vec<_> = file.secrets.iter().filter(long_enough).filter_map(key).collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The content of a new Secret.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate() -> Result<String, rand::rngs::SysError> {
        let pair = Pair { authentication: random(64)?, encryption: random(32)? };
        let file =
            File { kind: "SessionSecrets".to_owned(), api_version: "v1".to_owned(), secrets: vec![pair] };
        Ok(serde_json::to_string(&file).unwrap_or_default())
    }

    /// A cookie's value for somebody who has logged in; nobody's for the end of a session. `None` if it cannot be made.
    #[must_use]
    pub fn seal(&self, user: Option<&User>, expires: i64) -> Option<String> {
        let session = Session { user: user.cloned().unwrap_or_default(), expires };
        let mut sealed = serde_json::to_vec(&session).ok()?;
        let nonce = self.0.first()?.seal_in_place_append_tag(Aad::from(COOKIE), &mut sealed).ok()?;
        let mut bytes = nonce.as_ref().to_vec();
        bytes.extend(sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Who has logged in, if the cookie is ours and its time has not passed.
    #[must_use]
    pub fn open(&self, cookie: &str, now: i64) -> Option<User> {
        if cookie.len() > LONGEST {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let plain = self.0.iter().find_map(|key| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            key.open_in_place(nonce, Aad::from(COOKIE), &mut sealed).ok().map(|plain| plain.to_vec())
        })?;
        let session: Session = serde_json::from_slice(&plain).ok()?;
        (session.expires >= now && !session.user.name.is_empty()).then_some(session.user)
    }
}

fn key(pair: &Pair) -> Option<RandomizedNonceKey> {
    let authentication = hmac::Key::new(hmac::HMAC_SHA256, pair.authentication.as_bytes());
    let mut context = hmac::Context::with_key(&authentication);
    context.update(CONTEXT);
    context.update(pair.encryption.as_bytes());
    RandomizedNonceKey::new(&AES_256_GCM, context.sign().as_ref()).ok()
}

/// A random text of so many characters.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn random(length: usize) -> Result<String, rand::rngs::SysError> {
    let mut bytes = vec![0; length];
    rand::rngs::SysRng.try_fill_bytes(&mut bytes)?;
    let mut text = URL_SAFE_NO_PAD.encode(bytes);
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> Keys {
        Keys::read(Keys::generate().unwrap().as_bytes()).unwrap()
    }

    fn alice() -> User {
        User { name: "alice".to_owned(), uid: "u1".to_owned() }
    }

    #[test]
    fn a_session_is_read_until_it_is_over() {
        let keys = keys();
        let cookie = keys.seal(Some(&alice()), 100).unwrap();
        assert_eq!(keys.open(&cookie, 100), Some(alice()));
        assert_eq!(keys.open(&cookie, 101), None);
        assert!(!cookie.contains("alice"));
        let ended = keys.seal(None, 0).unwrap();
        assert_eq!(keys.open(&ended, 0), None);
        assert_ne!(keys.seal(Some(&alice()), 100).unwrap(), cookie);
    }

    #[test]
    fn foreign_and_changed_cookies_are_nobody_s() {
        let keys = keys();
        let cookie = keys.seal(Some(&alice()), 100).unwrap();
        assert_eq!(self::keys().open(&cookie, 0), None);
        for at in 0..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let opened = keys.open(&changed, 0);
            // The last character of base 64 has bits that do not count; strict decoders refuse them.
            assert_eq!(opened, None, "{at}");
        }
    }

    #[test]
    fn keys_are_rotated() {
        let (old, new) = (Keys::generate().unwrap(), Keys::generate().unwrap());
        let cookie = Keys::read(old.as_bytes()).unwrap().seal(Some(&alice()), 100).unwrap();
        let mut both: File = serde_json::from_str(&new).unwrap();
        both.secrets.extend(serde_json::from_str::<File>(&old).unwrap().secrets);
        let both = Keys::read(serde_json::to_string(&both).unwrap().as_bytes()).unwrap();
        assert_eq!(both.open(&cookie, 0), Some(alice()));
        assert!(Keys::read(b"{}").is_none());
        let weak = r#"{"kind":"SessionSecrets","apiVersion":"v1","secrets":[{"authentication":"","encryption":""}]}"#;
        assert!(Keys::read(weak.as_bytes()).is_none());
    }

    #[test]
    fn random_texts_have_their_length() {
        assert_eq!(random(43).unwrap().len(), 43);
        assert_ne!(random(43).unwrap(), random(43).unwrap());
    }

    proptest! {
        #[test]
        fn no_cookie_breaks_the_reader(cookie in "\\PC{0,80}") {
            prop_assert_eq!(keys().open(&cookie, 0), None);
        }
    }
}
