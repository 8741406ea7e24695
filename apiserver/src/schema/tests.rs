//! What the real server does with documents; the texts are from its recorded answers where there are any.

use picoshift_machinery::Object;
use serde_json::{Value, json};

use super::{FieldValidation, Mismatch, Schemas};
use crate::decode::json;
use crate::groups::route::ROUTES;

fn decode(text: &str) -> Result<(Value, Vec<String>), Mismatch> {
    let schemas = Schemas::load().unwrap();
    let node = json::parse(text.as_bytes()).unwrap();
    schemas.decode(&ROUTES, node, true).map(|c| (Value::Object(c.object.0), c.strict))
}

fn error(text: &str) -> String {
    decode(text).unwrap_err().0
}

#[test]
fn wrong_types_are_told_in_gos_words() {
    for (text, expected) in [
        (
            r#"{"spec":{"to":"x"}}"#,
            "string into Go struct field RouteSpec.spec.to of type v1.RouteTargetReference",
        ),
        (r#"{"spec":{"host":1}}"#, "number into Go struct field RouteSpec.spec.host of type string"),
        (
            r#"{"spec":{"tls":{"termination":true}}}"#,
            "bool into Go struct field TLSConfig.spec.tls.termination of type v1.TLSTerminationType",
        ),
        (
            r#"{"spec":{"alternateBackends":[{"weight":1.5}]}}"#,
            "number 1.5 into Go struct field RouteTargetReference.spec.alternateBackends.weight of type int32",
        ),
        (
            r#"{"spec":{"alternateBackends":{}}}"#,
            "object into Go struct field RouteSpec.spec.alternateBackends of type []v1.RouteTargetReference",
        ),
        (
            r#"{"metadata":{"uid":1}}"#,
            "number into Go struct field ObjectMeta.metadata.uid of type types.UID",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            r#"{"metadata":{"labels":[]}}"#,
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            r#"{"spec":{"port":{"targetPort":4294967296}}}"#,
            "number 4294967296 into Go struct field RoutePort.spec.port.targetPort of type int32",
        ),
        (
            r#"{"metadata":{"creationTimestamp":1}}"#,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        ("[]", "array into Go value of type v1.Route"),
    ] {
        assert_eq!(error(text), format!("json: cannot unmarshal {expected}"), "{text}");
    }
    // The first wrong type is the error, but a type that decodes itself ends it all.
    assert!(error(r#"{"spec":{"host":1,"path":true}}"#).contains("spec.host"));
    assert!(
        error(r#"{"spec":{"host":1},"metadata":{"creationTimestamp":"x"}}"#)
            .starts_with("parsing time \"x\"")
    );
}

#[test]
fn unknown_and_repeated_fields_are_dropped_and_told() {
    let (value, strict) = decode(
        r#"{"spec":{"to":{"kind":"Service","name":"web","x":1},"nosuchfield":1,"Host":"a","host":"b","host":"c",
            "alternateBackends":[{"name":"a"},{"y":1}]},"metadata":{"labels":{"a":"1","a":"2"}},"z":1}"#,
    )
    .unwrap();
    assert_eq!(
        strict,
        [
            "unknown field \"spec.to.x\"",
            "unknown field \"spec.nosuchfield\"",
            "unknown field \"spec.Host\"",
            "duplicate field \"spec.host\"",
            "unknown field \"spec.alternateBackends[1].y\"",
            "duplicate field \"metadata.labels.a\"",
            "unknown field \"z\"",
        ]
    );
    assert_eq!(value["spec"]["host"], "c");
    assert_eq!(value["metadata"], json!({ "labels": { "a": "2" } }));
    assert_eq!(value["spec"]["alternateBackends"][1], json!({ "kind": "", "name": "", "weight": null }));
    assert!(value.get("z").is_none());
}

#[test]
fn strict_errors_are_bounded_and_told_once() {
    let fields = (0..200).map(|n| format!("\"f{n}\":1")).collect::<Vec<_>>().join(",");
    assert_eq!(decode(&format!("{{{fields}}}")).unwrap().1.len(), 100);
    assert_eq!(decode(r#"{"x":1,"x":2}"#).unwrap().1, ["unknown field \"x\""]);
}

#[test]
fn encoding_is_that_of_the_go_types() {
    let (value, _) = decode(
        r#"{"apiVersion":"route.openshift.io/v1","kind":"Route","status":null,
            "metadata":{"name":"a","labels":null,"annotations":{},"finalizers":[],"generation":0,
                        "deletionGracePeriodSeconds":0,"creationTimestamp":null},
            "spec":{"host":"","tls":{},"path":null,"httpHeaders":{},"port":{"targetPort":null}}}"#,
    )
    .unwrap();
    assert_eq!(
        value,
        json!({
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": { "name": "a", "deletionGracePeriodSeconds": 0 },
            "spec": {
                "httpHeaders": { "actions": { "request": null, "response": null } },
                "port": { "targetPort": 0 },
                "tls": { "termination": "" },
                "to": { "kind": "", "name": "", "weight": null },
            },
            "status": {},
        })
    );
}

#[test]
fn decoding_twice_changes_nothing() {
    let (value, _) = decode(
        r#"{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:spec":{"x":[1,null,{}]}},"time":"2026-01-01T00:00:00Z"}],
            "ownerReferences":[{"uid":"u","controller":false}]},"spec":{"port":{"targetPort":"http"}}}"#,
    )
    .unwrap();
    assert_eq!(decode(&value.to_string()).unwrap(), (value.clone(), Vec::new()));
    assert_eq!(value["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["x"], json!([1, null, {}]));
    assert_eq!(value["metadata"]["ownerReferences"][0]["controller"], false);
}

#[test]
fn check_obeys_field_validation() {
    let schemas = Schemas::load().unwrap();
    let object = || Object::from_value(json!({ "spec": { "a": 1, "b": {} } })).unwrap();
    let mut ignored = object();
    assert!(schemas.check(&ROUTES, &mut ignored, FieldValidation::Ignore).unwrap().is_empty());
    assert!(ignored.at(&["spec", "a"]).is_none());
    let warnings = schemas.check(&ROUTES, &mut object(), FieldValidation::Warn).unwrap();
    assert_eq!(warnings, ["unknown field \"spec.a\"", "unknown field \"spec.b\""]);
    let status = schemas.check(&ROUTES, &mut object(), FieldValidation::Strict).unwrap_err();
    assert_eq!(
        status.message,
        "Route in version \"v1\" cannot be handled as a Route: strict decoding error: unknown field \"spec.a\", \
         unknown field \"spec.b\""
    );
    let patched = object();
    let status =
        crate::decode::decode_patched(&schemas, &ROUTES, &patched, Vec::new(), FieldValidation::Strict)
            .unwrap_err();
    assert_eq!(status.code, 422);
    assert!(
        status.message.starts_with(" \"\" is invalid: patch: Invalid value: \"{\\\"spec\\\""),
        "{}",
        status.message
    );
}
