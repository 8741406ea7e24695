//! Validation errors of single fields, with the texts of `k8s.io/apimachinery/pkg/util/validation/field`.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A value that appears twice where it must be unique.
    Duplicate,
    /// A value that the caller may not set.
    Forbidden,
    /// An error that is not the caller's.
    Internal,
    /// A value with a wrong form.
    Invalid,
    /// A value out of a closed set.
    NotSupported,
    /// A value that refers to something that is not there.
    NotFound,
    /// A value that is missing.
    Required,
    /// A list with too many items.
    TooMany,
    /// A value that is longer than allowed.
    TooLong,
}

impl FieldErrorKind {
    /// The `reason` of a cause in `Status.details.causes`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::Internal => "InternalError",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::TooMany => "FieldValueTooMany",
            Self::TooLong => "FieldValueTooLong",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::Internal => "Internal error",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::TooMany => "Too many",
            Self::TooLong => "Too long",
        }
    }
}

/// One field's error.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// Path of the field, for example `spec.host`.
    pub field: String,
    /// The offending value, already as the message shows it (strings quoted); `None` where none is shown.
    pub shown: Option<String>,
    /// Explanation; may be empty.
    pub detail: String,
}

impl FieldError {
    /// A value with a wrong form: `Invalid value: "x": detail`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(show(value)), detail)
    }

    /// As [`Self::invalid`] for a string value.
    pub fn invalid_str(field: impl Into<String>, value: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(quote(value)), detail)
    }

    /// A value that must be given: `Required value: detail`.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, None, detail)
    }

    /// A value that the caller may not set: `Forbidden: detail`.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, None, detail)
    }

    /// A value out of a closed set: `Unsupported value: "x": supported values: "a", "b"` (sorted, as upstream).
    pub fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let mut sorted: Vec<&str> = supported.to_vec();
        sorted.sort_unstable();
        let list = sorted.iter().map(|s| quote(s)).collect::<Vec<_>>().join(", ");
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {list}") };
        Self::new(FieldErrorKind::NotSupported, field, Some(quote(value)), detail)
    }

    /// A value that appears twice: `Duplicate value: "x"`.
    pub fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, Some(quote(value)), "")
    }

    /// A list of more than `max` items: `Too many: N: must have at most M items`.
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let items = if max == 1 { "item" } else { "items" };
        Self::new(
            FieldErrorKind::TooMany,
            field,
            Some(actual.to_string()),
            format!("must have at most {max} {items}"),
        )
    }

    /// A value longer than `max` bytes: `Too long: may not be more than M bytes`.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} bytes"))
    }

    /// Any error.
    pub fn new(
        kind: FieldErrorKind,
        field: impl Into<String>,
        shown: Option<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.into(), shown, detail: detail.into() }
    }

    /// The message without the field: what stands in a cause.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.kind.text().to_owned();
        if let Some(shown) = &self.shown {
            text.push_str(": ");
            text.push_str(shown);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Go's `%q` for the strings that occur in messages.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x80 && c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() || unprintable(c) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Marks of format and spaces besides the common one, which Go does not print as they are.
fn unprintable(c: char) -> bool {
    matches!(c as u32,
        0xa0 | 0xad | 0x1680 | 0x180e | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xe000..=0xf8ff
            | 0xfeff | 0xfff0..=0xfffb)
}

/// A value as upstream's messages show it: strings quoted, all else as JSON.
#[must_use]
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}
