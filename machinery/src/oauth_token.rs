//! Tokens of OAuth, access tokens and authorization codes alike: what a client holds, and the name under which the
//! server keeps it. The name is a hash, so whoever reads the objects holds no token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

/// How tokens and names of their objects begin.
pub const PREFIX: &str = "sha256~";
const RANDOM_BYTES: usize = 32;

/// A new token of 256 random bits and [`PREFIX`]. What follows the prefix never begins with `-`, so that a token is never
/// taken for a flag.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn generate() -> Result<String, rand::rngs::SysError> {
    loop {
        let mut bytes = [0; RANDOM_BYTES];
        rand::rngs::SysRng.try_fill_bytes(&mut bytes)?;
        let secret = URL_SAFE_NO_PAD.encode(bytes);
        if !secret.starts_with('-') {
            return Ok(format!("{PREFIX}{secret}"));
        }
    }
}

/// The name of the object of `token`; `None` for what is no such token.
#[must_use]
pub fn object_name(token: &str) -> Option<String> {
    let secret = token.strip_prefix(PREFIX)?;
    Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(Sha256::digest(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashes_of_what_follows_the_prefix() {
        let name = object_name("sha256~abc").unwrap();
        assert_eq!(name, "sha256~ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
        assert_eq!(object_name("abc"), None);
        assert_eq!(object_name("SHA256~abc"), None);
    }

    #[test]
    fn tokens_differ_and_have_their_form() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one, other);
        let secret = one.strip_prefix(PREFIX).unwrap();
        assert_eq!(secret.len(), 43);
        assert!(secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        assert!(!secret.starts_with('-'));
    }
}
