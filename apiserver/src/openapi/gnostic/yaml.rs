//! YAML in blocks, as Go's `yaml.v3` writes a document that was read from JSON.

use serde_json::Value;

/// How much deeper a value under a key stands, and the columns that it stands at.
const STEP: usize = 4;

/// The value, with a line end.
pub(super) fn block(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

/// Writes a value whose lines after the first begin at `column`; the first is begun already.
fn write(value: &Value, column: usize, out: &mut String) {
    match value {
        Value::Array(list) if !list.is_empty() => {
            for (at, item) in list.iter().enumerate() {
                begin(at, column, out);
                out.push_str("- ");
                write(item, column + 2, out);
            }
        }
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                begin(at, column, out);
                out.push_str(&scalar(key));
                out.push(':');
                if is_block(value) {
                    let column = (column + STEP) / STEP * STEP;
                    out.push('\n');
                    out.push_str(&" ".repeat(column));
                    write(value, column, out);
                } else {
                    out.push(' ');
                    write(value, column, out);
                }
            }
        }
        Value::String(text) => line(&scalar(text), out),
        other => line(&other.to_string(), out),
    }
}

fn begin(at: usize, column: usize, out: &mut String) {
    if at > 0 {
        out.push_str(&" ".repeat(column));
    }
}

fn line(text: &str, out: &mut String) {
    out.push_str(text);
    out.push('\n');
}

fn is_block(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty())
        || value.as_object().is_some_and(|map| !map.is_empty())
}

/// A text, in quotes where it would else be read as something other than that text.
fn scalar(text: &str) -> String {
    const OTHER: [&str; 10] = ["", "false", "n", "no", "null", "off", "on", "true", "y", "yes"];
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-, ".contains(c))
        && !text.ends_with(' ')
        && !OTHER.contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_those_of_go() {
        let value =
            json!([{"group": "", "kind": "Route", "version": "v1"}, {"a": {"b": ["c", {"d": 1}], "e": {}}}]);
        let expected = "- group: \"\"\n  kind: Route\n  version: v1\n- a:\n    b:\n        - c\n        - d: 1\n    e: {}\n";
        assert_eq!(block(&value), expected);
        assert_eq!(block(&json!("atomic")), "atomic\n");
        assert_eq!(block(&json!("true")), "\"true\"\n");
    }
}
