//! How the items of lists are named.

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{List, Relation, Schema};

/// The name of an item of a list whose items have names.
///
/// # Errors
/// Why it has none, in the words of the Go library.
pub(super) fn name_of(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    match &list.relation {
        Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Relation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(PathElement::Value(scalar.clone().into())),
        },
        Relation::Keyed(keys) => keyed(schema, list, keys, item),
    }
}

fn keyed(schema: &Schema, list: &List, keys: &[String], item: &Value) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = map.get(key) {
            fields.push((key.clone(), value.clone()));
            continue;
        }
        let Some(r#struct) = &schema.atom(list.element).map else {
            let why = "associative list may not have non-map types";
            return Err(format!("couldn't find default value for {key}: {why}"));
        };
        if let Some(default) = r#struct.fields.get(key.as_str()).and_then(|field| field.default.as_ref()) {
            fields.push((key.clone(), default.clone()));
        }
    }
    if fields.is_empty() && !keys.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| picoshift_machinery::field_error::quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::key(fields))
}
