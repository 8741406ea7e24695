//! Takes fields and items out of a value.

use serde_json::{Map as Members, Value};

use super::{Shape, Typed, list};
use crate::path::PathElement;
use crate::schema::{Relation, Schema, TypeId};
use crate::set::FieldSet;

impl Typed<'_> {
    /// The value without the fields and items of a set; null where nothing is left.
    #[must_use]
    pub fn remove(&self, fields: &FieldSet) -> Value {
        remove(self.schema, self.r#type, self.value, fields)
    }
}

fn remove(schema: &Schema, id: TypeId, value: &Value, fields: &FieldSet) -> Value {
    match (schema.atom(id).shape(Some(value)), value) {
        (Some(Shape::Scalar(_)), value) => value.clone(),
        (Some(Shape::List(list)), Value::Array(items)) if list.relation != Relation::Atomic => {
            let mut left = Vec::with_capacity(items.len());
            for item in items {
                let Ok(name) = list::name_of(schema, list, item) else {
                    left.push(item.clone());
                    continue;
                };
                if !fields.has_member(&name) {
                    left.push(part(schema, list.element, item, fields.below(&name)));
                }
            }
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (Some(Shape::Map(map)), Value::Object(members)) if !map.atomic => {
            let mut left = Members::new();
            for (key, member) in members {
                let name = PathElement::field(key);
                if fields.has_member(&name) {
                    continue;
                }
                let kept = match map.member(key) {
                    Some(r#type) => part(schema, r#type, member, fields.below(&name)),
                    None => member.clone(),
                };
                left.insert(key.clone(), kept);
            }
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        _ => Value::Null,
    }
}

fn part(schema: &Schema, id: TypeId, value: &Value, fields: Option<&FieldSet>) -> Value {
    match fields {
        Some(fields) => remove(schema, id, value, fields),
        None => value.clone(),
    }
}
