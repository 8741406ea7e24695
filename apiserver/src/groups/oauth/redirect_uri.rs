//! Redirect URIs, judged in the real server's words.

use picoshift_machinery::url::{Url, UrlError};

/// Why a client may not be sent to a URI.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UriError {
    #[error("may not be empty")]
    Empty,
    #[error(transparent)]
    Malformed(#[from] UrlError),
    #[error("may not contain a fragment")]
    Fragment,
    #[error("may not contain a path segment of {0}")]
    Segment(&'static str),
}

/// Checks what a client registers, or was sent to.
pub(super) fn check(text: &str) -> Result<(), UriError> {
    if text.is_empty() {
        return Err(UriError::Empty);
    }
    let uri = Url::parse(text)?;
    if uri.has_fragment {
        return Err(UriError::Fragment);
    }
    for segment in [".", ".."] {
        // The first that is found is told.
        if uri.path.split('/').find(|part| matches!(*part, "." | "..")) == Some(segment) {
            return Err(UriError::Segment(segment));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn judged_in_the_real_servers_words() {
        for good in [
            "https://x.example/cb",
            "http://127.0.0.1/callback",
            "http://[::1]:8080/callback",
            "https://user:pa@host/x?a=..&b=#",
            "not a url",
            "/relative/...",
            "mailto:a/../b",
            "https://x/%ff",
            "https://x?/../y",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "may not be empty"),
            ("not a url#frag", "may not contain a fragment"),
            ("https://x/a/./b", "may not contain a path segment of ."),
            ("https://x/a/../b", "may not contain a path segment of .."),
            ("https://x/./..", "may not contain a path segment of ."),
            ("https://x/%2e%2e%2f", "may not contain a path segment of .."),
            ("https://x/%zz", "parse \"https://x/%zz\": invalid URL escape \"%zz\""),
        ] {
            assert_eq!(check(bad).map_err(|error| error.to_string()), Err(why.to_owned()), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_has_no_way_up(text in "(https?:)?(//)?[a-z%2e./:#?@\\[\\]é ]{0,16}") {
            if check(&text).is_ok() {
                let uri = Url::parse(&text).unwrap();
                prop_assert!(!uri.has_fragment && uri.path.split('/').all(|part| part != "." && part != ".."));
            }
        }
    }
}
