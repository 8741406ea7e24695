//! JSON values as the algebra sees them: an order over all of them, equality of numbers across their kinds, and the
//! forms in which Go prints them, which error texts have.

use std::cmp::Ordering;
use std::fmt::Write;

use picoshift_machinery::field_error::quote;
use serde_json::{Map, Number, Value};

/// A total order: numbers, strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|((k, a), (l, b))| k.cmp(l).then_with(|| compare(a, b)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => float(a).total_cmp(&float(b)),
    }
}

fn float(number: &Number) -> f64 {
    // No negative zero: it is not less than zero.
    number.as_f64().unwrap_or_default() + 0.0
}

/// Equality in which 1 is 1.0.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::Number(a), Value::Number(b)) => numbers(a, b).is_eq(),
        _ => left == right,
    }
}

/// The form in paths that people read: strings quoted, `null`.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(set) => set.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quote(text),
        Value::Array(list) => format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", text(value))).collect(),
    }
}

/// Go's `%v`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => text(value),
    }
}

/// Go's `%#v`.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(list) => {
            format!("[]interface {{}}{{{}}}", list.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let members: Vec<String> =
                map.iter().map(|(k, v)| format!("{}:{}", quote(k), syntax(v))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => text(value),
    }
}

/// Go's `%T`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn number_text(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let scientific = format!("{float:e}");
    let exponent = scientific.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or_default();
    if float != 0.0 && !(-4..6).contains(&exponent) {
        let mantissa = scientific.split('e').next().unwrap_or_default();
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{float}")
}

/// Compact JSON with `<`, `>` and `&` escaped, as Go's encoder writes it.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    // These letters occur in JSON only inside of strings.
    let mut out = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        if matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// The members of a map, none where the value is no map.
pub(crate) fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// The names of the members of either map, each once and in order.
pub(crate) fn names<'a>(
    left: Option<&'a Map<String, Value>>,
    right: Option<&'a Map<String, Value>>,
) -> Vec<&'a String> {
    let mut names: Vec<&String> = left.into_iter().chain(right).flat_map(Map::keys).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_across_kinds() {
        assert!(equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!equal(&json!({"a": null}), &json!({})));
        assert!(!equal(&json!(null), &json!([])));
        assert_eq!(compare(&json!(0.0), &json!(-0.0)), Ordering::Equal);
        assert_eq!(compare(&json!(i64::MAX), &json!(i64::MAX - 1)), Ordering::Greater);
    }

    #[test]
    fn kinds_are_ordered() {
        let sorted = [json!(2), json!("1"), json!(false), json!(true), json!([]), json!({}), json!(null)];
        for (at, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn prints_as_go() {
        let value = json!({"a": [1, "x", null, true], "b": 1.5});
        assert_eq!(plain(&value), "map[a:[1 x <nil> true] b:1.5]");
        assert_eq!(
            syntax(&value),
            r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil), true}, "b":1.5}"#
        );
        assert_eq!(text(&json!("a\"b")), r#""a\"b""#);
        assert_eq!(text(&json!(1e21)), "1e+21");
        assert_eq!(text(&json!(0.00001)), "1e-05");
        assert_eq!(json(&json!({"a": "<b>&"})), r#"{"a":"\u003cb\u003e\u0026"}"#);
    }
}
