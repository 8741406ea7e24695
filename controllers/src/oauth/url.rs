//! URLs and their queries as Go writes them, since clients see its spelling in every redirect; and where browsers may be
//! sent.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use picoshift_machinery::query;
use picoshift_machinery::url::{Url, UrlError};

/// What Go leaves in a query's names and values.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');
/// A text that is no URL, or none that leads anywhere in a browser: an opaque one (`mailto:x`), or bytes that are no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// Go does not read it either.
    #[error(transparent)]
    Malformed(#[from] UrlError),
    /// Go reads it.
    #[error("a URL without a path that is text")]
    Odd,
}

/// Reads a URL or a reference.
///
/// # Errors
/// [`BadUrl`].
pub fn read(text: &str) -> Result<Url, BadUrl> {
    let url = Url::parse(text)?;
    if url.is_odd { Err(BadUrl::Odd) } else { Ok(url) }
}

/// A name or value of a query, escaped.
#[must_use]
pub fn query_escape(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string().replace(' ', "+")
}

/// Undoes [`query_escape`]; `None` for a stray percent sign or what is no UTF-8.
#[must_use]
pub fn query_unescape(text: &str) -> Option<String> {
    if has_stray_percent(text) {
        return None;
    }
    percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(Into::into)
}

fn has_stray_percent(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    })
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
    let begins_well = then.starts_with('/') && !then.starts_with("//");
    begins_well && !then.contains(|c: char| c == '\\' || c.is_ascii_control()) && read(then).is_ok()
}

#[cfg(test)]
mod tests;
