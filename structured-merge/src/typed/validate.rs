//! Whether a value fits its type.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::{Duplicates, Shape, list};
use crate::path::PathElement;
use crate::schema::{List, Map, Relation, Scalar, Schema, TypeId};
use crate::value;

/// Errors beyond these are not told.
const MOST: usize = 100;
/// Nor are those beyond so many bytes: one long name can stand in the paths of all of them. The first always is.
const MOST_BYTES: usize = 1 << 20;

/// Where and why values do not fit their types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<(String, String)>);

impl std::error::Error for ValidationErrors {}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(path, why): &(String, String)| match path.as_str() {
            "" => why.clone(),
            path => format!("{path}: {why}"),
        };
        if let [one] = self.0.as_slice() {
            return f.write_str(&line(one));
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {}", line(error)))
    }
}

impl ValidationErrors {
    pub(super) fn one(why: impl Into<String>) -> Self {
        Self(vec![(String::new(), why.into())])
    }

    pub(super) fn below(mut self, element: &dyn fmt::Display) -> Self {
        let prefix = element.to_string();
        let fits = self.fitting(prefix.len());
        self.0.truncate(fits);
        self.0.iter_mut().for_each(|(path, _)| path.insert_str(0, &prefix));
        self
    }

    /// How many of the errors are told, when each becomes longer by `more` bytes.
    fn fitting(&self, more: usize) -> usize {
        let mut bytes = 0;
        let fits = |(path, why): &&(String, String)| {
            let before = bytes;
            bytes += path.len() + why.len() + more;
            before == 0 || bytes <= MOST_BYTES
        };
        self.0.iter().take(MOST).take_while(fits).count()
    }

    pub(super) fn add(&mut self, result: Result<(), Self>) {
        if let Err(errors) = result {
            // Nothing is added to what is full, so that there is never much more to count than what is told.
            if self.0.len() < MOST {
                self.0.extend(errors.0);
                let fits = self.fitting(0);
                self.0.truncate(fits);
            }
        }
    }

    pub(super) fn result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

pub(super) fn validate(
    schema: &Schema,
    id: TypeId,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    match schema.atom(id).shape(Some(value)) {
        None => Err(no_form()),
        Some(Shape::Scalar(kind)) => scalar(kind, value, ""),
        Some(Shape::List(list)) => items(schema, list, value, duplicates),
        Some(Shape::Map(map)) => members(schema, map, value, duplicates),
    }
}

/// The error about a type that no value fits; a schema that was read has none.
pub(super) fn no_form() -> ValidationErrors {
    ValidationErrors::one("schema error: invalid atom: inlined")
}

/// Whether a scalar is of the kind. `side` opens the text of an error.
pub(super) fn scalar(kind: Scalar, value: &Value, side: &str) -> Result<(), ValidationErrors> {
    let fits = match kind {
        Scalar::Numeric => value.is_number(),
        Scalar::String => value.is_string(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::Untyped => !value.is_array() && !value.is_object(),
    };
    if fits || value.is_null() {
        return Ok(());
    }
    let why = match kind {
        Scalar::Numeric => format!("expected numeric (int or float), got {}", value::type_name(value)),
        Scalar::String => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", value::syntax(value))
        }
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", value::plain(value)),
        Scalar::Untyped => format!("expected any scalar, got &{{{}}}", value::plain(value)),
    };
    Err(ValidationErrors::one(format!("{side}{why}")))
}

fn items(
    schema: &Schema,
    list: &List,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let values = match value {
        Value::Array(values) => values,
        Value::Null => return Ok(()),
        other => {
            let why = format!("expected list, got &{{{}}}", value::plain(other));
            return Err(ValidationErrors::one(why));
        }
    };
    let mut errors = ValidationErrors::default();
    let mut seen = BTreeSet::new();
    for (at, item) in values.iter().enumerate() {
        let name = if list.relation == Relation::Atomic {
            PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX))
        } else {
            match list::name_of(schema, list, item) {
                Ok(name) => name,
                Err(why) => {
                    errors.add(Err(ValidationErrors::one(format!("element {at}: {why}"))));
                    return Err(errors);
                }
            }
        };
        errors.add(validate(schema, list.element, item, duplicates).map_err(|error| error.below(&name)));
        if list.relation != Relation::Atomic {
            let shown = (duplicates == Duplicates::Refused).then(|| name.to_string());
            if !seen.insert(name)
                && let Some(shown) = shown
            {
                errors.add(Err(ValidationErrors::one(format!("duplicate entries for key {shown}"))));
            }
        }
    }
    errors.result()
}

fn members(
    schema: &Schema,
    map: &Map,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let values = match value {
        Value::Object(values) => values,
        Value::Null => return Ok(()),
        other => {
            let why = format!("expected map, got &{{{}}}", value::plain(other));
            return Err(ValidationErrors::one(why));
        }
    };
    let mut errors = ValidationErrors::default();
    for (name, member) in values {
        let below = format_args!(".{name}").to_string();
        let Some(r#type) = map.member(name) else {
            errors.add(Err(ValidationErrors::one("field not declared in schema").below(&below)));
            break;
        };
        errors.add(validate(schema, r#type, member, duplicates).map_err(|error| error.below(&below)));
    }
    errors.result()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_below_a_long_name_are_told_within_bounds() {
        let long = "x".repeat(1_500_000);
        let mut errors = ValidationErrors::default();
        for _ in 0..100_000 {
            errors.add(Err(ValidationErrors::one("wrong").below(&".a")));
        }
        assert_eq!(errors.0.len(), MOST);
        let errors = errors.below(&long);
        assert_eq!(errors.to_string(), format!("{long}.a: wrong"));

        let mut errors = ValidationErrors::default();
        for _ in 0..1000 {
            errors.add(Err(ValidationErrors::one("y".repeat(100_000))));
        }
        assert_eq!(errors.0.len(), MOST_BYTES / 100_000);
    }
}
