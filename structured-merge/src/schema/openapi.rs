//! OpenAPI definitions, of version 2 or 3, as a schema (`k8s.io/kube-openapi/pkg/schemaconv`).

use std::collections::HashMap;

use serde_json::{Map as Members, Value};

use super::{Atom, Field, List, Map, Relation, Scalar, Schema, SchemaError, TypeId};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Anything, as one value.
const UNTYPED: TypeId = TypeId(0);
/// Anything, whose maps are granular.
const DEDUCED: TypeId = TypeId(1);

impl Schema {
    /// Reads definitions by name.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn from_openapi(definitions: &Members<String, Value>) -> Result<Self, SchemaError> {
        let mut reader = Reader {
            atoms: vec![anything(true), anything(false)],
            by_name: HashMap::new(),
            atomic: HashMap::new(),
            preserve: false,
            name: String::new(),
        };
        // Places first, so that definitions may refer to each other.
        for name in definitions.keys() {
            let id = reader.add(Atom::default());
            reader.by_name.insert(name.as_str().into(), id);
        }
        for (name, schema) in definitions {
            reader.name.clone_from(name);
            reader.preserve = false;
            let atom = match name.as_str() {
                QUANTITY => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
                RAW_EXTENSION => anything(true),
                // In version 3, which servers type objects by, it is of no one type.
                INT_OR_STRING => reader.atom(&Value::Object(Members::new()))?,
                _ => reader.atom(schema)?,
            };
            let id = reader.by_name[name.as_str()];
            reader.atoms[id.0] = atom;
        }
        reader.finish()
    }
}

/// A type that takes every value.
fn anything(atomic: bool) -> Atom {
    let map = Map {
        element: Some(if atomic { UNTYPED } else { DEDUCED }),
        atomic,
        deduced: !atomic,
        ..Map::default()
    };
    let list = List { element: UNTYPED, relation: Relation::Atomic };
    Atom { scalar: Some(Scalar::Untyped), list: Some(list), map: Some(map) }
}

struct Reader {
    atoms: Vec<Atom>,
    by_name: HashMap<Box<str>, TypeId>,
    /// References that say how the type they refer to is taken: to what, and whether as one value.
    atomic: HashMap<(TypeId, bool), TypeId>,
    /// `x-kubernetes-preserve-unknown-fields`, which what is inside inherits.
    preserve: bool,
    name: String,
}

impl Reader {
    fn add(&mut self, atom: Atom) -> TypeId {
        self.atoms.push(atom);
        TypeId(self.atoms.len() - 1)
    }

    /// Fills in the types that references made of others.
    fn finish(mut self) -> Result<Schema, SchemaError> {
        for ((of, atomic), id) in std::mem::take(&mut self.atomic) {
            let mut atom = self.atoms[of.0].clone();
            match (&mut atom.map, &mut atom.list) {
                (Some(map), _) => map.atomic = atomic,
                (None, Some(list)) if atomic => list.relation = Relation::Atomic,
                _ => return Err(self.wrong("a map type for what is no map")),
            }
            self.atoms[id.0] = atom;
        }
        Ok(Schema { atoms: self.atoms, by_name: self.by_name })
    }

    fn wrong(&self, why: &str) -> SchemaError {
        SchemaError::Wrong(self.name.clone(), why.to_owned())
    }

