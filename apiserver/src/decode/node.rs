//! [`Node`]: a parsed document before it is held against a schema. Unlike a JSON value it keeps members that appear
//! twice, the order of members, and numbers as they were written.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::strict::StrictErrors;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(Box<str>),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object; a name may appear more than once.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// What Go's decoder calls the value in its errors.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// The value without a schema: the last of members with one name wins. A number that no float can hold is null.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => b.into(),
            Self::Number(text) => number(&text).map_or(Value::Null, Value::Number),
            Self::Text(text) => text.into(),
            Self::List(list) => list.into_iter().map(Self::into_value).collect(),
            Self::Map(members) => {
                Value::Object(members.into_iter().map(|(k, v)| (k, v.into_value())).collect::<Map<_, _>>())
            }
        }
    }

    /// `duplicate field "path"` for members that appear twice, at any depth.
    #[must_use]
    pub fn duplicates(&self) -> Vec<String> {
        let mut errors = StrictErrors::default();
        self.find_duplicates(&mut errors);
        errors.into_found()
    }

    fn find_duplicates(&self, errors: &mut StrictErrors) {
        if errors.is_full() {
            return;
        }
        match self {
            Self::List(list) => {
                for (at, item) in list.iter().enumerate() {
                    let length = errors.enter_item(at);
                    item.find_duplicates(errors);
                    errors.leave(length);
                }
            }
            Self::Map(members) => {
                let mut seen = HashMap::new();
                for (name, value) in members {
                    let times = seen.entry(name.as_str()).or_insert(0_usize);
                    *times += 1;
                    if *times == 2 {
                        errors.add("duplicate field", name);
                    }
                    let length = errors.enter_name(name);
                    value.find_duplicates(errors);
                    errors.leave(length);
                }
            }
            _ => {}
        }
    }
}

/// A number as Go keeps it in an untyped value: an integer where it is one that fits, else a float.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Number(n) => Self::Number(n.to_string().into()),
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(map.into_iter().map(|(k, v)| (k, v.into())).collect()),
        }
    }
}
