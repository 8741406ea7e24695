//! Schemas of the served kinds: an object is decoded and encoded again as a server does that keeps Go structs.
//!
//! In: parsed documents. Out: objects with exactly the fields that the Go types have, unknown and repeated fields as
//! strict errors, wrong types as errors in Go's words. The schemas come from the build (see `build.rs`).

mod empty;
mod fill;
pub(crate) mod patch_meta;
pub mod protobuf;
mod quantity;
mod time;
mod unstructured;

use std::collections::{BTreeMap, HashMap};

use picoshift_machinery::{Object, Status};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::patch_meta::PatchTags;
use self::protobuf::{RawWireField, WireField};
use crate::decode::node::Node;
use crate::resource::Resource;

/// What the build took out of the pinned module.
static EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.json"));

/// Most objects that lists and maps of one object may hold. Each takes two bytes in a body, and a thousand times that with
/// all its empty fields; with so many, no object is small enough to be stored.
const ELEMENTS_MAX: usize = 50_000;

/// The type of every object's metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What is done about unknown and repeated fields (`fieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, with a warning each.
    #[default]
    Warn,
    /// The request fails.
    Strict,
}

/// An object that fits its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The object, as the Go type would be encoded.
    pub object: Object,
    /// `unknown field "spec.foo"`, `duplicate field "spec.host"`, each once; of a decoder at most 100.
    pub strict: Vec<String>,
}

/// Why a document does not fit its schema: the text of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub String);

/// The build's output could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is no JSON of the expected form.
    #[error("the embedded schemas cannot be read: {0}")]
    Format(#[from] serde_json::Error),
    /// Server-side apply has no use for a definition.
    #[error("the embedded schemas cannot be merged by: {0}")]
    Merge(#[from] picoshift_structured_merge::SchemaError),
    /// A field refers to a type that is not there.
    #[error("the embedded schemas do not describe {0}")]
    Missing(String),
}

/// The compiled schemas.
#[derive(Debug)]
pub struct Schemas {
    structs: Vec<Struct>,
    by_name: HashMap<Box<str>, usize>,
    /// By what objects say that they are: `route.openshift.io/v1/Route`.
    by_kind: HashMap<Box<str>, usize>,
    /// Index of the struct of every object's metadata.
    object_meta: usize,
}

/// A Go struct.
#[derive(Debug)]
struct Struct {
    /// The name without its package.
    go: Box<str>,
    /// Fields, sorted by name.
    fields: Box<[Field]>,
    /// How it is written in protobuf.
    wire: Box<[WireField]>,
}

/// A field of a Go struct.
#[derive(Debug)]
struct Field {
    name: Box<str>,
    r#type: Type,
    /// Whether it is a pointer: an empty value is told from an absent one.
    pointer: bool,
    /// Whether an empty value is not encoded.
    omit: bool,
    /// Where in the Go struct it is declared.
    position: usize,
    /// How a strategic merge patch changes it.
    patch: PatchTags,
}

/// A Go type.
#[derive(Debug)]
struct Type {
    /// As Go prints it.
    go: Box<str>,
    kind: Kind,
    /// In protobuf a list or map that is a message of its own, so that an empty one is told from an absent one.
    wrapped: bool,
}

impl Type {
    /// Whether an empty one takes memory: it counts towards [`ELEMENTS_MAX`].
    fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Struct(_)) || self.wrapped
    }
}

#[derive(Debug)]
enum Kind {
    Bool,
    Bytes,
    Float,
    Int32,
    Int64,
    IntOrString,
    List(Box<Type>),
    Map(Box<Type>),
    Quantity,
    /// Any JSON, kept as it is.
    Raw,
    String,
    /// Index into [`Schemas::structs`].
    Struct(usize),
    Time,
}

/// The form of the embedded document.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    definitions: &'a RawValue,
    structs: BTreeMap<String, RawStruct>,
}

