//! Query strings as Go reads them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The decoded pairs of a query string.
pub fn pairs(query: Option<&str>) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    })
}

fn decoded(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        return Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let read: Vec<_> = pairs(Some("a=1+2&b=%3D&&c")).collect();
        assert_eq!(read, [("a".into(), "1 2".into()), ("b".into(), "=".into()), ("c".into(), "".into())]);
        assert_eq!(pairs(None).count(), 0);
    }
}
