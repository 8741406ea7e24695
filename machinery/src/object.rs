//! `Object`: a JSON object with apiVersion, kind and metadata. Nothing a client sent is lost by a typed round trip.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A Kubernetes object as JSON, with typed access to what all objects share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(pub Map<String, Value>);

impl Object {
    /// An object with only `apiVersion` and `kind`.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let mut map = Map::new();
        map.insert("apiVersion".to_owned(), api_version.into());
        map.insert("kind".to_owned(), kind.into());
        Self(map)
    }

    /// Reads an object from JSON bytes.
    ///
    /// # Errors
    /// The parser's, when the bytes are not one JSON object.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The object from a value; `None` unless it is a JSON object.
    #[must_use]
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self(map)),
            _ => None,
        }
    }

    /// The encoded object.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        // A map of strings to values always encodes.
        serde_json::to_vec(&self.0).map(Bytes::from).unwrap_or_default()
    }

    /// `apiVersion`, or an empty text.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"])
    }

    /// `kind`, or an empty text.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.str_at(&["kind"])
    }

    /// `metadata.name`, or an empty text.
    #[must_use]
    pub fn name(&self) -> &str {
        self.str_at(&["metadata", "name"])
    }

    /// `metadata.generateName`, or an empty text.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        self.str_at(&["metadata", "generateName"])
    }

    /// `metadata.namespace`, or an empty text.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.str_at(&["metadata", "namespace"])
    }

    /// `metadata.uid`, or an empty text.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.str_at(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`, or an empty text.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.str_at(&["metadata", "resourceVersion"])
    }

    /// `metadata.creationTimestamp`, or an empty text.
    #[must_use]
    pub fn creation_timestamp(&self) -> &str {
        self.str_at(&["metadata", "creationTimestamp"])
    }

    /// `metadata.deletionTimestamp`, when set.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        Some(self.str_at(&["metadata", "deletionTimestamp"])).filter(|s| !s.is_empty())
    }

    /// `metadata.generation`, when set.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.at(&["metadata", "generation"])?.as_i64()
    }

    /// `metadata.finalizers`.
    #[must_use]
    pub fn finalizers(&self) -> Vec<&str> {
        self.at(&["metadata", "finalizers"])
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// `metadata.labels`.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        self.string_map("labels")
    }

    /// `metadata.annotations`.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<&str, &str> {
        self.string_map("annotations")
    }

    /// One annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at(&["metadata", "annotations", key])?.as_str()
    }

    fn string_map(&self, field: &str) -> BTreeMap<&str, &str> {
        self.at(&["metadata", field])
            .and_then(Value::as_object)
            .map(|m| m.iter().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect())
            .unwrap_or_default()
    }

    /// The value at a path of object keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, key| value.get(*key))
    }

    /// The text at a path, empty where there is none.
    #[must_use]
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }

    /// `metadata`, created where it is missing or not an object.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.object_mut("metadata")
    }

    /// A top-level object such as `spec`, created where it is missing or not an object.
    pub fn object_mut(&mut self, field: &str) -> &mut Map<String, Value> {
        child(&mut self.0, field)
    }

    /// Sets `metadata.<field>`; a null value removes the field.
    pub fn set_metadata(&mut self, field: &str, value: impl Into<Value>) {
        let value = value.into();
        if value.is_null() {
            self.metadata_mut().remove(field);
        } else {
            self.metadata_mut().insert(field.to_owned(), value);
        }
    }

    /// Sets one annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        child(self.metadata_mut(), "annotations").insert(key.to_owned(), value.into());
    }
}

fn child<'a>(map: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(inner) => inner,
        _ => unreachable!("made an object just above"),
    }
}
