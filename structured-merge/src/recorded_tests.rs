//! Replays what the Go library and kube-apiserver were recorded to do (`hack/apply-fixtures`).

use std::collections::BTreeMap;
use std::sync::Arc;

use picoshift_machinery::Object;
use serde_json::{Map, Value};

use crate::path::PathElement;
use crate::{ApplyError, FieldManager, FieldSet, Request, Schema};

/// The least number of steps that are recorded of the library, and of the server.
const ENOUGH: [usize; 2] = [700, 150];

struct Recording {
    schema: Arc<Schema>,
    document: Value,
}

impl Recording {
    fn read(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).unwrap();
        let schema = Schema::from_openapi(document["definitions"].as_object().unwrap()).unwrap();
        Self { schema: Arc::new(schema), document }
    }

    fn manager(&self, kind: &str, step: &Value) -> FieldManager {
        let kind = &self.document["kinds"][kind];
        let r#type = self.schema.named(kind["schema"].as_str().unwrap()).unwrap();
        let empty = Object::from_value(kind["empty"].clone()).unwrap();
        let subresource = step["subresource"].as_str().unwrap_or_default();
        let manager = FieldManager::new(Arc::clone(&self.schema), r#type, empty, subresource);
        let Some(ignored) = step["ignored"].as_array() else { return manager };
        let mut set = FieldSet::default();
        for name in ignored {
            set.insert(&[PathElement::field(name.as_str().unwrap())]);
        }
        manager.ignoring(set)
    }

    /// Plays all sequences; answers the number of steps and what differs.
    fn replay(&self) -> (usize, Vec<String>) {
        let mut steps = 0;
        let mut wrong = Vec::new();
        for sequence in self.document["sequences"].as_array().unwrap() {
            let mut live: Option<Object> = None;
            for (at, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
                steps += 1;
                let manager = self.manager(sequence["kind"].as_str().unwrap(), step);
                let found = outcome(&manager, live.as_ref(), step);
                let wanted = wanted(step);
                if found != wanted {
                    let name = &sequence["name"];
                    wrong.push(format!("{name} step {at}:\n  found  {found:?}\n  wanted {wanted:?}"));
                }
                if step["error"].is_null() {
                    live = Some(left(step));
                }
            }
        }
        (steps, wrong)
    }
}

/// What a write did, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Outcome {
    Written { object: Value, managed: Value },
    Refused { reason: String, message: String, causes: Vec<(String, String)> },
}

fn outcome(manager: &FieldManager, live: Option<&Object>, step: &Value) -> Outcome {
    let request =
        Request { manager: step["manager"].as_str().unwrap(), now: step["now"].as_str().unwrap_or_default() };
    let mut object = if step["op"] == "update" {
        let mut object = Object::from_value(step["given"].clone()).unwrap();
        // Decoding leaves out what is empty, but for the owners.
        object.metadata_mut().retain(|field, value| field == "managedFields" || !is_zero(value));
        // As the server writes an object whose owners cannot be kept: without.
        let _ = manager.update(live, &mut object, request);
        object
    } else {
        match manager.apply(live, &step["given"], request, step["force"] == true) {
            Ok(applied) => applied.object,
            Err(error) => return refused(&error),
        }
    };
    let managed = object.metadata_mut().remove("managedFields").unwrap_or_default();
    let object = if step["op"] == "update" { Value::Null } else { compared(step, Value::Object(object.0)) };
    Outcome::Written { object, managed }
}

/// What of an object can be compared: a server sets metadata, and back what an endpoint may not change.
fn compared(step: &Value, mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["creationTimestamp", "generation", "namespace", "resourceVersion", "uid"] {
            metadata.remove(field);
        }
    }
    if step["ignored"].is_array() {
        let of_status = step["subresource"] == "status";
        let map = object.as_object_mut().unwrap();
        map.retain(|field, _| (field == "status") == of_status);
    }
    bare(object)
}

fn refused(error: &ApplyError) -> Outcome {
    let (reason, causes) = match error {
        ApplyError::BadRequest(_) => ("BadRequest", Vec::new()),
        ApplyError::Conflict(conflicts) => {
            ("Conflict", conflicts.0.iter().map(|one| (one.message(), one.field())).collect())
        }
        ApplyError::Failed(_) => ("", Vec::new()),
    };
    refusal(reason, &error.to_string(), causes)
}

fn refusal(reason: &str, message: &str, mut causes: Vec<(String, String)>) -> Outcome {
    // Upstream tells conflicts of several managers in no order.
    causes.sort();
    Outcome::Refused { reason: reason.to_owned(), message: message.to_owned(), causes }
}

fn wanted(step: &Value) -> Outcome {
    let error = &step["error"];
    if error.is_null() {
        let object =
            if step["op"] == "update" { Value::Null } else { compared(step, step["object"].clone()) };
        return Outcome::Written { object, managed: step["managed"].clone() };
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = error["causes"].as_array().into_iter().flatten();
    let causes = causes.map(|cause| (text(&cause[0]), text(&cause[1]))).collect();
    refusal(&text(&error["reason"]), &text(&error["message"]), causes)
}

/// The object that a step left.
fn left(step: &Value) -> Object {
    let content = if step["object"].is_null() { &step["given"] } else { &step["object"] };
    let mut object = Object::from_value(content.clone()).unwrap();
    object.set_metadata("managedFields", step["managed"].clone());
    if object.uid().is_empty() {
        object.set_metadata("uid", "u");
    }
    object
}

/// An object without what Go's structs would leave out, and with numbers as they were sent.
fn bare(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, bare(value)))
                .filter(|(_, value)| !is_zero(value))
                .collect();
            Value::Object(kept)
        }
        Value::Array(list) => list.into_iter().map(bare).collect(),
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        other => other,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn check(text: &str, enough: usize) {
    let (steps, wrong) = Recording::read(text).replay();
    assert!(wrong.is_empty(), "{} of {steps} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(steps >= enough, "only {steps} steps are recorded");
}

#[test]
fn does_what_the_library_does() {
    check(include_str!("../fixtures/library.json"), ENOUGH[0]);
}

#[test]
fn does_what_kube_apiserver_does() {
    check(include_str!("../fixtures/server.json"), ENOUGH[1]);
}

/// A replay that noticed nothing would be worth nothing.
#[test]
fn notices_what_differs() {
    let text = include_str!("../fixtures/library.json");
    let mut recording = Recording::read(text);
    let mut changed: BTreeMap<&str, usize> = BTreeMap::new();
    for sequence in recording.document["sequences"].as_array_mut().unwrap().iter_mut().take(30) {
        let Some(step) = sequence["steps"].as_array_mut().unwrap().last_mut() else { continue };
        if step["error"].is_null() {
            step["managed"] = Value::Null;
            *changed.entry("managed").or_default() += 1;
        } else {
            step["error"]["message"] = "another".into();
            *changed.entry("error").or_default() += 1;
        }
    }
    let (_, wrong) = recording.replay();
    assert!(changed.len() == 2 && wrong.len() >= 25, "{changed:?}, {} noticed", wrong.len());
}