#[derive(Deserialize)]
struct RawStruct {
    go: String,
    fields: BTreeMap<String, RawField>,
    kinds: Vec<Box<str>>,
    wire: Vec<RawWireField>,
}

#[derive(Deserialize)]
struct RawField {
    r#type: RawType,
    omit: bool,
    pointer: bool,
    position: usize,
    #[serde(default)]
    patch: PatchTags,
}

#[derive(Deserialize)]
struct RawType {
    go: String,
    kind: RawKind,
    #[serde(default)]
    wrapped: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawKind {
    Bool,
    Bytes,
    Float,
    Int32,
    Int64,
    IntOrString,
    List(Box<RawType>),
    Map(Box<RawType>),
    Quantity,
    Raw,
    String,
    Struct(String),
    Time,
}

/// The definitions of the OpenAPI v2 document, as JSON text.
pub(crate) fn definitions() -> Result<&'static str, serde_json::Error> {
    Ok(serde_json::from_slice::<Document<'static>>(EMBEDDED)?.definitions.get())
}

impl Schemas {
    /// Compiles what the build embedded.
    ///
    /// # Errors
    /// [`LoadError`]; only a broken build has one.
    pub fn load() -> Result<Self, LoadError> {
        let document: Document<'_> = serde_json::from_slice(EMBEDDED)?;
        let by_name: HashMap<Box<str>, usize> =
            document.structs.keys().enumerate().map(|(at, name)| (name.as_str().into(), at)).collect();
        let mut structs = Vec::with_capacity(document.structs.len());
        let mut by_kind = HashMap::new();
        for raw in document.structs.into_values() {
            by_kind.extend(raw.kinds.into_iter().map(|kind| (kind, structs.len())));
            let mut fields = Vec::with_capacity(raw.fields.len());
            for (name, field) in raw.fields {
                fields.push(Field {
                    name: name.into(),
                    r#type: compile(field.r#type, &by_name)?,
                    pointer: field.pointer,
                    omit: field.omit,
                    position: field.position,
                    patch: field.patch,
                });
            }
            let wire = protobuf::layout(raw.wire, &fields)?;
            structs.push(Struct { go: raw.go.into(), fields: fields.into(), wire });
        }
        let object_meta =
            *by_name.get(OBJECT_META).ok_or_else(|| LoadError::Missing(OBJECT_META.to_owned()))?;
        Ok(Self { structs, by_name, by_kind, object_meta })
    }

    /// An object of a kind in which nothing is set.
    #[must_use]
    pub fn empty(&self, resource: &Resource) -> Object {
        let mut object = Object::default();
        if let Some(root) = self.by_name.get(resource.schema) {
            self.complete(*root, &mut object.0);
        }
        object.0.insert("apiVersion".to_owned(), resource.object_kind().api_version().into());
        object.0.insert("kind".to_owned(), resource.gvk.kind.into());
        object
    }

    /// Whether the module has a kind, of a group's first name.
    #[must_use]
    pub fn has_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        let name = format!("com.github.openshift.api.{group}.{version}.{kind}");
        let root = self.by_name.get(name.as_str()).map(|root| &self.structs[*root]);
        root.is_some_and(|root| root.fields.iter().any(|field| &*field.name == "apiVersion"))
    }

    /// Decodes a document of `resource`'s kind. With `strict`, unknown and repeated fields are told.
    ///
    /// # Errors
    /// [`Mismatch`] when a field has the wrong type.
    pub fn decode(&self, resource: &Resource, document: Node, strict: bool) -> Result<Checked, Mismatch> {
        self.decode_as(resource.schema, document, strict)
    }

    /// As [`Schemas::decode`], for a schema by its name in the OpenAPI document.
    ///
    /// # Errors
    /// [`Mismatch`]; also when there is no such schema.
    pub fn decode_as(&self, schema: &str, document: Node, strict: bool) -> Result<Checked, Mismatch> {
        let root = *self.by_name.get(schema).ok_or_else(|| Mismatch(format!("no schema {schema}")))?;
        let (map, strict) = fill::fill(self, root, go_name(schema), document, strict)?;
        let mut object = Object(map);
        keep_reset(&mut object);
        self.complete(root, &mut object.0);
        Ok(Checked { object, strict })
    }

