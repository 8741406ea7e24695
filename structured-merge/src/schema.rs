//! Schemas: which values are structs, maps, lists and scalars, and how their parts belong together.

mod openapi;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// A type of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(crate) usize);

/// What values of a type may be; more than one where the type says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Atom {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<List>,
    pub(crate) map: Option<Map>,
}

/// Scalars that a type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Boolean,
    Numeric,
    String,
    Untyped,
}

/// A list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) element: TypeId,
    pub(crate) relation: Relation,
}

/// How the items of a list belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// They are one value.
    Atomic,
    /// Each is named by these fields, and has its own owners.
    Keyed(Vec<String>),
    /// Each is named by itself.
    Set,
}

/// A struct, a map, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Map {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// Type of what is not among the fields; `None` where nothing else may be.
    pub(crate) element: Option<TypeId>,
    /// Whether it is one value.
    pub(crate) atomic: bool,
    /// Whether it holds anything, by no schema.
    pub(crate) deduced: bool,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) r#type: TypeId,
    /// The value that stands for an absent one in the key of a list's item.
    pub(crate) default: Option<Value>,
}

/// Types by name.
#[derive(Debug)]
pub struct Schema {
    atoms: Vec<Atom>,
    by_name: HashMap<Box<str>, TypeId>,
}

/// Why OpenAPI definitions are no schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A reference to nothing.
    #[error("there is no definition {0}")]
    Missing(String),
    /// An extension with an unknown value, an array without items.
    #[error("{0}: {1}")]
    Wrong(String, String),
}

impl Schema {
    /// The type of a definition, by its name in the OpenAPI document.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id.0]
    }
}
