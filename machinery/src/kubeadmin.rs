//! The administrator of the first hour: `kube:admin`, who has no User object and whose password lies, hashed, in a Secret.
//!
//! Its uid says which password it was that somebody logged in with: when the Secret changes, all tokens of the old one are
//! nobody's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha512};

/// The user's name.
pub const USER: &str = "kube:admin";
/// The user's name where a colon cannot stand; also the Secret's name and its key.
pub const LOGIN: &str = "kubeadmin";
/// The Secret's namespace.
pub const NAMESPACE: &str = "kube-system";
/// The user's only group.
pub const GROUP: &str = "system:cluster-admins";
/// A Secret that was made later than this after its namespace was not made when the cluster was, and does not count.
const BOOTSTRAP: SignedDuration = SignedDuration::from_hours(1);

/// The user's uid while the Secret has this uid, resourceVersion and bcrypt hash.
#[must_use]
pub fn uid(secret_uid: &str, resource_version: &str, hash: &[u8]) -> String {
    let sum =
        Sha512::new().chain_update(secret_uid).chain_update(resource_version).chain_update(hash).finalize();
    URL_SAFE_NO_PAD.encode(sum)
}

/// Whether the Secret is as old as the cluster: who may write Secrets later cannot become its administrator.
#[must_use]
pub fn is_original(secret_created: Timestamp, namespace_created: Timestamp) -> bool {
    secret_created <= namespace_created.saturating_add(BOOTSTRAP).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_follows_everything_that_changes() {
        let uids = [uid("u", "1", b"h"), uid("v", "1", b"h"), uid("u", "2", b"h"), uid("u", "1", b"i")];
        assert!(uids.iter().all(|uid| uid.len() == 86));
        assert!((1..4).all(|n| uids[n] != uids[0]));
        // By Go's sha512 and base64.RawURLEncoding over "abc".
        let known = "3a81oZNherrMQXNJriBBMRLm-k6JqX6iCp7u5ktV05ohkpkqJ0_BqDa6PCOj_uu9RU1EI2Q86A4qmslPpUyknw";
        assert_eq!(uid("a", "b", b"c"), known);
    }

    #[test]
    fn a_late_secret_does_not_count() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(is_original(at(3600), at(0)));
        assert!(!is_original(at(3601), at(0)));
    }
}
