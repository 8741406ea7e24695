//! Query strings as Go reads them: there is one reader of them, since the same request must not mean one thing to who
//! authorizes it and another to who answers it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The decoded pairs of a query string, in their order. A pair with a semicolon or a stray percent sign is left out.
pub fn pairs(query: Option<&str>) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
    pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    })
}

/// The first value of a parameter.
#[must_use]
pub fn first<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    pairs(query).find(|(own, _)| own == name).map(|(_, value)| value)
}

fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(text.into());
    }
    let stray = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    });
    if stray {
        return None;
    }
    let spaced = text.replace('+', " ");
    Some(percent_decode_str(&spaced).decode_utf8_lossy().into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let read: Vec<_> = pairs(Some("a=1+2&b=%3D&&c&d=%e9")).collect();
        let expected = [("a", "1 2"), ("b", "="), ("c", ""), ("d", "\u{fffd}")];
        assert_eq!(read, expected.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(pairs(None).count(), 0);
    }

    #[test]
    fn what_cannot_be_decoded_is_left_out() {
        let read: Vec<_> = pairs(Some("a=1;b=2&c=%zz&%=1&d=%4&e=5")).collect();
        assert_eq!(read, [("e".into(), "5".into())]);
    }

    #[test]
    fn the_first_value_counts() {
        assert_eq!(first(Some("a=;&a=&a=1"), "a").as_deref(), Some(""));
        assert_eq!(first(Some("b=1"), "a"), None);
    }
}
