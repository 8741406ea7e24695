//! What differs between two values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::{no_form, scalar};
use super::{Shape, Typed, ValidationErrors, is_bare, list};
use crate::path::PathElement;
use crate::schema::{List, Map, Relation, Schema, TypeId};
use crate::set::FieldSet;
use crate::value;

/// What the right value has other than the left one. No field is in more than one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What only the left one has.
    pub removed: FieldSet,
    /// What both have, but not the same.
    pub modified: FieldSet,
    /// What only the right one has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Leaves fields out, with all that is in them.
    #[must_use]
    pub fn without(self, fields: Option<&FieldSet>) -> Self {
        let Some(fields) = fields else { return self };
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

impl Typed<'_> {
    /// Compares with another value of the same type.
    ///
    /// # Errors
    /// What is wrong with the values.
    pub fn compare(&self, right: &Typed<'_>) -> Result<Comparison, ValidationErrors> {
        let mut walk = Walk { schema: self.schema, path: Vec::new(), found: Comparison::default() };
        walk.value(self.r#type, Some(self.value), Some(right.value))?;
        Ok(walk.found)
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    found: Comparison,
}

/// Whether what was compared is one value.
#[derive(PartialEq)]
enum Visited {
    Leaf,
    Parts,
}

impl Walk<'_> {
    /// At least one of the values is there.
    fn value(
        &mut self,
        id: TypeId,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<(), ValidationErrors> {
        let atom = self.schema.atom(id);
        let visited = match (left, right) {
            (Some(a), Some(b)) if !atom.same_shape(a, b) => {
                let first = self.shape(atom.shape(left), left, right);
                let second = self.shape(atom.shape(right), left, right);
                first.and(second)?
            }
            (_, Some(_)) => self.shape(atom.shape(right), left, right)?,
            (_, None) => self.shape(atom.shape(left), left, right)?,
        };
        if visited == Visited::Parts {
            if left.is_none() {
                self.found.added.insert(&self.path);
            } else if right.is_none() {
                self.found.removed.insert(&self.path);
            }
        }
        Ok(())
    }

    fn shape(
        &mut self,
        shape: Option<Shape<'_>>,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<Visited, ValidationErrors> {
        match shape.ok_or_else(no_form)? {
            Shape::Scalar(kind) => {
                let sides = [(left, "lhs: "), (right, "rhs: ")]
                    .map(|(value, side)| value.map_or(Ok(()), |value| scalar(kind, value, side)));
                if let [Err(mut first), second @ Err(_)] = sides {
                    first.add(second);
                    return Err(first);
                }
                Ok(self.leaf(left, right))
            }
            Shape::List(list) => {
                if list.relation == Relation::Atomic || bare_lists(left, right) {
                    return Ok(self.leaf(left, right));
                }
                self.items(list, left, right)?;
                Ok(Visited::Parts)
            }
            Shape::Map(map) => {
                if map.atomic || bare_maps(left, right) {
                    return Ok(self.leaf(left, right));
                }
                self.members(map, left, right)?;
                Ok(Visited::Parts)
            }
        }
    }

    fn leaf(&mut self, left: Option<&Value>, right: Option<&Value>) -> Visited {
        match (left, right) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(a), Some(b)) if value::equal(a, b) => {}
            _ => self.found.modified.insert(&self.path),
        }
        Visited::Leaf
    }

    fn members(
        &mut self,
        map: &Map,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<(), ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let (left, right) = (value::members(left), value::members(right));
        for name in value::names(left, right) {
            let (a, b) = (left.and_then(|map| map.get(name)), right.and_then(|map| map.get(name)));
            errors.add(self.member(map, name, a, b));
        }
        errors.result()
    }

    fn member(
        &mut self,
        map: &Map,
        name: &str,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<(), ValidationErrors> {
        let element = PathElement::field(name);
        match map.member(name) {
            Some(r#type) => self.below(element, r#type, left, right),
            None => Err(no_form().below(&element)),
        }
    }

    fn below(
        &mut self,
        element: PathElement,
        id: TypeId,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<(), ValidationErrors> {
        self.path.push(element);
        let result = self.value(id, left, right);
        let element = self.path.pop();
        result.map_err(|errors| match &element {
            Some(element) => errors.below(element),
            None => errors,
        })
    }

    fn items(
        &mut self,
        list: &List,
        left: Option<&Value>,
        right: Option<&Value>,
    ) -> Result<(), ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let mut named: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, value) in [left, right].into_iter().enumerate() {
            for (at, item) in value.and_then(Value::as_array).into_iter().flatten().enumerate() {
                match list::name_of(self.schema, list, item) {
                    Ok(name) => named.entry(name).or_default()[side].push(item),
                    Err(why) => errors.add(Err(ValidationErrors::one(format!("element {at}: {why}")))),
                }
            }
        }
        for (name, [left, right]) in named {
            errors.add(self.same_name(list, name, &left, &right));
        }
        errors.result()
    }

    /// Compares the items of one name, of which there can be several in what is stored.
    fn same_name(
        &mut self,
        list: &List,
        name: PathElement,
        left: &[&Value],
        right: &[&Value],
    ) -> Result<(), ValidationErrors> {
        let mut path = self.path.clone();
        path.push(name.clone());
        match (left, right) {
            ([] | [_], [] | [_]) => {
                self.below(name, list.element, left.first().copied(), right.first().copied())
            }
            ([_, _, ..], [_, _, ..]) => {
                let same =
                    left.len() == right.len() && left.iter().zip(right).all(|(a, b)| value::equal(a, b));
                if !same {
                    self.found.modified.insert(&path);
                }
                Ok(())
            }
            ([_, _, ..], _) => {
                let result = match right.first() {
                    Some(right) => self.below(name, list.element, None, Some(right)),
                    None => Ok(()),
                };
                self.found.removed.insert(&path);
                result
            }
            (_, _) => {
                let result = match left.first() {
                    Some(left) => self.below(name, list.element, Some(left), None),
                    None => Ok(()),
                };
                self.found.added.insert(&path);
                result
            }
        }
    }
}

/// Whether neither value is a list with items: then the difference between null and empty counts.
pub(super) fn bare_lists(left: Option<&Value>, right: Option<&Value>) -> bool {
    [left, right].iter().all(|value| !value.is_some_and(Value::is_array) || is_bare(*value))
}

/// As [`bare_lists`], for maps.
pub(super) fn bare_maps(left: Option<&Value>, right: Option<&Value>) -> bool {
    [left, right].iter().all(|value| !value.is_some_and(Value::is_object) || is_bare(*value))
}
