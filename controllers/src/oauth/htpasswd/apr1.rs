//! Apache's `$apr1$`: a thousand rounds of MD5, as `htpasswd -m` writes it.

use md5::{Digest as _, Md5};

/// How such a hash begins.
pub const PREFIX: &str = "$apr1$";
const ROUNDS: usize = 1000;
/// The digits of its base 64, from the least.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Which bytes make a group of four digits, the most significant first.
const GROUPS: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
const LAST: usize = 11;

/// The hash of a password; `salt` has one to eight characters.
#[must_use]
pub fn hash(password: &str, salt: &str) -> String {
    let (key, salt_bytes) = (password.as_bytes(), salt.as_bytes());
    let inner = Md5::new().chain_update(key).chain_update(salt_bytes).chain_update(key).finalize();
    let mut outer = Md5::new().chain_update(key).chain_update(PREFIX).chain_update(salt_bytes);
    for start in (0..key.len()).step_by(inner.len()) {
        outer.update(&inner[..inner.len().min(key.len() - start)]);
    }
    let mut length = key.len();
    while length > 0 {
        outer.update(if length & 1 == 1 { &[0] } else { key.get(..1).unwrap_or_default() });
        length >>= 1;
    }
    let mut sum = outer.finalize();
    for round in 0..ROUNDS {
        let mut next = Md5::new();
        let (first, last): (&[u8], &[u8]) = if round % 2 == 1 { (key, &sum) } else { (&sum, key) };
        next.update(first);
        if round % 3 != 0 {
            next.update(salt_bytes);
        }
        if round % 7 != 0 {
            next.update(key);
        }
        next.update(last);
        sum = next.finalize();
    }
    let mut text = format!("{PREFIX}{salt}$");
    for group in GROUPS {
        let number = group.iter().fold(0, |number, at| number << 8 | usize::from(sum[*at]));
        push(&mut text, number, 4);
    }
    push(&mut text, usize::from(sum[LAST]), 2);
    text
}

fn push(text: &mut String, mut number: usize, digits: usize) {
    for _ in 0..digits {
        text.push(char::from(DIGITS[number & 63]));
        number >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by `openssl passwd -apr1`.
    #[test]
    fn hashes_as_apache_does() {
        for (password, salt, hash_of) in [
            ("password", "saltsalt", "$apr1$saltsalt$yAAkm4libquA.ZWLHbSBq/"),
            ("", "x", "$apr1$x$tMwYqBfQwi3FYAr0aJc8M/"),
            (
                "a password that is longer than sixteen bytes",
                "abcdefgh",
                "$apr1$abcdefgh$AaK/FVm2z4lOI9DSq69901",
            ),
        ] {
            assert_eq!(hash(password, salt), hash_of, "{password}");
        }
    }
}
