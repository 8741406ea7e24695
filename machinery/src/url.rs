//! URLs as Go's `net/url` reads and writes them: there is one reader of them, since a redirect URI that means one thing to
//! who registers it and another to who follows it would be a hole. What is no URL is refused in Go's words.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::field_error::quote;

/// What Go leaves in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');
/// What Go leaves in a host beside what it leaves in a path.
const HOST: &AsciiSet = &PATH
    .add(b'/')
    .add(b'@')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'[')
    .remove(b']')
    .remove(b'<')
    .remove(b'>')
    .remove(b'"');

/// A text that is no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {why}", quote(.text))]
pub struct UrlError {
    text: String,
    why: String,
}

/// A URL or a reference, in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case; empty for none.
    pub scheme: String,
    /// With its port; empty for none. Who comes before an `@` is left out.
    pub host: String,
    /// Decoded; what is no UTF-8 is replaced.
    pub path: String,
    /// As written, without its `?`.
    pub query: String,
    /// Whether there is a fragment that is not empty.
    pub has_fragment: bool,
    /// Whether `path` is not all: the URL is opaque (`mailto:x`) and has none, or it is no UTF-8.
    pub is_odd: bool,
}

impl Url {
    /// Reads a URL or a reference.
    ///
    /// # Errors
    /// [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let error = |text: &str, why| UrlError { text: text.to_owned(), why };
        let mut url = reference(main).map_err(|why| error(main, why))?;
        check_escapes(fragment).map_err(|why| error(text, why))?;
        url.has_fragment = !fragment.is_empty();
        Ok(url)
    }

    /// The host without its port and brackets.
    #[must_use]
    pub fn host_name(&self) -> &str {
        let name = match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &self.host,
        };
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
    }

    /// The path without `.` and `..`, as a browser would follow it.
    #[must_use]
    pub fn resolved_path(&self) -> String {
        if self.path.is_empty() {
            return String::new();
        }
        let mut kept: Vec<&str> = Vec::new();
        let mut last = "";
        for segment in self.path.strip_prefix('/').unwrap_or(&self.path).split('/') {
            match segment {
                "." => {}
                ".." => {
                    kept.pop();
                }
                other => kept.push(other),
            }
            last = segment;
        }
        let mut path = format!("/{}", kept.join("/"));
        if matches!(last, "." | "..") && !path.ends_with('/') {
            path.push('/');
        }
        path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.host.is_empty() || (!self.scheme.is_empty() && !self.path.is_empty()) {
            write!(f, "//{}", utf8_percent_encode(&self.host, HOST))?;
        }
        if !self.host.is_empty() && !self.path.is_empty() && !self.path.starts_with('/') {
            f.write_str("/")?;
        }
        f.write_str(&path_escape(&self.path))?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        Ok(())
    }
}

/// A text in a path, escaped.
#[must_use]
pub fn path_escape(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

fn reference(text: &str) -> Result<Url, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), query: query.to_owned(), ..Url::default() };
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.is_odd = true;
            return Ok(url);
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
        url.host = host(authority)?;
        path = after;
    }
    check_escapes(path)?;
    let decoded = percent_decode_str(path);
    url.is_odd = decoded.clone().decode_utf8().is_err();
    url.path = decoded.decode_utf8_lossy().into_owned();
    Ok(url)
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
mod tests;
