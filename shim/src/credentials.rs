//! The bearer tokens that kube-apiserver would try, found as it finds them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// What a place of a token holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried<'a> {
    /// No token: whoever says nothing else is anonymous.
    Nothing,
    /// Something that kube-apiserver refuses.
    Malformed,
    /// A token, good or bad.
    Token(Cow<'a, str>),
}

/// The token of `Authorization`.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Carried<'_> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Carried::Nothing };
    let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
        // No token of ours; kube-apiserver would see one in it, and refuse it.
        return Carried::Malformed;
    };
    let mut parts = text.trim().splitn(3, ' ');
    match (parts.next(), parts.next()) {
        (Some(scheme), Some(token)) if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() => {
            Carried::Token(token.into())
        }
        _ => Carried::Nothing,
    }
}

/// The token among the protocols of a WebSocket.
#[must_use]
pub fn websocket(headers: &HeaderMap) -> Carried<'_> {
    let websocket =
        headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !websocket || !asks_for_upgrade(headers) {
        return Carried::Nothing;
    }
    let (mut found, mut others) = (None, 0);
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        for protocol in String::from_utf8_lossy(value.as_bytes()).split(',') {
            match protocol.trim().strip_prefix(PROTOCOL_PREFIX) {
                None => others += 1,
                Some(_) if found.is_some() => return Carried::Malformed,
                Some(encoded) => {
                    let decoded =
                        URL_SAFE_NO_PAD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                    let Some(token) = decoded else { return Carried::Malformed };
                    found = Some(token);
                }
            }
        }
    }
    match found {
        Some(token) if token.is_empty() => Carried::Nothing,
        Some(_) if others == 0 => Carried::Malformed,
        Some(token) => Carried::Token(token.into()),
        None => Carried::Nothing,
    }
}

/// Whether a request wants another protocol, as kube-apiserver sees it.
#[must_use]
pub fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| {
        let text = value.as_bytes();
        text.windows(b"upgrade".len()).any(|part| part.eq_ignore_ascii_case(b"upgrade"))
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_bearer_token_is_the_second_word() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("  bEARER abc def ", Some("abc")),
            ("Bearer  abc", None),
            ("Bearer", None),
            ("Basic abc", None),
            ("", None),
        ] {
            let headers = map(&[("authorization", value)]);
            let expected = token.map_or(Carried::Nothing, |token| Carried::Token(token.into()));
            assert_eq!(bearer(&headers), expected, "{value:?}");
        }
    }

    #[test]
    fn a_token_may_be_a_protocol() {
        let token = URL_SAFE_NO_PAD.encode("sha256~abc");
        let good = format!("v4.channel.k8s.io, {PROTOCOL_PREFIX}{token}");
        let ask = |protocol: &str, upgrade: &str| {
            let headers = map(&[
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", upgrade),
                ("sec-websocket-protocol", protocol),
            ]);
            match websocket(&headers) {
                Carried::Token(token) => token.into_owned(),
                other => format!("{other:?}"),
            }
        };
        assert_eq!(ask(&good, "WebSocket"), "sha256~abc");
        assert_eq!(ask(&good, "SPDY/3.1"), "Nothing");
        assert_eq!(ask("v4.channel.k8s.io", "websocket"), "Nothing");
        assert_eq!(ask(&format!("{PROTOCOL_PREFIX}{token}"), "websocket"), "Malformed");
        assert_eq!(ask(&format!("{good},{PROTOCOL_PREFIX}{token}"), "websocket"), "Malformed");
        assert_eq!(ask(&format!("a,{PROTOCOL_PREFIX}?"), "websocket"), "Malformed");
        assert_eq!(ask(&format!("a,{PROTOCOL_PREFIX}"), "websocket"), "Nothing");
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = map(&[("connection", "upgrade"), ("upgrade", "websocket")]);
                headers.append(AUTHORIZATION, value.clone());
                headers.append(SEC_WEBSOCKET_PROTOCOL, value);
                let _ = (bearer(&headers), websocket(&headers));
            }
        }
    }
}
