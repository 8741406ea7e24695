//! Every field and item that a value mentions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Shape, Typed, list};
use crate::path::PathElement;
use crate::schema::{List, Map, Relation, Schema, TypeId};
use crate::set::FieldSet;

impl Typed<'_> {
    /// The set of every leaf and item in the value.
    #[must_use]
    pub fn to_field_set(&self) -> FieldSet {
        let mut walk = Walk { schema: self.schema, path: Vec::new(), set: FieldSet::default() };
        walk.value(self.r#type, self.value);
        walk.set
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    set: FieldSet,
}

impl Walk<'_> {
    fn insert(&mut self) {
        self.set.insert(&self.path);
    }

    fn value(&mut self, id: TypeId, value: &Value) {
        let schema = self.schema;
        match (schema.atom(id).shape(Some(value)), value) {
            (Some(Shape::Scalar(_)), _) => self.insert(),
            (Some(Shape::List(list)), _) if list.relation == Relation::Atomic => self.insert(),
            (Some(Shape::Map(map)), _) if map.atomic => self.insert(),
            (Some(Shape::List(list)), Value::Array(items)) => self.items(list, items),
            (Some(Shape::Map(map)), Value::Object(members)) => self.members(map, members),
            _ => {}
        }
    }

    fn items(&mut self, list: &List, items: &[Value]) {
        // In the order of the set, into which a long list would else go slowly.
        let mut named: BTreeMap<PathElement, (&Value, usize)> = BTreeMap::new();
        for item in items {
            let Ok(name) = list::name_of(self.schema, list, item) else { continue };
            named.entry(name).or_insert((item, 0)).1 += 1;
        }
        for (name, (item, count)) in named {
            self.path.push(name);
            // Of items with one name only that they are there is known.
            if count == 1 {
                self.value(list.element, item);
            }
            self.insert();
            self.path.pop();
        }
    }

    fn members(&mut self, map: &Map, members: &serde_json::Map<String, Value>) {
        for (name, member) in members {
            self.path.push(PathElement::field(name));
            if let Some(r#type) = map.member(name) {
                self.value(r#type, member);
            }
            let empty = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
            if empty || !map.fields.contains_key(name.as_str()) {
                self.insert();
            }
            self.path.pop();
        }
    }
}
