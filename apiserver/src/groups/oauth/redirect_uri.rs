//! Redirect URIs, read as Go's `net/url` reads them, so that what is refused is refused in its words.

use percent_encoding::percent_decode_str;
use picoshift_machinery::field_error::quote;

/// What is looked at in a URI.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Uri {
    /// In lower case; empty where there is none.
    pub(super) scheme: String,
    /// With its port, and without what names a user.
    pub(super) host: String,
    /// Decoded.
    pub(super) path: String,
    pub(super) has_fragment: bool,
}

/// Why a client may not be sent to a URI.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UriError {
    #[error("may not be empty")]
    Empty,
    /// The text of Go's parser.
    #[error("parse {}: {why}", quote(.text))]
    Malformed { text: String, why: String },
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
    let uri = parse(text)?;
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

/// Reads a URI.
pub(super) fn parse(text: &str) -> Result<Uri, UriError> {
    let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut uri = reference(main).map_err(|why| UriError::Malformed { text: main.to_owned(), why })?;
    check_escapes(fragment).map_err(|why| UriError::Malformed { text: text.to_owned(), why })?;
    uri.has_fragment = !fragment.is_empty();
    Ok(uri)
}

fn reference(text: &str) -> Result<Uri, String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(text)?;
    let mut uri = Uri { scheme: scheme.to_ascii_lowercase(), ..Uri::default() };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            // Opaque: there is no path to look at.
            return Ok(uri);
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    if let Some(authority) = rest.strip_prefix("//")
        && (!scheme.is_empty() || !rest.starts_with("///"))
    {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, after) = authority.split_at(end);
        uri.host = host(authority)?;
        path = after;
    }
    check_escapes(path)?;
    uri.path = percent_decode_str(path).decode_utf8_lossy().into_owned();
    Ok(uri)
}

/// The scheme, empty for none, and what follows it.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host of an authority, with its port.
fn host(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        None => authority,
        Some((user, host)) => {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(legal) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            check_escapes(user)?;
            host
        }
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or_else(|| "missing ']' in host".to_owned())?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let good = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !good {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    check_host(host)?;
    Ok(percent_decode_str(host).decode_utf8_lossy().into_owned())
}

fn check_host(host: &str) -> Result<(), String> {
    let mut rest = host;
    while let Some(at) = rest.find('%') {
        let escape = escape_at(&rest[at..])?;
        // In a host only what is no ASCII may be escaped, and the percent sign before a zone.
        let ascii = u8::from_str_radix(&escape[1..], 16).is_ok_and(|byte| byte < 0x80);
        if ascii && escape != "%25" {
            return Err(format!("invalid URL escape {}", quote(escape)));
        }
        rest = &rest[at + 3..];
    }
    let legal = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    match host.chars().find(|c| !legal(*c)) {
        Some(bad) => Err(format!("invalid character {} in host name", quote(&bad.to_string()))),
        None => Ok(()),
    }
}

/// Fails at the first percent sign that no two hexadecimal digits follow.
fn check_escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        escape_at(&rest[at..])?;
        rest = &rest[at + 3..];
    }
    Ok(())
}

fn escape_at(text: &str) -> Result<&str, String> {
    match text.get(..3) {
        Some(escape) if escape.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit()) => Ok(escape),
        _ => {
            let shown: String = text.chars().take(3).collect();
            Err(format!("invalid URL escape {}", quote(&shown)))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn judged_in_gos_words() {
        for good in [
            "https://x.example/cb",
            "http://127.0.0.1/callback",
            "http://[::1]:8080/callback",
            "https://user:pa@host/x?a=..&b=#",
            "not a url",
            "/relative/...",
            "mailto:a/../b",
            "https://x/%2e%2e%2f",
            "https://x?/../y",
        ] {
            let judged = check(good).map_err(|error| error.to_string());
            match good {
                "https://x/%2e%2e%2f" => {
                    assert_eq!(judged, Err("may not contain a path segment of ..".to_owned()));
                }
                _ => assert_eq!(judged, Ok(()), "{good}"),
            }
        }
        for (bad, why) in [
            ("", "may not be empty"),
            ("not a url#frag", "may not contain a fragment"),
            ("https://x/a/./b", "may not contain a path segment of ."),
            ("https://x/a/../b", "may not contain a path segment of .."),
            ("https://x/./..", "may not contain a path segment of ."),
            ("https://x/%zz", "parse \"https://x/%zz\": invalid URL escape \"%zz\""),
            ("https://x/%", "parse \"https://x/%\": invalid URL escape \"%\""),
            (":x", "parse \":x\": missing protocol scheme"),
            ("1a:b", "parse \"1a:b\": first path segment in URL cannot contain colon"),
            ("http://[::1/x", "parse \"http://[::1/x\": missing ']' in host"),
            ("http://h:x/", "parse \"http://h:x/\": invalid port \":x\" after host"),
            ("http://a b/", "parse \"http://a b/\": invalid character \" \" in host name"),
            ("http://a%20b/", "parse \"http://a%20b/\": invalid URL escape \"%20\""),
            ("http://a\nb/", "parse \"http://a\\nb/\": net/url: invalid control character in URL"),
            ("http://a b@h/", "parse \"http://a b@h/\": net/url: invalid userinfo"),
        ] {
            assert_eq!(check(bad).map_err(|error| error.to_string()), Err(why.to_owned()), "{bad}");
        }
        let uri = parse("HTTPS://u@Host:1/p%20q").unwrap();
        assert_eq!((&*uri.scheme, &*uri.host, &*uri.path), ("https", "Host:1", "/p q"));
    }

    proptest! {
        #[test]
        fn what_is_accepted_has_no_way_up(text in "(https?:)?(//)?[a-z%2e./:#?@\\[\\]é ]{0,16}") {
            if check(&text).is_ok() {
                let uri = parse(&text).unwrap();
                prop_assert!(!uri.has_fragment && uri.path.split('/').all(|part| part != "." && part != ".."));
            }
        }
    }
}
