//! URLs as Go's `net/url` reads and writes them: clients see its spelling in every redirect, and a redirect URI that means
//! one thing to us and another to who registered it would be a hole.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use picoshift_machinery::query;

/// What Go leaves in a query's names and values.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');
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

/// A text that is no URL, or none that we read: an opaque one (`mailto:x`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a URL")]
pub struct BadUrl;

/// A URL in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case; empty for none.
    pub scheme: String,
    /// With its port; empty for none. Who comes before an `@` is left out.
    pub host: String,
    /// Decoded.
    pub path: String,
    /// As written, without its `?`.
    pub query: String,
    /// Whether there is a fragment that is not empty.
    pub has_fragment: bool,
}

impl Url {
    /// Reads a URL or a reference.
    ///
    /// # Errors
    /// [`BadUrl`].
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(BadUrl);
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            let first = rest.split('/').next().unwrap_or_default();
            if !scheme.is_empty() || first.contains(':') {
                return Err(BadUrl);
            }
        }
        let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"));
        let (host, path) = match authority {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (host(authority)?, path)
            }
            None => (String::new(), rest),
        };
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            host,
            path: decode(path)?,
            query: query.to_owned(),
            has_fragment: !fragment.is_empty(),
        })
    }

    /// The host without its port and brackets.
    #[must_use]
    pub fn host_name(&self) -> &str {
        if let Some(rest) = self.host.strip_prefix('[') {
            return rest.split(']').next().unwrap_or_default();
        }
        self.host.split(':').next().unwrap_or_default()
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
            write!(f, "//{}", self.host)?;
        }
        if !self.host.is_empty() && !self.path.is_empty() && !self.path.starts_with('/') {
            f.write_str("/")?;
        }
        write!(f, "{}", utf8_percent_encode(&self.path, PATH))?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        Ok(())
    }
}

fn scheme(text: &str) -> Result<(&str, &str), BadUrl> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at > 0 => return Ok((&text[..at], &text[at + 1..])),
            b':' => return Err(BadUrl),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn host(authority: &str) -> Result<String, BadUrl> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let legal = |byte: u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
    };
    if !host.bytes().all(legal) {
        return Err(BadUrl);
    }
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(BadUrl)?.1,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(host.to_owned()),
        None if port.is_empty() => Ok(host.to_owned()),
        _ => Err(BadUrl),
    }
}

fn decode(text: &str) -> Result<String, BadUrl> {
    if has_stray_percent(text) {
        return Err(BadUrl);
    }
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| BadUrl)
}

fn has_stray_percent(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    })
}

/// A name or value of a query, escaped.
#[must_use]
pub fn query_escape(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string().replace(' ', "+")
}

/// A text in a path, escaped.
#[must_use]
pub fn path_escape(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Undoes [`query_escape`]; `None` for a stray percent sign or what is no UTF-8.
#[must_use]
pub fn query_unescape(text: &str) -> Option<String> {
    if has_stray_percent(text) {
        return None;
    }
    percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(Into::into)
}

/// Names and values of a query or a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(String, String)>);

impl Values {
    /// Reads them; pairs that cannot be read are left out.
    #[must_use]
    pub fn parse(query: &str) -> Self {
        Self(query::pairs(Some(query)).map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// The first value of a name; empty for none.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Whether the name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// Gives a name one value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.to_owned(), value.into()));
    }

    /// Gives each name of another its value there.
    pub fn set_all(&mut self, other: Self) {
        for (name, value) in other.0 {
            self.set(&name, value);
        }
    }

    /// As a query, in the order of the names.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut sorted: Vec<&(String, String)> = self.0.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let pairs =
            sorted.iter().map(|(name, value)| format!("{}={}", query_escape(name), query_escape(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Values {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

/// Whether a browser that is sent to `then` stays on this server. Stricter than upstream, which lets through what browsers
/// read as another host: a backslash, or two slashes after cleaning.
#[must_use]
pub fn is_server_relative(then: &str) -> bool {
    let Ok(url) = Url::parse(then) else { return false };
    let begins_well = then.starts_with('/') && !then.starts_with("//");
    url.scheme.is_empty() && url.host.is_empty() && begins_well && !then.contains('\\')
}

#[cfg(test)]
mod tests;
