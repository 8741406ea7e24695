//! Equality, byte by byte, with what k8s.io/apimachinery writes (`hack/fixtures` made the files).

use super::{ListMeta, partial_object_metadata, partial_object_metadata_list, status, watch_event};
use crate::media_type::MetaVersion;
use crate::object::Object;
use crate::status::Status;

macro_rules! fixture {
    ($name:literal) => {
        (
            Object::from_slice(include_bytes!(concat!("testdata/", $name, ".json"))).unwrap(),
            include_bytes!(concat!("testdata/", $name, ".bin")).as_slice(),
        )
    };
}

fn items(list: &Object) -> Vec<Object> {
    list.at(&["items"]).unwrap().as_array().unwrap().iter().cloned().filter_map(Object::from_value).collect()
}

#[test]
fn metadata_of_one_object() {
    for ((object, expected), version) in [
        (fixture!("full"), MetaVersion::V1),
        (fixture!("empty"), MetaVersion::V1),
        (fixture!("beta"), MetaVersion::V1beta1),
    ] {
        assert_eq!(partial_object_metadata(&object, version), expected);
    }
}

#[test]
fn metadata_of_a_list() {
    let (list, expected) = fixture!("list");
    let meta = ListMeta { resource_version: "12", continue_token: "next", remaining: Some(3) };
    assert_eq!(partial_object_metadata_list(&items(&list), meta, MetaVersion::V1), expected);
    let (list, expected) = fixture!("beta-list");
    let meta = ListMeta { resource_version: "12", ..ListMeta::default() };
    assert_eq!(partial_object_metadata_list(&items(&list), meta, MetaVersion::V1beta1), expected);
}

#[test]
fn a_status() {
    let (object, expected) = fixture!("status");
    let parsed: Status = serde_json::from_value(serde_json::Value::Object(object.0)).unwrap();
    assert_eq!(status(&parsed), expected);
}

#[test]
fn a_watch_event() {
    let (_, full) = fixture!("full");
    assert_eq!(watch_event("ADDED", full), include_bytes!("testdata/event.bin").as_slice());
}

#[test]
fn nothing_in_an_object_panics() {
    let object =
        Object::from_slice(br#"{"metadata":{"labels":[1],"finalizers":{"a":1},"name":7,"generation":"x"}}"#);
    assert!(!partial_object_metadata(&object.unwrap(), MetaVersion::V1).is_empty());
    assert!(!partial_object_metadata(&Object::default(), MetaVersion::V1).is_empty());
}
