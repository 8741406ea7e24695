//! What a configuration makes of a value: nothing is removed, and where both say something, the configuration counts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map as Members, Value};

use super::compare::{bare_lists, bare_maps};
use super::validate::{no_form, scalar};
use super::{Shape, Typed, ValidationErrors, list};
use crate::path::PathElement;
use crate::schema::{List, Map, Relation, Schema, TypeId};
use crate::value;

impl Typed<'_> {
    /// The value with a configuration merged into it.
    ///
    /// # Errors
    /// What is wrong with the values.
    pub fn merge(&self, config: &Typed<'_>) -> Result<Value, ValidationErrors> {
        let merged = merge(self.schema, self.r#type, Some(self.value), Some(config.value))?;
        Ok(merged.unwrap_or(Value::Null))
    }
}

type Merged = Result<Option<Value>, ValidationErrors>;

fn merge(schema: &Schema, id: TypeId, left: Option<&Value>, right: Option<&Value>) -> Merged {
    let atom = schema.atom(id);
    match (left, right) {
        (Some(a), Some(b)) if !atom.same_shape(a, b) => {
            // Held against both forms; the configuration's counts.
            let first = shape(schema, atom.shape(left), left, right);
            let second = shape(schema, atom.shape(right), left, right);
            first.and(second)
        }
        (_, Some(_)) => shape(schema, atom.shape(right), left, right),
        (_, None) => shape(schema, atom.shape(left), left, right),
    }
}

fn shape(schema: &Schema, shape: Option<Shape<'_>>, left: Option<&Value>, right: Option<&Value>) -> Merged {
    let leaf = || Ok(right.or(left).cloned());
    match shape.ok_or_else(no_form)? {
        Shape::Scalar(kind) => {
            let check = |value: Option<&Value>, side| value.map_or(Ok(()), |value| scalar(kind, value, side));
            match (check(left, "lhs: "), check(right, "rhs: ")) {
                (Err(mut first), second @ Err(_)) => {
                    first.add(second);
                    Err(first)
                }
                _ => leaf(),
            }
        }
        Shape::List(list) if list.relation == Relation::Atomic || bare_lists(left, right) => leaf(),
        Shape::List(list) => items(schema, list, array(left), array(right)),
        Shape::Map(map) if map.atomic || bare_maps(left, right) => leaf(),
        Shape::Map(map) => members(schema, map, value::members(left), value::members(right)),
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn members(
    schema: &Schema,
    map: &Map,
    left: Option<&Members<String, Value>>,
    right: Option<&Members<String, Value>>,
) -> Merged {
    let mut out = Members::new();
    let mut errors = ValidationErrors::default();
    for name in value::names(left, right) {
        let (a, b) = (left.and_then(|m| m.get(name)), right.and_then(|m| m.get(name)));
        let merged = map.member(name).ok_or_else(no_form).and_then(|id| merge(schema, id, a, b));
        match merged {
            Ok(Some(value)) => {
                out.insert(name.clone(), value);
            }
            Ok(None) => {}
            Err(error) => errors.add(Err(error.below(&PathElement::field(name)))),
        }
    }
    errors.result()?;
    Ok((!out.is_empty()).then_some(Value::Object(out)))
}

/// Names and items of a list in order, and the item of each name; null where a name has several.
struct Named<'a> {
    order: Vec<(PathElement, &'a Value)>,
    items: BTreeMap<PathElement, &'a Value>,
}

const SEVERAL: &Value = &Value::Null;

fn named<'a>(
    schema: &Schema,
    list: &List,
    items: &'a [Value],
    duplicates: bool,
    errors: &mut ValidationErrors,
) -> Named<'a> {
    let mut named = Named { order: Vec::with_capacity(items.len()), items: BTreeMap::new() };
    for (at, item) in items.iter().enumerate() {
        let name = match list::name_of(schema, list, item) {
            Ok(name) => name,
            Err(why) => {
                errors.add(Err(ValidationErrors::one(format!("element {at}: {why}"))));
                continue;
            }
        };
        if named.items.contains_key(&name) {
            if !duplicates {
                errors.add(Err(ValidationErrors::one(format!("duplicate entries for key {name}"))));
                continue;
            }
            named.items.insert(name.clone(), SEVERAL);
        } else {
            named.items.insert(name.clone(), item);
        }
        named.order.push((name, item));
    }
    named
}

/// Merges lists whose items have names. Items that both have are in the configuration's order; what only the value
/// has stays as near as can be to where it was.
fn items(schema: &Schema, list: &List, left: &[Value], right: &[Value]) -> Merged {
    let mut errors = ValidationErrors::default();
    let config = named(schema, list, right, false, &mut errors);
    let live = named(schema, list, left, true, &mut errors);
    errors.result()?;

    let mut shared: VecDeque<&PathElement> =
        config.order.iter().map(|(name, _)| name).filter(|name| live.items.contains_key(name)).collect();
    let mut next = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.order.len().max(config.order.len()));
    // As upstream, what is wrong inside of an item is not told here: it was when the values got their types.
    let mut take = |a: Option<&Value>, b: Option<&Value>| {
        if let Ok(Some(value)) = merge(schema, list.element, a, b) {
            out.push(value);
        }
    };
    let (mut l, mut r) = (0, 0);
    while l < live.order.len() || r < config.order.len() {
        if let (Some((name, _)), Some((wanted, _))) = (live.order.get(l), config.order.get(r)) {
            if name == wanted {
                done.insert(name);
                take(live.items.get(name).copied(), config.items.get(name).copied());
                l += 1;
                r += 1;
                next = shared.pop_front();
                continue;
            }
            if config.items.contains_key(name) && next.is_some_and(|next| next != name) {
                // Shared, but its turn comes with another item of the configuration.
                l += 1;
                continue;
            }
        }
        if let Some((name, item)) = live.order.get(l) {
            if !config.items.contains_key(name) {
                take(Some(item), None);
                l += 1;
                continue;
            }
            if done.contains(name) {
                l += 1;
            }
        }
        if let Some((name, _)) = config.order.get(r) {
            done.insert(name);
            take(live.items.get(name).copied(), config.items.get(name).copied());
            r += 1;
            if next == Some(name) {
                next = shared.pop_front();
            }
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}
