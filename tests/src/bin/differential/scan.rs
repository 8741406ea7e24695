//! Finds uids, numbers, ages and JSON in texts.

use serde_json::Value;

/// Replaces every uid (eight, four, four, four and twelve hexadecimal digits) in `text`.
pub(crate) fn replace_uuids(text: &str, mut with: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = (0..rest.len()).find(|at| rest.get(*at..*at + 36).is_some_and(is_uuid)) {
        out.push_str(&rest[..at]);
        out.push_str(&with(&rest[at..at + 36]));
        rest = &rest[at + 36..];
    }
    out.push_str(rest);
    out
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Replaces every number of two or more digits that stands alone in `text`.
pub(crate) fn replace_numbers(text: &str, mut with: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let word = &word[..end];
        out.push_str(&rest[..start]);
        if word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&with(word));
        } else {
            out.push_str(word);
        }
        rest = &rest[start + end..];
    }
    out.push_str(rest);
    out
}

/// The JSON object or list that a message about an invalid value shows, as it is or quoted, and what stands before and after.
/// The order of its fields says nothing.
pub(crate) fn value_in_message(text: &str) -> Option<(&str, Value, &str)> {
    let start = text.find("Invalid value: ")? + "Invalid value: ".len();
    let (before, rest) = text.split_at(start);
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let after = &rest[values.byte_offset()..];
    match value {
        Value::Object(_) | Value::Array(_) => Some((before, value, after)),
        Value::String(quoted) if quoted.starts_with('{') => {
            Some((before, serde_json::from_str(&quoted).ok()?, after))
        }
        _ => None,
    }
}

/// A message without the line of source code that names the scheme of a server built from Go: it depends on the build.
pub(crate) fn without_scheme(text: &str) -> String {
    match text.split_once(" in scheme \"") {
        Some((before, after)) => {
            let rest = after.split_once('"').map_or("", |(_, rest)| rest);
            format!("{before} in scheme <scheme>{rest}")
        }
        None => text.to_owned(),
    }
}

/// Whether a cell says how long ago something was: `5s`, `2m3s`, `Less than a second ago`.
pub(crate) fn is_age(cell: &str) -> bool {
    let short = !cell.is_empty()
        && cell.starts_with(|c: char| c.is_ascii_digit())
        && cell.chars().all(|c| c.is_ascii_digit() || "smhdy".contains(c));
    short || cell.ends_with(" ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_found_anywhere() {
        let uid = "8039f028-ab0c-4088-9a4f-d0e619db8f18";
        assert_eq!(replace_uuids(&format!("is {uid}, not {uid}é"), |_| "U".to_owned()), "is U, not Ué");
        assert_eq!(replace_uuids("8039f028-ab0c", |_| "U".to_owned()), "8039f028-ab0c");
    }

    #[test]
    fn numbers_stand_alone() {
        assert_eq!(replace_numbers("v1 of 616: 7 (88)x9", |_| "N".to_owned()), "v1 of N: 7 (N)x9");
    }

    #[test]
    fn values_in_messages() {
        let (before, value, after) = value_in_message("x: Invalid value: \"{\\\"a\\\":1}\": bad").unwrap();
        assert_eq!((before, after, &value["a"]), ("x: Invalid value: ", ": bad", &1.into()));
        assert!(value_in_message("x: Invalid value: [1]: bad").is_some());
        assert!(value_in_message("x: Invalid value: \"a\": bad").is_none());
        assert!(value_in_message("x: Invalid value: 300: bad").is_none());
    }

    #[test]
    fn schemes_depend_on_the_build() {
        assert_eq!(
            without_scheme("no kind in scheme \"a.go:1\", sorry"),
            "no kind in scheme <scheme>, sorry"
        );
    }

    #[test]
    fn ages() {
        assert!(is_age("5s") && is_age("2m3s") && is_age("Less than a second ago"));
        assert!(!is_age("<unknown>") && !is_age("") && !is_age("2020-01-01"));
    }
}
