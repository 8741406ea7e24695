//! What Go reads and writes, and where browsers may be sent.

use proptest::prelude::*;

use super::*;

#[test]
fn reads_what_go_reads() {
    let url = Url::parse("HTTPS://user@Host.example:8443/a%20b/c?x=1#f").unwrap();
    assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "Host.example:8443"));
    assert_eq!((url.path.as_str(), url.query.as_str(), url.has_fragment), ("/a b/c", "x=1", true));
    assert_eq!(url.host_name(), "Host.example");
    assert_eq!(Url::parse("http://[::1]:80/").unwrap().host_name(), "::1");
    for bad in [
        "mailto:x",
        ":x",
        "http://a b/",
        "http://a\\b/",
        "http://a:b/",
        "a:b",
        "/%zz",
        "/\u{7f}",
        "http://[::1/",
    ] {
        assert_eq!(Url::parse(bad), Err(BadUrl), "{bad}");
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
fn queries_are_spelled_as_go_does() {
    assert_eq!(query_escape("a b*~/:é"), "a+b%2A~%2F%3A%C3%A9");
    assert_eq!(query_unescape("a+b%2F").as_deref(), Some("a b/"));
    assert_eq!(query_unescape("%"), None);
    let mut values = Values::parse("b=2&a=1&b=3&bad=%zz");
    assert_eq!((values.get("b"), values.get("c"), values.has("bad")), ("2", "", false));
    values.set("b", "4");
    assert_eq!(values.encode(), "a=1&b=4");
}

#[test]
fn a_browser_stays_on_this_server() {
    for good in ["/", "/oauth/authorize?client_id=x&then=https%3A%2F%2Fevil.example", "/a//b", "/login#x"] {
        assert!(is_server_relative(good), "{good}");
    }
    for bad in [
        "",
        "x",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/a\\..\\\\evil.example",
        "http:/evil.example",
        " /x",
    ] {
        assert!(!is_server_relative(bad), "{bad}");
    }
}

proptest! {
    #[test]
    fn what_is_escaped_is_unescaped(text in ".{0,40}") {
        prop_assert_eq!(query_unescape(&query_escape(&text)), Some(text));
    }

    #[test]
    fn what_is_written_is_read_as_itself(text in "(https?|app)://[a-z.:0-9]{1,9}(/[a-zA-Z0-9 %/.~?=&\\-]{0,20})?") {
        if let Ok(url) = Url::parse(&text) {
            prop_assert_eq!(Url::parse(&url.to_string()), Ok(Url { has_fragment: false, ..url }));
        }
    }

    #[test]
    fn nothing_breaks_the_reader(text in "\\PC{0,60}") {
        let _ = Url::parse(&text).map(|url| url.resolved_path());
        let _ = is_server_relative(&text);
    }

    #[test]
    fn values_survive_being_written(pairs in prop::collection::vec((".{0,8}", ".{0,8}"), 0..5)) {
        let mut values = Values::default();
        for (name, value) in &pairs {
            values.set(name, value.clone());
        }
        let read = Values::parse(&values.encode());
        for (name, _) in &pairs {
            prop_assert_eq!(read.get(name), values.get(name));
        }
    }
}
