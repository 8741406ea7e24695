//! `PartialObjectMetadata`: an object's metadata alone, as the garbage collector and the namespace controller read.

use http::StatusCode;
use picoshift_machinery::media_type::MetaVersion;
use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value};

/// An object that has this metadata alone.
#[must_use]
pub fn metadata_only(metadata: Value, version: MetaVersion) -> Object {
    let mut partial = Object::new(version.api_version(), "PartialObjectMetadata");
    partial.0.insert("metadata".to_owned(), metadata);
    partial
}

/// A list of metadata.
#[must_use]
pub fn metadata_list(items: Vec<Value>, metadata: Map<String, Value>, version: MetaVersion) -> Object {
    let mut list = Object::new(version.api_version(), "PartialObjectMetadataList");
    list.0.insert("metadata".to_owned(), metadata.into());
    let items: Vec<Value> =
        items.into_iter().map(|metadata| metadata_only(metadata, version).0.into()).collect();
    let items = if items.is_empty() { Value::Null } else { items.into() };
    list.0.insert("items".to_owned(), items);
    list
}

/// 406: the metadata of a list was asked for and the answer is one object, or the other way round. `kind` is the
/// answer's.
pub fn mismatch(group: &str, kind: &str, is_list: bool) -> Status {
    let package = group.split('.').next().unwrap_or_default();
    let (asked, what) = if is_list {
        ("PartialObjectMetadata", "a list")
    } else {
        ("PartialObjectMetadataList", "not a list")
    };
    let message = format!("you requested {asked}, but the requested object is {what} (*{package}.{kind})");
    Status::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}
