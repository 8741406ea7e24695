//! Label selectors: `a=b, c!=d, e in (f, g), h notin (i), j, !k, l>3`.

use super::SelectorError;

/// What a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `!key`.
    DoesNotExist,
    /// `key`.
    Exists,
    /// `key>n`.
    GreaterThan,
    /// `key=v`, `key==v`, `key in (…)`.
    In,
    /// `key<n`.
    LessThan,
    /// `key!=v`, `key notin (…)`: also true where the key is missing.
    NotIn,
}

/// One term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// The values; empty for Exists and DoesNotExist.
    pub values: Vec<String>,
}

/// A conjunction of terms; empty selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The terms, in the order given.
    pub requirements: Vec<LabelRequirement>,
}

impl LabelSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// With upstream's text when the syntax, a key or a value is wrong.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::Parser::new(text).selector().map(|requirements| Self { requirements })
    }

    /// Whether all is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels, looked up by key, satisfy all terms.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.matches(lookup(&r.key)))
    }
}

impl LabelRequirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|w| w == v);
        match self.operator {
            Operator::DoesNotExist => value.is_none(),
            Operator::Exists => value.is_some(),
            Operator::GreaterThan => self.compare(value, |have, limit| have > limit),
            Operator::In => value.is_some_and(listed),
            Operator::LessThan => self.compare(value, |have, limit| have < limit),
            Operator::NotIn => !value.is_some_and(listed),
        }
    }

    fn compare(&self, value: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
        let number = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
        match (number(value), number(self.values.first().map(String::as_str))) {
            (Some(have), Some(limit)) => holds(have, limit),
            _ => false,
        }
    }
}

#[path = "label_parse.rs"]
mod parse;
