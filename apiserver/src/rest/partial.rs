//! `PartialObjectMetadata`: an object's metadata alone, as the garbage collector and the namespace controller read.

use picoshift_machinery::Object;
use picoshift_machinery::media_type::MetaVersion;
use serde_json::{Map, Value};

/// The metadata of an object.
#[must_use]
pub fn metadata_only(object: &Object, version: MetaVersion) -> Object {
    let mut partial = Object::new(version.api_version(), "PartialObjectMetadata");
    if let Some(metadata) = object.0.get("metadata") {
        partial.0.insert("metadata".to_owned(), metadata.clone());
    }
    partial
}

/// A list of metadata; the items carry no kind, as upstream's do.
#[must_use]
pub fn metadata_list(objects: &[Object], metadata: Map<String, Value>, version: MetaVersion) -> Object {
    let mut list = Object::new(version.api_version(), "PartialObjectMetadataList");
    list.0.insert("metadata".to_owned(), metadata.into());
    let items: Vec<Value> = objects.iter().map(|object| metadata_only(object, version).0.into()).collect();
    list.0.insert("items".to_owned(), items.into());
    list
}
