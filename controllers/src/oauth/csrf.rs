//! Forms of ours carry what a cookie of ours says, so that no other site's form does anything.

use subtle::ConstantTimeEq as _;

use super::session::random;

/// The cookie's name; also that of the field.
pub const COOKIE: &str = "csrf";
/// 256 bits in base 64.
const LENGTH: usize = 43;
const LONGEST: usize = 128;

/// The token for a form, and whether it is new: the one in the cookie stays, so that two pages can be open.
#[must_use]
pub fn token(cookie: Option<&str>) -> Option<(String, bool)> {
    let is_ours = |cookie: &&str| {
        (LENGTH..=LONGEST).contains(&cookie.len())
            && cookie.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    match cookie.filter(is_ours) {
        Some(cookie) => Some((cookie.to_owned(), false)),
        None => random(LENGTH).ok().map(|token| (token, true)),
    }
}

/// Whether the form's token is the cookie's.
#[must_use]
pub fn fits(cookie: Option<&str>, field: &str) -> bool {
    !field.is_empty() && cookie.is_some_and(|cookie| cookie.as_bytes().ct_eq(field.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stays_while_its_cookie_does() {
        let (first, new) = token(None).unwrap();
        assert!(new && first.len() == LENGTH);
        assert_eq!(token(Some(&first)), Some((first.clone(), false)));
        assert!(fits(Some(&first), &first));
        for (cookie, field) in
            [(None, first.as_str()), (Some(first.as_str()), ""), (None, ""), (Some(""), "")]
        {
            assert!(!fits(cookie, field));
        }
        assert!(token(Some("short")).unwrap().1 && token(Some(&"\"><script>".repeat(5))).unwrap().1);
    }
}
