//! Patches and applied configurations, on a Route.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderValue, header};
use picoshift_machinery::Object;
use picoshift_structured_merge::{ApplyError, FieldManager, FieldSet, Request};
use serde_json::{Value, json};

use super::{SCHEMAS, assert_settled};
use crate::decode;
use crate::groups::route;
use crate::rest::patch::{self, ParsedPatch};
use crate::rest::strategic_patch;
use crate::schema::{self, FieldValidation, Mismatch, Schemas};

pub(super) static FIELDS: LazyLock<Option<FieldManager>> = LazyLock::new(|| {
    let types = Arc::new(schema::merge_types().ok()?);
    let kind = types.named(route::ROUTES.schema)?;
    Some(FieldManager::new(types, kind, SCHEMAS.as_ref()?.empty(&route::ROUTES), ""))
});

const ROUTE: &str = r#"{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"r","labels":{"a":"b"},
    "finalizers":["x/y"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"},
    {"apiVersion":"v1","kind":"Pod","name":"b","uid":"2"}]},"spec":{"host":"h","to":{"kind":"Service","name":"x","weight":1},
    "alternateBackends":[{"kind":"Service","name":"b","weight":2}],"port":{"targetPort":8080},
    "tls":{"termination":"edge"}},"status":{"ingress":[{"host":"h","conditions":[{"type":"Admitted","status":"True"}]}]}}"#;

const APPLIED: &str = r#"{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"r","uid":"u","labels":{"a":"b"},
    "managedFields":[{"manager":"a","operation":"Apply","apiVersion":"route.openshift.io/v1","fieldsType":"FieldsV1",
    "fieldsV1":{"f:spec":{"f:host":{},"f:alternateBackends":{".":{},"k:{\"kind\":\"Service\",\"name\":\"b\"}":{".":{}}}}}},
    {"manager":"b","operation":"Update","apiVersion":"route.openshift.io/v1","fieldsType":"FieldsV1",
    "fieldsV1":{"f:spec":{"f:path":{},"f:to":{"f:kind":{},"f:name":{},"f:weight":{}}}}}]},
    "spec":{"host":"h","path":"/p","to":{"kind":"Service","name":"x","weight":1},
    "alternateBackends":[{"kind":"Service","name":"b","weight":2}]}}"#;

/// JSON, merge and strategic merge patches, applied to a Route.
pub(super) fn patches(bytes: &[u8]) {
    let (Some(schemas), Ok(route)) = (&*SCHEMAS, Object::from_slice(ROUTE.as_bytes())) else { return };
    for kind in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        match patch::parse(&headers, bytes) {
            Ok(ParsedPatch::Strategic(patch)) => strategic(schemas, &route, &patch),
            Ok(patch) => plain(schemas, &route, &patch),
            Err(status) => assert!(matches!(status.code, 400 | 413), "{status:?}"),
        }
    }
    let _ = decode::decode_patch(bytes);
}

/// A merge patch changes nothing the second time; what a patch makes is refused by the schema, or read as itself.
fn plain(schemas: &Schemas, route: &Object, patch: &ParsedPatch) {
    let patched = match patch.apply(route) {
        Ok(patched) => patched,
        Err(status) => return assert!(matches!(status.code, 400 | 413 | 422), "{status:?}"),
    };
    if matches!(patch, ParsedPatch::Merge(_)) {
        assert!(patch.apply(&patched).is_ok_and(|again| again == patched), "{patch:?}");
    }
    let validation = FieldValidation::Ignore;
    match decode::decode_patched(schemas, &route::ROUTES, &patched, Vec::new(), validation) {
        Ok((object, _)) => assert_settled(schemas, &route::ROUTES, &object),
        Err(status) => assert_eq!(status.code, 422, "{status:?}"),
    }
}

/// What is validated does not change what is made.
fn strategic(schemas: &Schemas, route: &Object, patch: &serde_json::Map<String, Value>) {
    let apply =
        |validation| strategic_patch::apply(schemas, &route::ROUTES, route, patch, Vec::new(), validation);
    match (apply(FieldValidation::Ignore), apply(FieldValidation::Strict)) {
        (Ok((object, warnings)), strict) => {
            assert!(warnings.is_empty());
            assert_settled(schemas, &route::ROUTES, &object);
            assert!(strict.is_err() || strict.is_ok_and(|(strict, _)| strict == object));
        }
        (Err(ignore), strict) => assert_eq!(strict.err(), Some(ignore)),
    }
}

