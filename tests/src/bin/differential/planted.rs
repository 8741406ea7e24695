//! Faults planted in what our server answers, so that `prove` can show that each kind of fault is noticed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use http::header::{CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use picoshift_tests::http::Answer;
use picoshift_tests::watch::{Event, Watch};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::caller::Call;

/// How long the event is awaited that is to come before the one that was first.
const SWAPPED_WITHIN: Duration = Duration::from_millis(500);

/// What our server would do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    DryRunThatWrites,
    EventOutOfOrder,
    ExtraField,
    LostBookmark,
    LostContinue,
    LostEvent,
    LostLabel,
    LostUnknownFieldWarning,
    LostWarning,
    MissingCondition,
    MissingDetails,
    RevisionGoingBack,
    UnchangedRevision,
    WrongCell,
    WrongCode,
    WrongColumn,
    WrongGeneration,
    WrongMediaType,
    WrongReason,
    WrongRemainingCount,
}

/// A fault, and what it has to remember.
#[derive(Debug, Clone)]
pub(crate) struct Planted {
    fault: Fault,
    /// Versions that were shown, by uid.
    shown: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Planted {
    /// A fault.
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, shown: Arc::default() }
    }

    /// The call as a server with the fault would take it.
    pub(crate) fn mistake(&self, mut call: Call) -> Call {
        if self.fault == Fault::DryRunThatWrites {
            call.path = call.path.replace("dryRun=All", "");
        }
        call
    }

    /// Puts the fault into an answer, where it has a place for it.
    pub(crate) fn plant(&self, method: &Method, answer: &mut Answer) {
        match self.fault {
            Fault::WrongCode if answer.status == StatusCode::UNPROCESSABLE_ENTITY => {
                answer.status = StatusCode::BAD_REQUEST;
            }
            Fault::LostWarning => drop(answer.headers.remove(WARNING)),
            Fault::LostUnknownFieldWarning => lose_unknown_fields(&mut answer.headers),
            Fault::WrongMediaType => {
                if let Some(value) = answer.headers.get_mut(CONTENT_TYPE)
                    && value == "application/yaml"
                {
                    *value = HeaderValue::from_static("application/json");
                }
            }
            _ => {}
        }
        if let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) {
            self.change(method, &mut body);
            answer.body = body.to_string().into();
        }
    }

    fn change(&self, method: &Method, body: &mut Value) {
        let is_object = body["metadata"]["uid"].is_string();
        match self.fault {
            Fault::WrongRemainingCount => {
                if let Some(count) = body["metadata"]["remainingItemCount"].as_u64() {
                    body["metadata"]["remainingItemCount"] = json!(count + 1);
                }
            }
            Fault::LostContinue if !is_object => {
                if let Some(metadata) = body.get_mut("metadata") {
                    remove(metadata, "continue");
                }
            }
            Fault::WrongGeneration if is_object => {
                let generation = body["metadata"]["generation"].as_i64().unwrap_or(0);
                body["metadata"]["generation"] = json!(generation + 1);
            }
            Fault::UnchangedRevision if is_object => self.stay(method, &mut body["metadata"]),
            Fault::WrongCell => {
                for row in body.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
                    row["cells"][0] = json!("planted");
                }
            }
            Fault::WrongReason if body["reason"] == "NotFound" => body["reason"] = json!("Gone"),
            Fault::MissingDetails if body["kind"] == "Status" => remove(body, "details"),
            Fault::RevisionGoingBack if is_object && method == Method::GET => {
                let version = body["metadata"]["resourceVersion"].as_str();
                let revision = version.and_then(|text| text.parse::<u64>().ok());
                let before = revision.unwrap_or(1).saturating_sub(1).to_string();
                body["metadata"]["resourceVersion"] = json!(before);
            }
            Fault::LostLabel if is_object => remove(&mut body["metadata"], "labels"),
            Fault::ExtraField if is_object => body["planted"] = json!(true),
            Fault::WrongColumn if body["kind"] == "Table" => {
                body["columnDefinitions"][0]["name"] = json!("Planted");
            }
            Fault::MissingCondition if is_object => remove_conditions(&mut body["status"]),
            _ => {}
        }
    }

    /// Shows after a write the version that was shown before it.
    fn stay(&self, method: &Method, metadata: &mut Value) {
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let mut shown = self.shown.lock();
        match shown.get(&uid) {
            Some(version) if matches!(*method, Method::PUT | Method::PATCH) => {
                metadata["resourceVersion"] = version.clone();
            }
            _ => drop(shown.insert(uid, metadata["resourceVersion"].clone())),
        }
    }
}

fn lose_unknown_fields(headers: &mut HeaderMap) {
    let unknown = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("unknown field"));
    let kept: Vec<_> = headers.get_all(WARNING).iter().filter(|value| !unknown(value)).cloned().collect();
    headers.remove(WARNING);
    for value in kept {
        headers.append(WARNING, value);
    }
}

fn remove(value: &mut Value, field: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(field);
    }
}

fn remove_conditions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("conditions");
            map.values_mut().for_each(remove_conditions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_conditions),
        _ => {}
    }
}

/// A watch, with a fault in what it tells.
#[derive(Debug)]
pub(crate) struct Feed {
    watch: Watch,
    fault: Option<Fault>,
    told: usize,
    held: Option<Event>,
}

impl Feed {
    /// A watch as it is, or with a fault.
    pub(crate) fn new(watch: Watch, planted: Option<&Planted>) -> Self {
        Self { watch, fault: planted.map(|planted| planted.fault), told: 0, held: None }
    }

    /// As [`Watch::next_before`].
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn next_before(&mut self, deadline: Instant) -> anyhow::Result<Option<Event>> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        loop {
            let Some(event) = self.watch.next_before(deadline).await? else { return Ok(None) };
            self.told += 1;
            match self.fault {
                Some(Fault::LostEvent) if self.told == 2 => {}
                Some(Fault::LostBookmark) if event.kind == "BOOKMARK" => {}
                Some(Fault::EventOutOfOrder) => {
                    let soon = deadline.min(Instant::now() + SWAPPED_WITHIN);
                    return Ok(match self.watch.next_before(soon).await {
                        Ok(Some(next)) => {
                            self.held = Some(event);
                            Some(next)
                        }
                        _ => Some(event),
                    });
                }
                _ => return Ok(Some(event)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_changes_what_it_names_only() {
        let object = json!({"metadata": {"uid": "u", "labels": {"a": "b"}, "resourceVersion": "7"}, "status": {"tags": [{"conditions": [1], "tag": "t"}]}});
        let changed = |fault| {
            let mut body = object.clone();
            Planted::new(fault).change(&Method::GET, &mut body);
            body
        };
        assert_eq!(changed(Fault::WrongReason), object);
        assert_eq!(changed(Fault::LostLabel)["metadata"]["labels"], Value::Null);
        assert_eq!(changed(Fault::RevisionGoingBack)["metadata"]["resourceVersion"], "6");
        assert_eq!(changed(Fault::WrongGeneration)["metadata"]["generation"], 1);
        assert_eq!(changed(Fault::UnchangedRevision), object);
        assert_eq!(changed(Fault::MissingCondition)["status"], json!({"tags": [{"tag": "t"}]}));
    }
}
