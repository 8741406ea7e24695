//! What the Go types say about strategic merge patches: for each field its patch strategy and its merge key. Errors are
//! those of `k8s.io/apimachinery/pkg/util/strategicpatch`, which looks types up by reflection.

use picoshift_machinery::field_error::quote;
use serde::Deserialize;

use super::{Field, Kind, Schemas};

/// The tags `patchStrategy` and `patchMergeKey` of a field; empty where there are none.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PatchTags {
    strategy: Box<str>,
    merge_key: Box<str>,
}

impl PatchTags {
    /// The strategy beside `retainKeys`: `merge`, `replace` or empty.
    pub(crate) fn strategy(&self) -> Result<&str, String> {
        const RETAIN: &str = "retainKeys";
        match self.strategy.split(',').collect::<Vec<_>>().as_slice() {
            [RETAIN] => Ok(""),
            [one] => Ok(one),
            [RETAIN, other] | [other, RETAIN] => Ok(other),
            several => Err(format!("unexpected patch strategy: [{}]", several.join(" "))),
        }
    }

    /// The field by which items of the list are known; empty where there is none.
    pub(crate) fn merge_key(&self) -> &str {
        &self.merge_key
    }
}

/// A type in the schema of what is patched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatchMeta<'s> {
    schemas: &'s Schemas,
    at: At<'s>,
    pointer: bool,
}

#[derive(Clone, Copy, Debug)]
enum At<'s> {
    Struct(usize),
    Other(&'s Kind),
}

impl Schemas {
    /// The type of a schema by its name in the OpenAPI document.
    pub(crate) fn patch_meta(&self, schema: &str) -> Option<PatchMeta<'_>> {
        let index = *self.by_name.get(schema)?;
        Some(PatchMeta { schemas: self, at: At::Struct(index), pointer: false })
    }
}

impl<'s> PatchMeta<'s> {
    /// The type of a field, and its tags.
    pub(crate) fn field(&self, name: &str) -> Result<(Self, &'s PatchTags), String> {
        let found = self.find(name)?;
        Ok((self.of(&found.r#type.kind, found.pointer), &found.patch))
    }

    /// The type of the items of a field that is a list, and the field's tags.
    pub(crate) fn items(&self, name: &str) -> Result<(Self, &'s PatchTags), String> {
        let found = self.find(name)?;
        let items = match &found.r#type.kind {
            Kind::List(element) if matches!(element.kind, Kind::List(_) | Kind::Bytes) => {
                return Err("unexpected slice of slice".to_owned());
            }
            Kind::List(element) => self.of(&element.kind, false),
            other if found.pointer => self.of(other, false),
            // It is the parent's kind that Go names.
            _ => return Err(format!("expected slice or array type, but got: {}", self.kind())),
        };
        Ok((items, &found.patch))
    }

    /// What Go calls the kind of the type.
    pub(crate) fn kind(&self) -> &'static str {
        if self.pointer { "ptr" } else { self.pointed() }
    }

    fn pointed(&self) -> &'static str {
        match self.at {
            At::Struct(_)
            | At::Other(Kind::Struct(_) | Kind::IntOrString | Kind::Quantity | Kind::Raw | Kind::Time) => {
                "struct"
            }
            At::Other(Kind::Bool) => "bool",
            At::Other(Kind::Bytes | Kind::List(_)) => "slice",
            At::Other(Kind::Float) => "float64",
            At::Other(Kind::Int32) => "int32",
            At::Other(Kind::Int64) => "int64",
            At::Other(Kind::Map(_)) => "map",
            At::Other(Kind::String) => "string",
        }
    }

    fn of(&self, kind: &'s Kind, pointer: bool) -> Self {
        let at = match kind {
            Kind::Struct(index) => At::Struct(*index),
            other => At::Other(other),
        };
        Self { at, pointer, ..*self }
    }

    fn find(&self, name: &str) -> Result<&'s Field, String> {
        let no_field = |of: &str| {
            Err(format!("unable to find api field in struct {of} for the json field {}", quote(name)))
        };
        let schemas = self.schemas;
        match self.at {
            At::Struct(index) => {
                let of = &schemas.structs[index];
                // As Go's JSON: the very name before one in other letters.
                let exact = of.fields.binary_search_by(|field| (*field.name).cmp(name)).ok();
                let found = exact.or_else(|| {
                    let folds = |field: &Field| field.name.to_lowercase() == name.to_lowercase();
                    of.fields.iter().position(folds)
                });
                found.map_or_else(|| no_field(&of.go), |at| Ok(&of.fields[at]))
            }
            // Types that read themselves have no fields that JSON knows.
            At::Other(Kind::IntOrString) => no_field("IntOrString"),
            At::Other(Kind::Quantity) => no_field("Quantity"),
            At::Other(Kind::Raw) => no_field("RawExtension"),
            At::Other(Kind::Time) => no_field("Time"),
            At::Other(_) => {
                let kind = self.pointed();
                Err(format!("merging an object in json but data type is not struct, instead is: {kind}"))
            }
        }
    }
}
