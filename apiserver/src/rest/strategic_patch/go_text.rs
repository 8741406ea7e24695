//! JSON values as Go's `fmt` prints them; errors quote them so.

use serde_json::{Map, Number, Value};

/// `%v`.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(set) => set.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items),
        Value::Object(members) => map(members),
    }
}

/// `%v` of a map.
pub(super) fn map(map: &Map<String, Value>) -> String {
    let members: Vec<String> = map.iter().map(|(key, item)| format!("{key}:{}", value(item))).collect();
    format!("map[{}]", members.join(" "))
}

/// `%v` of a list.
pub(super) fn list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(" "))
}

/// `%s`, which is not meant for what is no text.
pub(super) fn string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(string).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> =
                map.iter().map(|(key, item)| format!("{key}:{}", string(item))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", r#type(other), self::value(other)),
    }
}

/// The type that Go has for a JSON value.
pub(super) fn r#type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Large and small floats have an exponent of two digits at least, and a sign before it.
fn number(number: &Number) -> String {
    let float = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => return integer.to_string(),
        (None, Some(float)) => float,
        (None, None) => return number.to_string(),
    };
    if float != 0.0 && (float.abs() < 1e-4 || float.abs() >= 1e21) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if exponent.starts_with('-') { '-' } else { '+' };
        return format!("{digits}e{sign}{:0>2}", exponent.trim_start_matches('-'));
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_in_go() {
        let all = json!({"b": [1, "x y", null, true], "a": {"f": 1.5, "g": 1e21, "h": 1e-7, "i": 2.0}});
        assert_eq!(value(&all), "map[a:map[f:1.5 g:1e+21 h:1e-07 i:2] b:[1 x y <nil> true]]");
        assert_eq!(string(&json!([1, "a", null])), "[%!s(int64=1) a %!s(<nil>)]");
    }
}
