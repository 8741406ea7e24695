//! Texts that say where a browser shall go: redirect URIs and `then`.

use futures::FutureExt as _;
use http::HeaderValue;
use http::header::LOCATION;
use picoshift_machinery::url::Url;

use super::browser::{Place, follow};
use crate::oauth::call::Call;
use crate::oauth::redirect_uri;
use crate::oauth::reply::{self, Reply};
use crate::oauth::url::{Values, is_server_relative, query_escape, query_unescape};

/// What clients have registered: each with scheme, host and path.
const REGISTERED: [(&str, &str, &str, &str); 5] = [
    ("https://app.example/cb", "https", "app.example", "/cb"),
    ("https://app.example:8443", "https", "app.example:8443", ""),
    ("http://127.0.0.1/callback", "http", "127.0.0.1", "/callback"),
    ("http://[::1]:80/cb/", "http", "[::1]:80", "/cb/"),
    ("app.example:/cb", "app.example", "", "/cb"),
];

/// A text as a redirect URI, as `then`, and as a query.
pub(super) fn redirects(text: &str) {
    for (registered, scheme, host, path) in REGISTERED {
        let own = [registered.to_owned()];
        let Ok(chosen) = redirect_uri::choose(&own, text) else { continue };
        assert_eq!(redirect_uri::choose(&own, &chosen).as_ref(), Ok(&chosen), "{text:?} is chosen otherwise");
        let told = Values::from([("code", "c d"), ("state", text)]);
        for location in [
            chosen.clone(),
            location(&reply::to_client(&chosen, told.clone(), false)),
            location(&reply::to_client(&chosen, told, true)),
        ] {
            let place = follow(&location);
            let is_own = place.scheme == scheme && (place.host == host || is_any_loopback(host, &place));
            assert!(is_own && place.is_below(path), "{text:?} leads from {registered} to {place:?}");
        }
    }
    then(text);
    let values = Values::parse(text);
    assert_eq!(Values::parse(&values.encode()).encode(), values.encode(), "{text:?}");
    assert_eq!(query_unescape(&query_escape(text)).as_deref(), Some(text));
    // Without a scheme, or with nothing else, it could be read as another: nobody writes those.
    if let Ok(url) = Url::parse(text)
        && !(url.is_odd || url.scheme.is_empty() || (url.host.is_empty() && url.path.is_empty()))
    {
        let again = Url::parse(&url.to_string());
        assert_eq!(again, Ok(Url { has_fragment: false, ..url }), "{text:?} is written otherwise");
    }
}

/// Whether a native client may be there: any loopback address and port, as one was registered without a port.
fn is_any_loopback(registered: &str, place: &Place) -> bool {
    let name = match place.host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() || port.is_empty() => name,
        _ => place.host.as_str(),
    };
    registered == "127.0.0.1" && (name == "[::1]" || name.starts_with("127.") || name.starts_with("[::"))
}

/// A `then` that is followed leads nowhere else.
fn then(text: &str) {
    if !is_server_relative(text) {
        return;
    }
    assert!(follow(text).is_here(), "{text:?} leaves the server");
    assert!(follow(&location(&reply::found(text))).is_here(), "{text:?} leaves the server");
    for path in ["/login", "/login/a%2Fb", "/logout"] {
        let Ok(request) = http::Request::get(path).body(http_body_util::Empty::<bytes::Bytes>::new()) else {
            continue;
        };
        let call = Call::read(request, std::net::Ipv4Addr::LOCALHOST.into()).now_or_never();
        let Some(Ok(call)) = call else { continue };
        let sent = location(&reply::redirect(&call, text));
        assert!(follow(&sent).is_here(), "{text:?} leaves the server by {sent:?}");
    }
}

fn location(reply: &Reply) -> String {
    let value = reply.headers().get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
    assert!(value.is_ascii(), "{value:?} is read differently by different browsers");
    String::from_utf8_lossy(value).into_owned()
}
