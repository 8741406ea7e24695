//! Owned fields of a kind whose schema has changed since: what has become one value is owned as a whole.

use super::Shape;
use crate::path::PathElement;
use crate::schema::{Map, Relation, Schema, TypeId};
use crate::set::FieldSet;

/// The set as the schema has it now; `None` when that is no other.
#[must_use]
pub fn reconcile(schema: &Schema, id: TypeId, set: &FieldSet) -> Option<FieldSet> {
    let mut walk = Walk { schema, path: Vec::new(), whole: FieldSet::default() };
    walk.node(id, Some(set), false);
    if walk.whole.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&walk.whole).union(&walk.whole))
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    /// What is now owned as a whole.
    whole: FieldSet,
}

impl Walk<'_> {
    /// `alone` says that the node itself is in the set, and nothing below it.
    fn node(&mut self, id: TypeId, set: Option<&FieldSet>, alone: bool) {
        match self.schema.atom(id).shape(None) {
            Some(Shape::List(list)) => {
                if list.relation == Relation::Atomic {
                    if !alone {
                        self.whole.insert(&self.path);
                    }
                } else if let Some(set) = set {
                    self.below(set, |_| Some(list.element));
                }
            }
            Some(Shape::Map(map)) if !map.deduced => {
                if map.atomic {
                    if !alone && set.is_some_and(|set| !set.is_empty()) {
                        self.whole.insert(&self.path);
                    }
                } else if let Some(set) = set {
                    self.below(set, |element| type_at(map, element));
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, set: &FieldSet, r#type: impl Fn(&PathElement) -> Option<TypeId>) {
        for (element, member) in set.elements() {
            let Some(id) = r#type(element) else { continue };
            let children = set.below(element);
            self.path.push(element.clone());
            self.node(id, children, member && children.is_none());
            self.path.pop();
        }
    }
}

fn type_at(map: &Map, element: &PathElement) -> Option<TypeId> {
    match element {
        PathElement::Field(name) => map.member(name),
        _ => map.element,
    }
}
