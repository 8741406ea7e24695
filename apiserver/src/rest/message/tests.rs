//! Metadata equal, byte by byte, to what k8s.io/apimachinery writes (`hack/fixtures` made the files), and lists.

use std::sync::LazyLock;

use picoshift_machinery::protobuf::Envelope;
use serde_json::json;

use super::*;
use crate::groups::route::ROUTES;
use crate::rest::Item;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::load().unwrap());

macro_rules! fixture {
    ($name:literal) => {
        (
            Object::from_slice(include_bytes!(concat!("testdata/", $name, ".json"))).unwrap(),
            include_bytes!(concat!("testdata/", $name, ".bin")).as_slice(),
        )
    };
}

fn listed(list: &Object) -> Vec<Value> {
    list.at(&["items"]).unwrap().as_array().unwrap().iter().map(|item| item["metadata"].clone()).collect()
}

#[test]
fn metadata_of_one_object() {
    for ((object, expected), version) in [
        (fixture!("full"), MetaVersion::V1),
        (fixture!("empty"), MetaVersion::V1),
        (fixture!("beta"), MetaVersion::V1beta1),
    ] {
        assert_eq!(metadata(&object.0["metadata"], &SCHEMAS, version), expected);
    }
}

#[test]
fn metadata_of_a_list() {
    let (list, expected) = fixture!("list");
    let meta = ListMeta { resource_version: "12", continue_token: "next", remaining: Some(3) };
    assert_eq!(metadata_list(&listed(&list), meta, &SCHEMAS, MetaVersion::V1), expected);
    let (list, expected) = fixture!("beta-list");
    let meta = ListMeta { resource_version: "12", ..ListMeta::default() };
    assert_eq!(metadata_list(&listed(&list), meta, &SCHEMAS, MetaVersion::V1beta1), expected);
}

#[test]
fn no_metadata_panics() {
    let odd = json!({"labels": [1], "finalizers": {"a": 1}, "name": 7, "generation": "x"});
    for odd in [odd, json!([]), Value::Null] {
        assert!(!metadata(&odd, &SCHEMAS, MetaVersion::V1).is_empty());
    }
}

fn chunk(names: std::ops::Range<usize>) -> Arc<Chunk> {
    let item = |at: usize| {
        let metadata = json!({"name": format!("r{at}"), "annotations": {"a": "x".repeat(at)}});
        let object = Object::from_value(json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata,
        }));
        Arc::new(Item::new(&ROUTES, object.unwrap(), 1))
    };
    Arc::new(Chunk::new(names.map(item).collect()))
}

/// The parts are the list that Go reads: the length that was announced, and the items in order.
#[test]
fn a_list_in_parts_is_one_list() {
    for chunks in [vec![], vec![chunk(0..1)], vec![chunk(0..130), chunk(130..300)]] {
        let names: Vec<String> =
            chunks.iter().flat_map(|chunk| chunk.items()).map(|item| item.name.to_string()).collect();
        let meta = ListMeta { resource_version: "7", continue_token: "more", remaining: Some(2) };
        let list = ListMessage::new(("route.openshift.io/v1", "RouteList"), meta, chunks, &SCHEMAS).unwrap();
        let length = list.length();
        let bytes = list.parts().collect::<Vec<_>>().concat();
        assert_eq!(bytes.len(), length);
        let envelope = Envelope::open(&bytes).unwrap();
        assert_eq!((&*envelope.api_version, &*envelope.kind), ("route.openshift.io/v1", "RouteList"));
        let read =
            SCHEMAS.from_protobuf("com.github.openshift.api.route.v1.RouteList", envelope.raw).unwrap();
        assert_eq!(read.at(&["metadata", "continue"]), Some(&json!("more")));
        let items = read.at(&["items"]).and_then(|items| items.as_array().cloned()).unwrap_or_default();
        let read: Vec<_> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(read, names);
    }
}
