//! What Go writes, and where browsers may be sent.

use proptest::prelude::*;

use super::*;

#[test]
fn what_leads_nowhere_is_refused() {
    assert_eq!(read("https://x/a%20b").unwrap().path, "/a b");
    for odd in ["mailto:x", "a:b", "/%ff"] {
        assert_eq!(read(odd), Err(BadUrl::Odd), "{odd}");
    }
    for bad in [":x", "http://a b/", "http://a\\b/", "http://a:b/", "/%zz", "/\u{7f}", "http://[::1/"] {
        assert!(matches!(read(bad), Err(BadUrl::Malformed(_))), "{bad}");
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
        "/x#\n",
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
    fn nothing_breaks_the_reader(text in "\\PC{0,60}") {
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
