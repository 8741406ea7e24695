//! Which redirect URIs a client may use: those that it has registered, and what lies below them.

use std::net::IpAddr;

use picoshift_machinery::url::Url;

use super::url::{self, BadUrl};

/// A redirect URI that the client has not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// None was given, and there is not just one to take instead.
    #[error("the redirect URI is missing")]
    Missing,
    /// It is none of the client's.
    #[error("the client has not registered the redirect URI")]
    Foreign,
    /// It is no URL.
    #[error("the redirect URI: {0}")]
    Bad(#[from] BadUrl),
}

/// The redirect URI to use for `requested`, spelled so that it holds nothing that could be read in another way.
///
/// Scheme and host are the same as of a registered one, and the path is the same or lies below it, after `.` and `..` are
/// resolved. For a registered `http` URI of a loopback address without a port, any loopback address and port will do.
///
/// # Errors
/// [`Refused`].
pub fn choose(registered: &[String], requested: &str) -> Result<String, Refused> {
    let requested = match (requested, registered) {
        ("", [only]) => only,
        ("", _) => return Err(Refused::Missing),
        (requested, _) => requested,
    };
    let requested = url::read(requested)?;
    if requested.has_fragment {
        return Err(Refused::Foreign);
    }
    let path = requested.resolved_path();
    let mut bases = registered.iter().filter_map(|uri| url::read(uri).ok());
    if bases.any(|base| is_below(&base, &requested, &path)) {
        Ok(Url { path, ..requested }.to_string())
    } else {
        Err(Refused::Foreign)
    }
}

fn is_below(base: &Url, requested: &Url, path: &str) -> bool {
    // A URL without a host would be the same as any other of its scheme.
    if base.has_fragment
        || base.scheme.is_empty()
        || base.scheme != requested.scheme
        || !same_host(base, requested)
    {
        return false;
    }
    let base = base.resolved_path();
    let below = || path.strip_prefix(base.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    path == base || below()
}

fn same_host(base: &Url, requested: &Url) -> bool {
    let is_loopback = |url: &Url| match url.host_name().parse::<IpAddr>() {
        // Without brackets, what follows a colon could be the port or not.
        Ok(IpAddr::V6(address)) => address.is_loopback() && url.host.starts_with('['),
        Ok(IpAddr::V4(address)) => address.is_loopback() && !url.host.starts_with('['),
        Err(_) => false,
    };
    let has_port = base.host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
    base.host == requested.host
        || (base.scheme == "http" && !has_port && is_loopback(base) && is_loopback(requested))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose_one(base: &str, requested: &str) -> Result<String, Refused> {
        choose(&[base.to_owned()], requested)
    }

    // As the tests of the library that the real server uses.
    #[test]
    fn registered_uris_and_what_lies_below_are_taken() {
        for (base, requested, chosen) in [
            (
                "http://localhost:14000/appauth",
                "http://localhost:14000/appauth",
                "http://localhost:14000/appauth",
            ),
            ("http://g.example/myapp", "http://g.example/myapp/", "http://g.example/myapp/"),
            ("http://g.example/myapp/", "http://g.example/myapp/a/b", "http://g.example/myapp/a/b"),
            (
                "http://g.example/myapp",
                "http://g.example/myapp/.../..x../...",
                "http://g.example/myapp/.../..x../...",
            ),
            ("http://g.example/t/../ok", "http://g.example/t/../ok/sub", "http://g.example/ok/sub"),
            (
                "https://g.example/r",
                "https://g.example/r/\\../\\../evil",
                "https://g.example/r/%5C../%5C../evil",
            ),
            ("http://g.example/r", "http://g.example/r?a=1&b=2", "http://g.example/r?a=1&b=2"),
            ("https://g.example", "https://g.example/x", "https://g.example/x"),
            ("http://127.0.0.1/callback", "http://127.0.0.1:4711/callback", "http://127.0.0.1:4711/callback"),
            ("http://[::1]/callback", "http://[::1]:4711/callback", "http://[::1]:4711/callback"),
            ("com.example.app:/cb", "com.example.app:/cb", "com.example.app:///cb"),
        ] {
            assert_eq!(choose_one(base, requested).as_deref(), Ok(chosen), "{base} {requested}");
        }
        assert_eq!(choose_one("https://g.example/r", "").as_deref(), Ok("https://g.example/r"));
    }

    #[test]
    fn tricks_are_refused() {
        for (base, requested) in [
            ("http://localhost:14000/appauth", "http://localhost:14000/app"),
            ("http://localhost:14000/app/", "http://localhost:14000/app"),
            ("http://g.example/appauth", "http://g.example/appauthmore"),
            ("http://g.example/myapp", "http://g2.example/myapp"),
            ("http://g.example/myapp", "https://g.example/myapp"),
            ("http://g.example/myapp", "http://g.example/myapp/.."),
            ("http://g.example/myapp", "http://g.example/myapp/../test"),
            ("http://g.example/myapp", "http://g.example/myapp/%2e%2e/test"),
            ("http://g.example/myapp", "http://g.example/myapp../test"),
            ("https://g.example/s/r", "https://g.example/s%2fr/../evil"),
            ("https://rh-ai.apps.example", "https://rh-ai.apps.example.evil.example"),
            ("https://rh-ai.apps.example", "https://rh-ai.apps.example@evil.example/"),
            ("https://rh-ai.apps.example", "https://rh-ai.apps.example:8443/"),
            ("https://rh-ai.apps.example", "https://evil.example\\.rh-ai.apps.example/"),
            ("https://g.example/r", "https://g.example/r#code"),
            ("https://g.example/r", "//g.example/r"),
            ("https://g.example/r", "/r"),
            ("/r", "/r"),
            ("http://127.0.0.1:80/callback", "http://127.0.0.1:4711/callback"),
            ("https://127.0.0.1/callback", "https://127.0.0.1:4711/callback"),
            ("http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback"),
            ("http://127.0.0.1/callback", "http://localhost:1/callback"),
            ("http://127.0.0.1/callback", "http://::1:80/callback"),
            ("http://127.0.0.1/callback", "http://[127.0.0.1]:80/callback"),
            ("http://127.0.0.1/callback", "http://127.0.0.1:x:80/callback"),
            ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example/callback"),
            ("myapp:callback", "myapp:evil"),
        ] {
            assert!(choose_one(base, requested).is_err(), "{base} {requested}");
        }
        let two = ["https://a.example/".to_owned(), "https://b.example/".to_owned()];
        assert_eq!(choose(&two, ""), Err(Refused::Missing));
        assert_eq!(choose(&[], ""), Err(Refused::Missing));
    }

    proptest! {
        #[test]
        fn what_is_chosen_has_the_registered_host_and_path(
            requested in "https://(good\\.example|evil\\.example|good\\.example@evil\\.example)[a-z.@:0-9]{0,4}(/[a-z./%2e\\\\?#]{0,20})?"
        ) {
            if let Ok(chosen) = choose_one("https://good.example/app", &requested) {
                let strict = chosen.strip_prefix("https://good.example/app");
                prop_assert!(strict.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?'])), "{}", chosen);
                prop_assert!(!chosen.contains("/../") && !chosen.contains('#') && !chosen.contains('\\'));
            }
        }
    }
}