    /// A schema that stands in its place.
    fn atom(&mut self, schema: &Value) -> Result<Atom, SchemaError> {
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            self.preserve = true;
        }
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        Ok(match schema["type"].as_str() {
            None => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema)?),
                map: Some(self.map(schema)?),
            },
            Some("object") => Atom { map: Some(self.map(schema)?), ..Atom::default() },
            Some("array") => Atom { list: Some(self.list(schema)?), ..Atom::default() },
            Some("integer" | "number") => scalar(Scalar::Numeric),
            Some("boolean") => scalar(Scalar::Boolean),
            Some("string") => match schema["format"].as_str() {
                None | Some("" | "byte") => scalar(Scalar::String),
                Some(_) => scalar(Scalar::Untyped),
            },
            Some(other) => return Err(self.wrong(&format!("unrecognized type: '{other}'"))),
        })
    }

    /// A schema that is a reference, or stands in its place.
    fn type_of(&mut self, schema: &Value) -> Result<TypeId, SchemaError> {
        let alone = match schema["allOf"].as_array().map(Vec::as_slice) {
            Some([one]) => one["$ref"].as_str(),
            _ => None,
        };
        if let Some(reference) = schema["$ref"].as_str().or(alone) {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            let id = *self.by_name.get(name).ok_or_else(|| SchemaError::Missing(name.to_owned()))?;
            return match self.map_type(schema)? {
                None => Ok(id),
                Some(atomic) => Ok(match self.atomic.get(&(id, atomic)) {
                    Some(made) => *made,
                    None => {
                        let made = self.add(Atom::default());
                        self.atomic.insert((id, atomic), made);
                        made
                    }
                }),
            };
        }
        // What is said inside does not hold outside.
        let outside = self.preserve;
        let atom = self.atom(schema)?;
        self.preserve = outside;
        Ok(self.add(atom))
    }

    fn map(&mut self, schema: &Value) -> Result<Map, SchemaError> {
        let mut map = Map { atomic: self.map_type(schema)? == Some(true), ..Map::default() };
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            let default = property.get("default").filter(|default| !default.is_null()).cloned();
            let field = Field { r#type: self.type_of(property)?, default };
            map.fields.insert(name.as_str().into(), field);
        }
        let named = !map.fields.is_empty();
        map.element = match &schema["additionalProperties"] {
            Value::Null if self.preserve || !named => Some(DEDUCED),
            Value::Bool(true) => Some(DEDUCED),
            Value::Null | Value::Bool(false) => None,
            values => Some(self.type_of(values)?),
        };
        map.deduced = !named
            && map.element.is_some_and(|element| {
                let named = self.by_name.values().any(|id| *id == element);
                element == DEDUCED || (!named && self.atoms[element.0].scalar == Some(Scalar::Untyped))
            });
        Ok(map)
    }

    fn list(&mut self, schema: &Value) -> Result<List, SchemaError> {
        let relation = self.relation(schema)?;
        let element = match &schema["items"] {
            Value::Null if schema["type"].is_string() => {
                return Err(self.wrong("`items` must be specified on arrays"));
            }
            Value::Null => UNTYPED,
            items => self.type_of(items)?,
        };
        Ok(List { element, relation })
    }

    fn relation(&self, schema: &Value) -> Result<Relation, SchemaError> {
        let strings = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|key| key.as_str().map(str::to_owned)).collect()
        };
        let list_type = &schema["x-kubernetes-list-type"];
        if !list_type.is_null() {
            return match list_type.as_str() {
                Some("atomic") => Ok(Relation::Atomic),
                Some("set") => Ok(Relation::Set),
                Some("map") => strings(&schema["x-kubernetes-list-map-keys"])
                    .map(Relation::Keyed)
                    .ok_or_else(|| self.wrong("missing map keys")),
                _ => Err(self.wrong(&format!("unknown list type {list_type}"))),
            };
        }
        let strategy = &schema["x-kubernetes-patch-strategy"];
        match strategy.as_str() {
            None if strategy.is_null() => Ok(Relation::Atomic),
            Some("merge" | "merge,retainKeys") => {
                let key = schema["x-kubernetes-patch-merge-key"].as_str();
                Ok(key.map_or(Relation::Set, |key| Relation::Keyed(vec![key.to_owned()])))
            }
            Some("retainKeys") => Ok(Relation::Atomic),
            _ => Err(self.wrong(&format!("unknown patch strategy {strategy}"))),
        }
    }

    fn map_type(&self, schema: &Value) -> Result<Option<bool>, SchemaError> {
        let map_type = &schema["x-kubernetes-map-type"];
        match map_type.as_str() {
            None if map_type.is_null() => Ok(None),
            Some("atomic") => Ok(Some(true)),
            Some("granular") => Ok(Some(false)),
            _ => Err(self.wrong(&format!("unknown map type {map_type}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(definitions: &Value) -> Result<Schema, SchemaError> {
        Schema::from_openapi(definitions.as_object().unwrap())
    }

    fn field(schema: &Schema, of: &str, name: &str) -> Atom {
        let map = schema.atom(schema.named(of).unwrap()).map.clone().unwrap();
        schema.atom(map.fields[name].r#type).clone()
    }

    #[test]
    fn extensions_say_how_parts_belong_together() {
        let schema = read(&json!({"A": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "keyed": {"type": "array", "items": {"$ref": "#/definitions/B"}, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["x", "y"]},
            "merged": {"type": "array", "items": {"$ref": "#/definitions/B"},
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "x"},
            "one": {"$ref": "#/definitions/B", "x-kubernetes-map-type": "atomic"},
            "wrapped": {"allOf": [{"$ref": "#/components/schemas/B"}], "default": {}},
            "any": {"type": "object"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "time": {"type": "string", "format": "date-time"},
        }}, "B": {"type": "object", "properties": {"x": {"type": "string", "default": ""}}}}))
        .unwrap();
        let relation = |name| field(&schema, "A", name).list.unwrap().relation;
        assert_eq!(relation("list"), Relation::Atomic);
        assert_eq!(relation("set"), Relation::Set);
        assert_eq!(relation("keyed"), Relation::Keyed(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(relation("merged"), Relation::Keyed(vec!["x".to_owned()]));
        let map = |name| field(&schema, "A", name).map.unwrap();
        assert!(map("one").atomic && !map("wrapped").atomic);
        assert_eq!(map("wrapped").fields["x"].default, Some(json!("")));
        assert!(map("any").deduced && !map("labels").deduced);
        assert_eq!(field(&schema, "A", "time").scalar, Some(Scalar::Untyped));
        assert_eq!(map("wrapped").element, None);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for wrong in [
            json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/Z"}}}),
            json!({"type": "array"}),
            json!({"type": "sphere"}),
            json!({"type": "object", "x-kubernetes-map-type": "odd"}),
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "odd"}),
            json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"}),
        ] {
            assert!(read(&json!({ "A": wrong })).is_err(), "{wrong}");
        }
    }
}