    /// Holds an object against its schema and makes it what the Go type would be; answers warnings.
    ///
    /// # Errors
    /// 400 as for a body that cannot be decoded.
    pub fn check(
        &self,
        resource: &Resource,
        object: &mut Object,
        validation: FieldValidation,
    ) -> Result<Vec<String>, Status> {
        let document = Node::Map(
            std::mem::take(&mut object.0).into_iter().map(|(name, value)| (name, value.into())).collect(),
        );
        let refused =
            |why: &str| cannot_be_handled(resource.gvk.kind, resource.gvk.version, resource.gvk.kind, why);
        let checked = self
            .decode(resource, document, validation != FieldValidation::Ignore)
            .map_err(|error| refused(&error.0))?;
        if validation == FieldValidation::Strict && !checked.strict.is_empty() {
            return Err(refused(&strict_error(&checked.strict)));
        }
        *object = checked.object;
        Ok(checked.strict)
    }
}

/// An empty list of managed fields asks that all be forgotten, and would be left out as any empty list; one entry that
/// says nothing means the same.
fn keep_reset(object: &mut Object) {
    let metadata = object.0.get_mut("metadata").and_then(serde_json::Value::as_object_mut);
    let entries = metadata.and_then(|metadata| metadata.get_mut("managedFields"));
    if let Some(serde_json::Value::Array(entries)) = entries
        && entries.is_empty()
    {
        entries.push(serde_json::json!({}));
    }
}

/// The types of all definitions, as server-side apply sees them.
///
/// # Errors
/// [`LoadError`]; only a broken build has one.
pub fn merge_types() -> Result<picoshift_structured_merge::Schema, LoadError> {
    let definitions = serde_json::from_str(definitions()?)?;
    Ok(picoshift_structured_merge::Schema::from_openapi(&definitions)?)
}

/// 400: a body of a known kind that cannot be decoded. `kind` and `version` are those of the body.
pub(crate) fn cannot_be_handled(kind: &str, version: &str, wanted: &str, why: &str) -> Status {
    let version = picoshift_machinery::field_error::quote(version);
    Status::bad_request(format!("{kind} in version {version} cannot be handled as a {wanted}: {why}"))
}

/// The text of all strict errors together.
pub(crate) fn strict_error(errors: &[String]) -> String {
    format!("strict decoding error: {}", errors.join(", "))
}

/// `v1.Route` of `com.github.openshift.api.route.v1.Route`.
fn go_name(schema: &str) -> &str {
    schema.rmatch_indices('.').nth(1).map_or(schema, |(at, _)| &schema[at + 1..])
}

fn compile(raw: RawType, by_name: &HashMap<Box<str>, usize>) -> Result<Type, LoadError> {
    let boxed = |raw: Box<RawType>| compile(*raw, by_name).map(Box::new);
    let kind = match raw.kind {
        RawKind::Bool => Kind::Bool,
        RawKind::Bytes => Kind::Bytes,
        RawKind::Float => Kind::Float,
        RawKind::Int32 => Kind::Int32,
        RawKind::Int64 => Kind::Int64,
        RawKind::IntOrString => Kind::IntOrString,
        RawKind::List(element) => Kind::List(boxed(element)?),
        RawKind::Map(value) => Kind::Map(boxed(value)?),
        RawKind::Quantity => Kind::Quantity,
        RawKind::Raw => Kind::Raw,
        RawKind::String => Kind::String,
        RawKind::Struct(name) => Kind::Struct(*by_name.get(name.as_str()).ok_or(LoadError::Missing(name))?),
        RawKind::Time => Kind::Time,
    };
    Ok(Type { go: raw.go.into(), kind, wrapped: raw.wrapped })
}

#[cfg(test)]
mod tests;
