//! The bootstrap administrator `kube:admin`, who is no object: a Secret says whether there is one, with which password,
//! and since when. Who logs in as him and who believes his tokens have to agree on his uid, so it is made here.
//!
//! Facts: `library-go/pkg/authentication/bootstrapauthenticator`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha512};

use crate::Object;

/// His name as a user.
pub const NAME: &str = "kube:admin";
/// His name where a name has no colon; also that of the Secret, and of the key in it.
pub const LOGIN_NAME: &str = "kubeadmin";
/// The namespace of the Secret.
pub const SECRET_NAMESPACE: &str = "kube-system";
/// His only group.
pub const GROUP: &str = "system:cluster-admins";
/// Shortest password that is accepted.
pub const MIN_PASSWORD: usize = 23;

/// How much later than its namespace the Secret may have been made: later, somebody else has made it anew.
pub const MADE_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// Shortest hash of bcrypt, and the costs that there are.
const MIN_HASH: usize = 59;
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;

/// What the Secret says.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapUser {
    /// The password's bcrypt hash.
    pub hash: Vec<u8>,
    /// His uid. Another one after every change of the Secret, so that tokens from before are no longer his. It is never
    /// shown as a user's uid, as it comes from the password.
    pub uid: String,
}

impl fmt::Debug for BootstrapUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootstrapUser").finish_non_exhaustive()
    }
}

/// A Secret that makes nobody an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// It was made long after the cluster.
    #[error("kubeadmin secret cannot be recreated")]
    Recreated,
    /// Its hash is none of bcrypt's.
    #[error("the password of kubeadmin is not hashed by bcrypt")]
    NotHashed,
}

impl BootstrapUser {
    /// Reads the Secret `kube-system/kubeadmin`; `namespace_created` is when its namespace was made. `None` when it is
    /// being deleted.
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub fn of_secret(secret: &Object, namespace_created: Timestamp) -> Result<Option<Self>, BootstrapError> {
        if secret.deletion_timestamp().is_some() {
            return Ok(None);
        }
        let created = secret.creation_timestamp().parse::<Timestamp>();
        if created.map_or(true, |created| created.duration_since(namespace_created) > MADE_WITHIN) {
            return Err(BootstrapError::Recreated);
        }
        let encoded = secret.str_at(&["data", LOGIN_NAME]);
        let hash = STANDARD.decode(encoded).map_err(|_| BootstrapError::NotHashed)?;
        if !is_bcrypt(&hash) {
            return Err(BootstrapError::NotHashed);
        }
        let state = [secret.uid().as_bytes(), secret.resource_version().as_bytes(), &hash];
        let uid = URL_SAFE_NO_PAD.encode(Sha512::digest(state.concat()));
        Ok(Some(Self { hash, uid }))
    }
}

/// Whether a hash has the form that bcrypt's have: `$2a$10$…`.
fn is_bcrypt(hash: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(hash) else { return false };
    let Some((version, rest)) = text.strip_prefix('$').and_then(|text| text.split_once('$')) else {
        return false;
    };
    let cost = rest.split_once('$').map(|(cost, _)| cost);
    text.len() >= MIN_HASH
        && version.starts_with('2')
        && version.len() <= 2
        && cost.is_some_and(|cost| cost.len() == 2 && cost.parse().is_ok_and(|cost| COSTS.contains(&cost)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HASH: &str = "$2a$10$0123456789012345678901abcdefghijklmnopqrstuvwxyz01234";

    fn secret(with: &Value) -> Object {
        let mut secret = json!({
            "metadata": {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:30:00Z"},
            "data": {"kubeadmin": STANDARD.encode(HASH)},
        });
        for part in ["metadata", "data"] {
            if let Some(with) = with.get(part).and_then(Value::as_object) {
                secret[part].as_object_mut().unwrap().extend(with.clone());
            }
        }
        Object::from_value(secret).unwrap()
    }

    fn read(with: &Value) -> Result<Option<BootstrapUser>, BootstrapError> {
        BootstrapUser::of_secret(&secret(with), "2026-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn every_change_of_the_secret_makes_another_uid() {
        let uid = |with: &Value| read(with).unwrap().unwrap().uid;
        let first = uid(&json!({}));
        assert_eq!(first.len(), 86);
        assert_eq!(first, URL_SAFE_NO_PAD.encode(Sha512::digest(format!("u7{HASH}"))));
        // By Go's sha512 and base64.RawURLEncoding over "abc".
        let known = "3a81oZNherrMQXNJriBBMRLm-k6JqX6iCp7u5ktV05ohkpkqJ0_BqDa6PCOj_uu9RU1EI2Q86A4qmslPpUyknw";
        assert_eq!(URL_SAFE_NO_PAD.encode(Sha512::digest("abc")), known);
        let other = STANDARD.encode(HASH.replace("01234", "43210"));
        for with in [
            json!({"metadata": {"uid": "v"}}),
            json!({"metadata": {"resourceVersion": "8"}}),
            json!({"data": {"kubeadmin": other}}),
        ] {
            assert_ne!(uid(&with), first);
        }
    }

    #[test]
    fn not_every_secret_makes_an_administrator() {
        assert_eq!(read(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:31:00Z"}})), Ok(None));
        let late = json!({"metadata": {"creationTimestamp": "2026-01-01T01:00:01Z"}});
        assert_eq!(read(&late), Err(BootstrapError::Recreated));
        for hash in ["", "plain", "$2a$99$0123456789012345678901abcdefghijklmnopqrstuvwxyz01234", &HASH[..40]]
        {
            let with = json!({"data": {"kubeadmin": STANDARD.encode(hash)}});
            assert_eq!(read(&with), Err(BootstrapError::NotHashed), "{hash}");
        }
        assert_eq!(format!("{:?}", read(&json!({}))), "Ok(Some(BootstrapUser { .. }))");
    }
}
