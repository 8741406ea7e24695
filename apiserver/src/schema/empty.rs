//! How Go encodes a struct: empty fields are left out or written, as their tags say.

use serde_json::{Map, Value};

use super::{Field, Kind, Schemas, Type};

impl Schemas {
    /// Makes a decoded struct what its encoding shows. Absent fields and nulls are Go's zero values.
    pub(super) fn complete(&self, index: usize, map: &mut Map<String, Value>) {
        for field in &self.structs[index].fields {
            match map.get_mut(&*field.name) {
                None | Some(Value::Null) => {
                    if field.omit {
                        map.remove(&*field.name);
                    } else {
                        map.insert(field.name.to_string(), self.zero(field));
                    }
                }
                Some(value) => {
                    self.complete_value(&field.r#type, value);
                    if field.omit && !field.pointer && is_empty(&field.r#type, value) {
                        map.remove(&*field.name);
                    }
                }
            }
        }
    }

    fn complete_value(&self, r#type: &Type, value: &mut Value) {
        match (&r#type.kind, value) {
            (Kind::Struct(index), Value::Object(map)) => self.complete(*index, map),
            (Kind::List(element), Value::Array(list)) => {
                list.iter_mut().for_each(|item| self.complete_value(element, item));
            }
            (Kind::Map(inner), Value::Object(map)) => {
                map.values_mut().for_each(|item| self.complete_value(inner, item));
            }
            _ => {}
        }
    }

    /// The encoding of a field that was never set.
    fn zero(&self, field: &Field) -> Value {
        if field.pointer { Value::Null } else { self.zero_of(&field.r#type) }
    }

    /// The encoding of a type's zero value.
    pub(super) fn zero_of(&self, r#type: &Type) -> Value {
        match &r#type.kind {
            Kind::Bool => false.into(),
            Kind::Float | Kind::Int32 | Kind::Int64 | Kind::IntOrString => 0.into(),
            Kind::Quantity => super::quantity::ZERO.into(),
            Kind::String => "".into(),
            Kind::Struct(index) => {
                let mut map = Map::new();
                self.complete(*index, &mut map);
                Value::Object(map)
            }
            Kind::Bytes | Kind::List(_) | Kind::Map(_) | Kind::Raw | Kind::Time => Value::Null,
        }
    }
}

/// Whether Go's `omitempty` leaves a set value out.
fn is_empty(r#type: &Type, value: &Value) -> bool {
    match (&r#type.kind, value) {
        (Kind::Bool, Value::Bool(set)) => !set,
        (Kind::Float | Kind::Int32 | Kind::Int64, Value::Number(n)) => n.as_f64() == Some(0.0),
        (Kind::String | Kind::Bytes, Value::String(text)) => text.is_empty(),
        (Kind::List(_), Value::Array(list)) => list.is_empty(),
        (Kind::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}
