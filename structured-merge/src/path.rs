//! Path elements: how a field, or an item of a list, is named.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::value;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// `f:NAME`: a field of a struct or a key of a map.
    Field(Arc<str>),
    /// `k:{"name":"x"}`: the item of a list whose key fields have these values; sorted by name.
    Key(Arc<[(String, Value)]>),
    /// `v:"x"`: the item of a set.
    Value(Arc<Value>),
    /// `i:0`: the item at a place.
    Index(i64),
}

/// Why a text is no path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ElementError(String);

impl PathElement {
    /// A field.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// An item by the values of its key fields.
    #[must_use]
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    /// Reads the form that FieldsV1 has; `None` for a kind of element that is not known.
    ///
    /// # Errors
    /// [`ElementError`] for a known kind with a wrong content.
    pub fn parse(text: &str) -> Result<Option<Self>, ElementError> {
        let bad = |why: &dyn fmt::Display| ElementError(why.to_string());
        if text.len() < 2 {
            return Err(bad(&"key must be 2 characters long:"));
        }
        let Some((kind, content)) = text.split_at_checked(2).filter(|(kind, _)| kind.ends_with(':')) else {
            return Err(bad(&format_args!("missing colon: {text}")));
        };
        Ok(Some(match kind {
            "f:" => Self::field(content),
            "v:" => Self::Value(Arc::new(floats(serde_json::from_str(content).map_err(|e| bad(&e))?))),
            "k:" => {
                let fields: Map<String, Value> = serde_json::from_str(content).map_err(|e| bad(&e))?;
                Self::key(fields.into_iter().map(|(name, value)| (name, floats(value))).collect())
            }
            "i:" => Self::Index(content.parse().map_err(|e| bad(&e))?),
            _ => return Ok(None),
        }))
    }

    /// The form that FieldsV1 has.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value::json(value)))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", value::json(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// Whole numbers stay what they are; they are compared by value, and printed without a fraction.
fn floats(value: Value) -> Value {
    match &value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "checked: it is whole and small")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                (float as i64).into()
            }
            _ => value,
        },
        _ => value,
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let mut pairs = a
                    .iter()
                    .zip(b.iter())
                    .map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::compare(&a.1, &b.1)));
                pairs.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => value::compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// The form that people read: `.spec`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", value::text(value))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", value::text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path, printed for people.
#[must_use]
pub fn display(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_every_kind() {
        for text in
            ["f:", "f:a.b/c", r#"k:{"kind":"Service","name":"x"}"#, r#"v:"x""#, "v:1", "v:null", "i:-3"]
        {
            assert_eq!(PathElement::parse(text).unwrap().unwrap().encode(), text);
        }
        let escaped = PathElement::parse(r#"v:"a<b""#).unwrap().unwrap();
        assert_eq!(escaped.encode(), r#"v:"a\u003cb""#);
        assert_eq!(
            PathElement::parse(r#"k:{"b":1.0,"a":true}"#).unwrap().unwrap().to_string(),
            "[a=true,b=1]"
        );
        assert_eq!(PathElement::parse("x:1").unwrap(), None);
        for bad in ["", "f", "fx", "éa", "k:[]", "k:{", "v:", "i:x", "v:1 2"] {
            assert!(PathElement::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn kinds_are_ordered() {
        let texts =
            ["f:a", "f:b", r#"k:{"a":1}"#, r#"k:{"a":1,"b":1}"#, r#"k:{"a":"1"}"#, "v:1", "i:0", "i:1"];
        let elements: Vec<_> = texts.iter().map(|text| PathElement::parse(text).unwrap().unwrap()).collect();
        assert!(elements.is_sorted() && elements.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
