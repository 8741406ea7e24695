//! Selectors against upstream's grammar and meaning.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{FieldSelector, LabelSelector};

fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
    LabelSelector::parse(selector).unwrap().matches(|key| labels.get(key).copied())
}

#[test]
fn label_operators() {
    let labels = [("app", "web"), ("tier", ""), ("n", "5")];
    for (selector, expected) in [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , tier", true),
        ("app!=web", false),
        ("other!=x", true),
        ("app in (db, web)", true),
        ("app notin (db,web)", false),
        ("missing notin (a)", true),
        ("!missing", true),
        ("!app", false),
        ("tier=", true),
        ("tier in ()", true),
        ("app in (,web)", true),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("app>1", false),
        ("in=x", false),
    ] {
        assert_eq!(selects(selector, &labels), expected, "{selector}");
    }
}

#[test]
fn label_errors() {
    for selector in
        ["app=web,", ",", "a b", "a in b", "a in (b", "!", "=x", "a>x", "a=b=c", "-a", "a in (b))"]
    {
        let error = LabelSelector::parse(selector).expect_err(selector);
        assert!(!error.to_string().is_empty());
    }
    let error = LabelSelector::parse("a,").unwrap_err().to_string();
    assert_eq!(error, "found '', expected: identifier after ','");
    let error = LabelSelector::parse("a=b)").unwrap_err().to_string();
    assert_eq!(error, "found ')', expected: ',' or 'end of string'");
    let error = LabelSelector::parse("a in x").unwrap_err().to_string();
    assert_eq!(error, "unable to parse requirement: found 'x' expected: '('");
    let error = LabelSelector::parse("-a").unwrap_err().to_string();
    assert!(error.starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": name part must"));
    let error = LabelSelector::parse("a=-b").unwrap_err().to_string();
    assert!(error.starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid"));
}

#[test]
fn field_terms() {
    let lookup = |field: &str| match field {
        "metadata.name" => Some("x"),
        "spec.host" => Some("a,b=c\\d"),
        _ => None,
    };
    for (selector, expected) in [
        ("", true),
        ("metadata.name=x", true),
        ("metadata.name==x", true),
        ("metadata.name!=x", false),
        ("metadata.name=x,spec.host!=y", true),
        (r"spec.host=a\,b\=c\\d", true),
        ("spec.other=", true),
        ("metadata.name=", false),
        ("=", true),
    ] {
        assert_eq!(FieldSelector::parse(selector).unwrap().matches(lookup), expected, "{selector}");
    }
    let error = FieldSelector::parse("a=b=c").unwrap_err().to_string();
    assert_eq!(error, "invalid field selector: unescaped character in value: 61");
    for selector in ["x", r"a=\x", r"a=b\"] {
        assert!(FieldSelector::parse(selector).is_err(), "{selector}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z!=<>(),\\\\ inot./-]{0,24}") {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }

    /// `in` and `notin` are opposites; so are existence and its negation.
    #[test]
    fn negations_are_opposites(value in prop::option::of("[a-c]"), set in prop::collection::vec("[a-c]", 1..3)) {
        let set = set.join(",");
        let meets = |s: &str| LabelSelector::parse(s).unwrap().matches(|_| value.as_deref());
        let has = format!("k in ({set})");
        let hasnt = format!("k notin ({set})");
        prop_assert_ne!(meets(&has), meets(&hasnt));
        prop_assert_ne!(meets("k"), meets("!k"));
    }
}
