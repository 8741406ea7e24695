//! Field selectors: `metadata.name=x,spec.host!=y`, with backslash escapes.

use super::SelectorError;

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Dotted path, for example `spec.host`.
    pub field: String,
    /// The value.
    pub value: String,
    /// Whether the term is `!=`.
    pub negated: bool,
}

/// A conjunction of terms; empty selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms, in the order given.
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// When a term has no operator or a value has a bad escape.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for term in split_unescaped(text, ',') {
            if term.is_empty() {
                continue;
            }
            let (field, value, negated) = split_term(term).ok_or_else(|| {
                SelectorError(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            requirements.push(FieldRequirement { field: field.to_owned(), value: unescape(value)?, negated });
        }
        // A term with nothing on either side selects all.
        requirements.retain(|term: &FieldRequirement| !(term.field.is_empty() && term.value.is_empty()));
        Ok(Self { requirements })
    }

    /// Whether all is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The value that `field` must have, when exactly one term requires it by equality.
    #[must_use]
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.requirements.iter().find(|r| r.field == field && !r.negated).map(|r| r.value.as_str())
    }

    /// Whether the values that `lookup` gives satisfy all terms; `None` counts as the empty text.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| (lookup(&r.field).unwrap_or("") == r.value) != r.negated)
    }
}

fn split_unescaped(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == separator {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The first operator splits: `!=`, `==` or `=`.
fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    for (at, _) in term.char_indices() {
        let rest = &term[at..];
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..at], value, negated));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(other) => {
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    )));
                }
                None => {
                    return Err(SelectorError("invalid field selector: invalid escape sequence: \\".into()));
                }
            },
            '=' => {
                // The real server shows the character's number.
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from('=')
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
