//! Values with their types: what is in them, what differs between two, what two make together.

mod compare;
mod list;
mod merge;
mod reconcile;
mod remove;
mod to_field_set;
mod validate;

use serde_json::Value;

pub use self::compare::Comparison;
pub use self::reconcile::reconcile;
pub use self::validate::ValidationErrors;
use crate::schema::{Atom, List, Map, Scalar, Schema, TypeId};

/// A value that fits its type.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) r#type: TypeId,
    pub(crate) value: &'a Value,
}

/// Whether an item may appear twice in a set or in a list with keys: in what is stored, but not in what is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may.
    Allowed,
    /// They may not.
    Refused,
}

impl<'a> Typed<'a> {
    /// Holds a value against its type.
    ///
    /// # Errors
    /// What does not fit, in the words of the Go library.
    pub fn new(
        schema: &'a Schema,
        r#type: TypeId,
        value: &'a Value,
        duplicates: Duplicates,
    ) -> Result<Self, ValidationErrors> {
        validate::validate(schema, r#type, value, duplicates)?;
        Ok(Self { schema, r#type, value })
    }

    /// Another value of the type, made by the operations here.
    pub(crate) fn with<'b>(&self, value: &'b Value) -> Typed<'b>
    where
        'a: 'b,
    {
        Typed { schema: self.schema, r#type: self.r#type, value }
    }
}

/// How a value of a type is looked at.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    List(&'a List),
    Map(&'a Map),
    Scalar(Scalar),
}

impl Atom {
    /// Which of the type's forms a value takes; where it takes none, and for null, the first that there is.
    pub(crate) fn shape(&self, value: Option<&Value>) -> Option<Shape<'_>> {
        let fitting = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => self.map.as_ref().map(Shape::Map),
            Some(Value::Array(_)) => self.list.as_ref().map(Shape::List),
            Some(_) => self.scalar.map(Shape::Scalar),
        };
        fitting
            .or(self.map.as_ref().map(Shape::Map))
            .or(self.scalar.map(Shape::Scalar))
            .or(self.list.as_ref().map(Shape::List))
    }

    /// Whether two values take the same forms of the type.
    pub(crate) fn same_shape(&self, left: &Value, right: &Value) -> bool {
        let forms = |value: &Value| {
            let all = (self.map.is_some(), self.scalar.is_some(), self.list.is_some());
            match value {
                Value::Object(_) if all.0 => (true, false, false),
                Value::Array(_) if all.2 => (false, false, true),
                Value::Bool(_) | Value::Number(_) | Value::String(_) if all.1 => (false, true, false),
                _ => all,
            }
        };
        forms(left) == forms(right)
    }
}

impl Map {
    /// The type of a member.
    pub(crate) fn member(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).map(|field| field.r#type).or(self.element)
    }
}

/// Whether a list or map is null, absent, of another kind, or has nothing in it.
pub(crate) fn is_bare(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What strangers send may be long; none of it may cost more than in proportion.
    #[test]
    fn long_lists_cost_what_they_are_long() {
        let schema = Schema::from_openapi(
            json!({"A": {"type": "object", "properties": {"set": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "string"}}, "any": {"type": "object"}}}})
            .as_object()
            .unwrap(),
        )
        .unwrap();
        let kind = schema.named("A").unwrap();
        let typed = |value| Typed::new(&schema, kind, value, Duplicates::Allowed).unwrap();
        let items: Vec<String> = (0..20_000).rev().map(|n| format!("{n:06}")).collect();
        let even: serde_json::Map<String, Value> =
            items.iter().step_by(2).map(|name| (name.clone(), json!({"x": {}}))).collect();
        let all: serde_json::Map<String, Value> =
            items.iter().map(|name| (name.clone(), json!({"x": {"y": 1}}))).collect();
        let left = json!({"any": even});
        let right = json!({"set": items, "any": all});
        let set = typed(&right).to_field_set();
        let changes = typed(&left).compare(&typed(&right)).unwrap();
        assert!(!changes.added.is_empty() && changes.removed.is_empty());
        let merged = typed(&left).merge(&typed(&right)).unwrap();
        assert_eq!(typed(&merged).to_field_set(), set);
        assert_eq!(typed(&merged).remove(&set), json!({"any": null, "set": null}));
    }
}
