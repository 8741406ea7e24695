//! `PartialObjectMetadata`: an object's metadata alone, as the garbage collector and the namespace controller read.

use http::StatusCode;
use picoshift_machinery::media_type::MetaVersion;
use picoshift_machinery::{Object, Status};
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
