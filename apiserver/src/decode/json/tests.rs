//! Go's words, and agreement with another parser.

use proptest::prelude::*;
use serde_json::Value;

use super::{MAX_DEPTH, Node, parse};

fn error(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn errors_have_gos_words() {
    // As printed by encoding/json of Go 1.26.
    for (text, expected) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("\"a", "unexpected end of JSON input"),
        ("{nojson", "invalid character 'n' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("a: b", "invalid character 'a' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("\"\\q\"", "invalid character 'q' in string escape code"),
        ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
    ] {
        assert_eq!(error(text), expected, "{text:?}");
    }
}

#[test]
fn members_that_appear_twice_are_kept() {
    let node = parse(br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}],"a":3}"#).unwrap();
    assert_eq!(
        node.duplicates(),
        ["duplicate field \"a.b\"", "duplicate field \"c[0].d\"", "duplicate field \"a\""]
    );
    assert_eq!(node.into_value()["a"], 3);
}

#[test]
fn many_duplicates_below_a_long_name_are_told_within_bounds() {
    let long = "x".repeat(1_500_000);
    for inner in ["\"a\":0,".repeat(200_000), r#""k":{"a":0,"a":0},"#.repeat(80_000)] {
        let node = parse(format!("{{\"{long}\":{{{inner}\"b\":0}}}}").as_bytes()).unwrap();
        assert!(node.duplicates().iter().map(String::len).sum::<usize>() < 2 * long.len());
    }
    let many: String = (0..10_000).map(|n| format!("\"{n}\":0,\"{n}\":0,")).collect();
    let many = parse(format!("{{{many}\"a\":0}}").as_bytes()).unwrap();
    assert_eq!(many.duplicates().len(), 100);
}

#[test]
fn nesting_is_limited() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(error(&nested(MAX_DEPTH + 1)), "exceeded max depth");
    assert_eq!(error(&"[".repeat(1_000_000)), "exceeded max depth");
}

#[test]
fn escapes_and_broken_utf8() {
    assert_eq!(parse(br#""\ud83d\ude00\ud83dx\u00e9""#).unwrap(), Node::Text("😀\u{fffd}xé".to_owned()));
    assert_eq!(parse(b"\"a\xffb\"").unwrap(), Node::Text("a\u{fffd}b".to_owned()));
    // One for each byte, not one for the sequence that they begin.
    assert_eq!(parse(b"\"\xf0\x9f\x98b\"").unwrap(), Node::Text("\u{fffd}\u{fffd}\u{fffd}b".to_owned()));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused_as_another_parser_does(bytes in proptest::collection::vec(
        prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b':'), Just(b','),
                    Just(b'\\'), Just(b'1'), Just(b'e'), Just(b'.'), Just(b'-'), Just(b' '), Just(b'0')], 0..24)) {
        let ours = parse(&bytes);
        let theirs = serde_json::from_slice::<Value>(&bytes);
        // Numbers beyond what a float holds are an error only there.
        let too_large = theirs.as_ref().is_err_and(|e| e.to_string().starts_with("number out of range"));
        prop_assert!(ours.is_ok() == theirs.is_ok() || too_large, "{:?} {:?}", ours, theirs);
        // Floats are another test's; -0 is an integer for Go, as for us, and a float there.
        if let (Ok(ours), Ok(theirs)) = (ours, theirs)
            && !String::from_utf8_lossy(&bytes).contains(['e', '.', '1', '-'])
        {
            prop_assert_eq!(ours.into_value(), theirs);
        }
    }

    #[test]
    fn texts_come_through(text in any::<String>()) {
        let json = serde_json::to_vec(&text).unwrap();
        prop_assert_eq!(parse(&json).unwrap(), Node::Text(text));
    }
}
