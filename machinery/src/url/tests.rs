//! What Go reads and writes.

use proptest::prelude::*;

use super::*;

#[test]
fn reads_what_go_reads() {
    let url = Url::parse("HTTPS://user@Host.example:8443/a%20b/c?x=1#f").unwrap();
    assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "Host.example:8443"));
    assert_eq!((url.path.as_str(), url.query.as_str(), url.has_fragment), ("/a b/c", "x=1", true));
    assert!(!url.is_odd && Url::parse("mailto:x").unwrap().is_odd && Url::parse("/%ff").unwrap().is_odd);
    for good in ["", "a/b:c", "https://user:pa@host/x?a=..&b=#", "not a url", "https://x?/../y"] {
        assert!(Url::parse(good).is_ok(), "{good}");
    }
}

#[test]
fn a_host_has_a_name() {
    for (host, name) in [
        ("h", "h"),
        ("h:80", "h"),
        ("h:", "h"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("127.0.0.1:x:80", "127.0.0.1:x"),
        ("[::1]:80]:1", "::1]:80"),
    ] {
        let url = Url { host: host.to_owned(), ..Url::default() };
        assert_eq!(url.host_name(), name, "{host}");
    }
}

#[test]
fn refused_in_gos_words() {
    for (bad, why) in [
        ("https://x/%zz", "parse \"https://x/%zz\": invalid URL escape \"%zz\""),
        ("https://x/%", "parse \"https://x/%\": invalid URL escape \"%\""),
        ("/a#%", "parse \"/a#%\": invalid URL escape \"%\""),
        (":x", "parse \":x\": missing protocol scheme"),
        ("1a:b", "parse \"1a:b\": first path segment in URL cannot contain colon"),
        ("http://[::1/x", "parse \"http://[::1/x\": missing ']' in host"),
        ("http://h:x/", "parse \"http://h:x/\": invalid port \":x\" after host"),
        ("http://a b/", "parse \"http://a b/\": invalid character \" \" in host name"),
        ("http://a\\b/", "parse \"http://a\\\\b/\": invalid character \"\\\\\" in host name"),
        ("http://a%20b/", "parse \"http://a%20b/\": invalid URL escape \"%20\""),
        ("http://a\nb/", "parse \"http://a\\nb/\": net/url: invalid control character in URL"),
        ("/\u{7f}", "parse \"/\\x7f\": net/url: invalid control character in URL"),
        ("http://a b@h/", "parse \"http://a b@h/\": net/url: invalid userinfo"),
    ] {
        assert_eq!(Url::parse(bad).map_err(|error| error.to_string()), Err(why.to_owned()), "{bad}");
    }
}

#[test]
fn paths_are_resolved_as_browsers_do() {
    for (path, resolved) in [
        ("", ""),
        ("/", "/"),
        ("/a/../b", "/b"),
        ("/a/..", "/"),
        ("/../../a", "/a"),
        ("/a/./b/", "/a/b/"),
        ("/.../..x", "/.../..x"),
        ("/%2e%2e/a", "/a"),
    ] {
        assert_eq!(Url::parse(path).unwrap().resolved_path(), resolved, "{path}");
    }
}

#[test]
fn writes_what_go_writes() {
    for (text, written) in [
        ("HTTPS://H:1/a%2fb \\?q#f", "https://H:1/a/b%20%5C?q"),
        ("http://h\u{e9}%C3%A9/", "http://h%C3%A9%C3%A9/"),
        ("http://a%25b/", "http://a%25b/"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("app:/cb", "app:///cb"),
    ] {
        assert_eq!(Url::parse(text).unwrap().to_string(), written, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_itself(text in "(https?|app)://[a-z.:0-9é%25]{1,9}(/[a-zA-Z0-9 %/.~?=&\\-]{0,20})?") {
        if let Ok(url) = Url::parse(&text) {
            prop_assert_eq!(Url::parse(&url.to_string()), Ok(Url { has_fragment: false, is_odd: false, ..url }));
        }
    }

    #[test]
    fn nothing_breaks_the_reader(text in "\\PC{0,60}") {
        let _ = Url::parse(&text).map(|url| (url.resolved_path(), url.host_name().len()));
    }
}
