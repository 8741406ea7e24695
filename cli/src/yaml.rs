//! YAML as JSON values, written so that every parser reads the same back.

use std::fmt::Write;

use anyhow::Result;
use serde_json::Value;

/// The documents of a file; empty ones are left out.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Writes a value in block style. Strings that any version of YAML could take for something else are quoted.
pub(crate) fn emit(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => emit_block(&mut text, value, 0),
        Value::Array(items) if !items.is_empty() => emit_block(&mut text, value, 0),
        scalar => {
            text.push_str(&inline(scalar));
            text.push('\n');
        }
    }
    text
}

fn emit_block(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => {
            for (at, (key, value)) in map.iter().enumerate() {
                // The first key of a list's item stands on the line of its hyphen.
                if at > 0 || !text.ends_with("- ") {
                    let _ = write!(text, "{:indent$}", "");
                }
                text.push_str(&string(key));
                text.push(':');
                emit_nested(text, value, indent, matches!(value, Value::Array(_)));
            }
        }
        Value::Array(items) => {
            for item in items {
                let _ = write!(text, "{:indent$}-", "");
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        text.push(' ');
                        emit_block(text, item, indent + 2);
                    }
                    _ => emit_nested(text, item, indent, false),
                }
            }
        }
        _ => {}
    }
}

fn emit_nested(text: &mut String, value: &Value, indent: usize, same_indent: bool) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        text.push('\n');
        emit_block(text, value, if same_indent { indent } else { indent + 2 });
    } else {
        text.push(' ');
        text.push_str(&inline(value));
        text.push('\n');
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        other => other.to_string(),
    }
}

fn string(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./+@".contains(&byte))
        && !is_word(text);
    // A base64 text ends with equals signs and a URL holds colons: both are harmless inside a scalar.
    let harmless = text.starts_with("https://") || text.trim_end_matches('=').len() > 16;
    let plain = plain
        || (harmless
            && text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./+@=:".contains(&byte))
            && !text.ends_with(':'));
    if plain { text.to_owned() } else { quoted(text) }
}

/// A JSON string, and what YAML takes in no document but JSON does: characters that do not print.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            printable => quoted.push(printable),
        }
    }
    quoted
}

/// Words that YAML 1.1 or 1.2 takes for a truth value, a null or a number.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn block_style_as_kubectl_writes_it() {
        let value = json!({
            "apiVersion": "v1",
            "clusters": [{"cluster": {"server": "https://127.0.0.1:6443"}, "name": "a b"}],
            "empty": {},
            "list": ["yes", "plain", "1e3", ["x"]],
            "none": null,
            "users": [],
        });
        insta::assert_snapshot!(emit(&value), @r#"
        apiVersion: v1
        clusters:
        - cluster:
            server: https://127.0.0.1:6443
          name: "a b"
        empty: {}
        list:
        - "yes"
        - plain
        - "1e3"
        -
          - x
        none: null
        users: []
        "#);
    }

    #[test]
    fn characters_that_do_not_print() {
        let value = json!(["\u{7f}\u{85}\u{2028}\u{feff}\u{ffff}\u{0}\n", {"\u{7f}": "\u{1f600}"}]);
        let read: Value = serde_saphyr::from_str(&emit(&value)).unwrap();
        assert_eq!(read, value);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[a-zA-Z0-9:=/. #&*!|>'\"%@`{}\\[\\]-]{0,20}".prop_map(Value::from),
            prop_oneof!["yes", "No", "0x1F", "0o7", "1_000", "~", ".inf", "2020-01-01", "=", "<<"]
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("\\PC{1,8}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(value in values()) {
            let text = emit(&value);
            let read: Value = serde_saphyr::from_str(&text).unwrap();
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