/// A configuration that is applied to a Route, and FieldsV1 that a client sends.
pub(super) fn applies(bytes: &[u8]) {
    let Ok(live) = Object::from_slice(APPLIED.as_bytes()) else { return };
    if let Ok(config) = decode::decode_configuration(bytes) {
        for live in [Some(&live), None] {
            for force in [false, true] {
                applied(live, &config.value, force);
            }
        }
        updated(&live, &config.value);
    }
    if let Ok(value) = serde_json::from_slice(bytes)
        && let Ok(set) = FieldSet::from_json(&value)
    {
        assert!(FieldSet::from_json(&set.to_json()).is_ok_and(|again| again == set));
    }
}

/// What was applied and fits its schema is read as itself, and to apply it once more, later, changes nothing.
fn applied(live: Option<&Object>, config: &Value, force: bool) {
    let apply = |live, now| made(live, config, Request { manager: "a", now }, force);
    let Ok(Ok(object)) = apply(live, "2026-01-01T00:00:00Z") else { return };
    let again = apply(Some(&object), "2026-01-01T00:00:01Z");
    let unchanged = matches!(&again, Ok(Ok(again)) if untimed(again) == untimed(&object));
    assert!(unchanged, "{object:?} becomes {again:?}");
}

/// What an apply makes, as it would be stored; or why the schema refuses it.
fn made(
    live: Option<&Object>,
    config: &Value,
    request: Request<'_>,
    force: bool,
) -> Result<Result<Object, Mismatch>, ApplyError> {
    let (Some(schemas), Some(fields)) = (&*SCHEMAS, &*FIELDS) else { return Ok(Ok(Object::default())) };
    let applied = fields.apply(live, config, request, force)?;
    assert_eq!(managed(&applied.object), Ok(()), "{applied:?}");
    Ok(schemas.convert(route::ROUTES.schema, applied.object.0).map(|checked| {
        let mut object = checked.object;
        for (field, text) in [("apiVersion", "route.openshift.io/v1"), ("kind", "Route")] {
            object.0.insert(field.to_owned(), text.into());
        }
        assert_settled(schemas, &route::ROUTES, &object);
        object
    }))
}

/// The object without the times of its managed fields, which alone are no reason to write it.
fn untimed(object: &Object) -> Object {
    let mut object = object.clone();
    if let Some(Value::Array(entries)) = object.metadata_mut().get_mut("managedFields") {
        entries.iter_mut().filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("time")));
    }
    object
}

/// Managed fields that are sent are kept, or not; what is there afterwards are managed fields.
fn updated(live: &Object, sent: &Value) {
    let Some(fields) = &*FIELDS else { return };
    let mut new = live.clone();
    let entry = json!({"manager": "b", "operation": "Update", "apiVersion": "route.openshift.io/v1",
        "fieldsType": "FieldsV1", "fieldsV1": sent});
    new.set_metadata("managedFields", vec![entry]);
    let request = Request { manager: "c", now: "2026-01-01T00:00:00Z" };
    if fields.update(Some(live), &mut new, request).is_ok() {
        assert_eq!(managed(&new), Ok(()), "{new:?}");
    }
}

/// Whether the managed fields of an object are some.
fn managed(object: &Object) -> Result<(), String> {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    for entry in entries.into_iter().flatten() {
        let set = FieldSet::from_json(&entry["fieldsV1"]).map_err(|error| error.to_string())?;
        if FieldSet::from_json(&set.to_json()).is_ok_and(|again| again == set) {
            continue;
        }
        return Err(format!("{} is not read as it was written", entry["fieldsV1"]));
    }
    let errors =
        picoshift_structured_merge::validate(object.at(&["metadata", "managedFields"]), |_, _| Vec::new());
    if errors.is_empty() { Ok(()) } else { Err(format!("{errors:?}")) }
}
