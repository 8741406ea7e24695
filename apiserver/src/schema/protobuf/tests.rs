//! Equality with what the Go types write and read (`hack/fixtures/messages` recorded it), and what strangers send.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use picoshift_machinery::Object;
use picoshift_machinery::protobuf::Envelope;
use picoshift_machinery::protobuf::wire::Message;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::DecodeError;
use crate::schema::Schemas;

const ROUTE: &str = "com.github.openshift.api.route.v1.Route";

/// One object, as the Go type writes it.
#[derive(Deserialize)]
struct Recorded {
    json: Object,
    protobuf: String,
    /// What Go reads from it, where that is not `json`.
    again: Option<Object>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::load().unwrap());

static RECORDED: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("testdata/messages.jsonl.gz")[..]).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
});

fn schema(object: &Object) -> String {
    let index = SCHEMAS.by_kind[format!("{}/{}", object.api_version(), object.kind()).as_str()];
    SCHEMAS.by_name.iter().find(|(_, at)| **at == index).unwrap().0.to_string()
}

#[test]
fn go_types_write_the_same_bytes() {
    for Recorded { json, protobuf, .. } in &*RECORDED {
        let expected = STANDARD.decode(protobuf).unwrap();
        let expected = Envelope::open(&expected).unwrap();
        assert_eq!((json.api_version(), json.kind()), (&*expected.api_version, &*expected.kind));
        let written = SCHEMAS.to_protobuf(json).unwrap();
        assert!(
            written == expected.raw,
            "{}\n{written:x?}\n{:x?}",
            Value::from(json.0.clone()),
            expected.raw
        );
    }
}

#[test]
fn go_types_read_the_same_objects() {
    for Recorded { json, protobuf, again } in &*RECORDED {
        let bytes = STANDARD.decode(protobuf).unwrap();
        let raw = Envelope::open(&bytes).unwrap().raw;
        let mut expected = again.as_ref().unwrap_or(json).clone();
        expected.0.retain(|field, _| !["apiVersion", "kind"].contains(&field.as_str()));
        let read = SCHEMAS.from_protobuf(&schema(json), raw).unwrap();
        assert_eq!(Value::from(read.0), Value::from(expected.0));
    }
}

#[test]
fn every_served_kind_was_recorded() {
    let recorded = &*RECORDED;
    let kinds: BTreeSet<String> =
        recorded.iter().map(|r| format!("{}/{}", r.json.api_version(), r.json.kind())).collect();
    // Meta kinds are in every group, and are answered by code of their own.
    let served = SCHEMAS.by_kind.keys().filter(|kind| {
        (kind.contains(".openshift.io/") || kind.contains(".k8s.io/"))
            && !["DeleteOptions", "WatchEvent"].iter().any(|m| kind.ends_with(m))
    });
    let missing: Vec<_> = served.filter(|kind| !kinds.contains(&***kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(recorded.len() >= 150, "{}", recorded.len());
}

#[test]
fn fields_that_the_type_does_not_have_are_left_out() {
    let object = |value: Value| Object::from_value(value).unwrap();
    let known =
        object(json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": {"host": "a"}}));
    let more = object(
        json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": {"host": "a", "more": 1}, "x": {}}),
    );
    assert_eq!(SCHEMAS.to_protobuf(&known), SCHEMAS.to_protobuf(&more));
    assert_eq!(SCHEMAS.to_protobuf(&object(json!({"apiVersion": "v1", "kind": "Pod"}))), None);
}

fn read(fill: impl FnOnce(&mut Message)) -> Result<Object, DecodeError> {
    let mut message = Message::default();
    fill(&mut message);
    SCHEMAS.from_protobuf(ROUTE, message.as_slice())
}

#[test]
fn repeated_fields_are_merged_and_unknown_ones_passed_over() {
    let route = read(|route| {
        route.text(99, "unknown");
        route.nested(2, |spec| spec.text(1, "first"));
        route.nested(2, |spec| {
            spec.text(2, "/path");
            spec.text(1, "second");
        });
    });
    let spec = &route.unwrap().0["spec"];
    assert_eq!((&spec["host"], &spec["path"]), (&json!("second"), &json!("/path")));
}

#[test]
fn errors_name_the_field_in_go() {
    let text = |fill: fn(&mut Message)| read(fill).unwrap_err().to_string();
    assert_eq!(text(|m| m.integer(1, 0)), "proto: wrong wireType = 0 for field ObjectMeta");
    assert_eq!(text(|m| m.nested(2, |spec| spec.integer(1, 0))), "proto: wrong wireType = 0 for field Host");
    assert_eq!(
        text(|m| m.nested(2, |spec| spec.bytes(3, &[0]))),
        "proto: RouteTargetReference: illegal tag 0 (wire type 0)"
    );
    let port = |of: i64| {
        read(|m| m.nested(2, |spec| spec.nested(5, |port| port.nested(1, |value| value.integer(1, of)))))
    };
    assert_eq!(port(2).unwrap_err().to_string(), "impossible IntOrString.Type");
    assert_eq!(port(1).unwrap().0["spec"]["port"]["targetPort"], "");
}

#[test]
fn small_bodies_do_not_become_large_objects() {
    let many = |count: usize| {
        read(|m| {
            m.nested(3, |status| {
                for _ in 0..count {
                    status.bytes(1, b"");
                }
            });
        })
    };
    assert!(many(1000).is_ok());
    assert_eq!(many(60_000).unwrap_err(), DecodeError::TooLarge);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A damaged message is an error or an object, and an object is written and read as itself.
    #[test]
    fn damaged_messages_are_refused_or_read(which in 0..196_usize, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let Recorded { json, protobuf, .. } = &RECORDED[which % RECORDED.len()];
        let bytes = STANDARD.decode(protobuf).unwrap();
        let mut raw = Envelope::open(&bytes).unwrap().raw.to_vec();
        prop_assume!(!raw.is_empty());
        let at = at.index(raw.len());
        if cut { raw.truncate(at) } else { raw[at] = byte }
        if let Ok(mut object) = SCHEMAS.from_protobuf(&schema(json), &raw) {
            for field in ["apiVersion", "kind"] {
                object.0.insert(field.to_owned(), json.0[field].clone());
            }
            let written = SCHEMAS.to_protobuf(&object).unwrap();
            let again = SCHEMAS.from_protobuf(&schema(json), &written).unwrap();
            prop_assert_eq!(SCHEMAS.to_protobuf(&Object([("apiVersion".to_owned(), json.0["apiVersion"].clone()), ("kind".to_owned(), json.0["kind"].clone())].into_iter().chain(again.0).collect())).unwrap(), written);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = SCHEMAS.from_protobuf(ROUTE, &bytes);
    }
}
