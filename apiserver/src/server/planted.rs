//! Faults planted on purpose: a build with the feature `planted-faults` answers wrongly where a request's header asks
//! it to, so that `differential prove` can show that each kind of fault is noticed. Never part of a release.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use parking_lot::Mutex;
use picoshift_machinery::body::{Body, full, stream};
use serde_json::{Value, json};

/// The header that names a fault.
const HEADER: &str = "x-picoshift-planted-fault";

/// The fault that a request asks for, if any.
pub(super) fn asked(headers: &HeaderMap) -> Option<String> {
    headers.get(HEADER)?.to_str().ok().map(str::to_owned)
}

/// The request as a server with the fault would take it.
pub(super) fn mistake<B>(fault: Option<&str>, mut request: Request<B>) -> Request<B> {
    if fault == Some("dry-run-that-writes")
        && let Ok(uri) = request.uri().to_string().replace("dryRun=All", "").parse()
    {
        *request.uri_mut() = uri;
    }
    request
}

/// The answer with the fault in it, where it has a place for it.
pub(super) async fn plant(
    fault: &str,
    method: &Method,
    watch: bool,
    mut response: Response<Body>,
) -> Response<Body> {
    match fault {
        "wrong-code" if response.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        "lost-warning" => drop(response.headers_mut().remove(WARNING)),
        "lost-unknown-field-warning" => {
            let unknown =
                |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("unknown field"));
            let all: Vec<HeaderValue> = response.headers().get_all(WARNING).iter().cloned().collect();
            response.headers_mut().remove(WARNING);
            for value in all.into_iter().filter(|value| !unknown(value)) {
                response.headers_mut().append(WARNING, value);
            }
        }
        "wrong-media-type" => {
            if let Some(value) = response.headers_mut().get_mut(CONTENT_TYPE)
                && value == "application/yaml"
            {
                *value = HeaderValue::from_static("application/json");
            }
        }
        "event-out-of-order" if watch => return response.map(swap_events),
        "lost-event" if watch => return response.map(lose_second_event),
        "lost-bookmark" if watch => return response.map(lose_bookmarks),
        _ if !watch => return in_body(fault, method, response).await,
        _ => {}
    }
    response
}

fn swap_events(body: Body) -> Body {
    let pairs = body.into_data_stream().filter_map(async |event| event.ok()).chunks(2);
    stream(pairs.flat_map(|mut pair| {
        pair.reverse();
        futures::stream::iter(pair)
    }))
}

fn lose_second_event(body: Body) -> Body {
    let events = body.into_data_stream().filter_map(async |event| event.ok()).enumerate();
    stream(events.filter_map(async |(index, event)| (index != 1).then_some(event)))
}

fn lose_bookmarks(body: Body) -> Body {
    let events = body.into_data_stream().filter_map(async |event| event.ok());
    stream(events.map(|events| {
        let kept = events.split_inclusive(|byte| *byte == b'\n');
        let kept = kept.filter(|event| !event.starts_with(br#"{"type":"BOOKMARK""#));
        Bytes::from(kept.collect::<Vec<_>>().concat())
    }))
}

async fn in_body(fault: &str, method: &Method, response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let bytes = body.collect().await.map_or_else(|never| match never {}, Collected::to_bytes);
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(head, full(bytes));
    };
    change(fault, method, &mut value);
    let bytes = Bytes::from(serde_json::to_vec(&value).unwrap_or_default());
    if head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    }
    Response::from_parts(head, full(bytes))
}

fn change(fault: &str, method: &Method, value: &mut Value) {
    let is_object = value["metadata"]["uid"].is_string();
    match fault {
        "wrong-remaining-count" => {
            if let Some(count) = value["metadata"]["remainingItemCount"].as_u64() {
                value["metadata"]["remainingItemCount"] = json!(count + 1);
            }
        }
        "lost-continue" if !is_object => {
            if let Some(metadata) = value.get_mut("metadata") {
                drop(remove(metadata, "continue"));
            }
        }
        "wrong-generation" if is_object => {
            let generation = value["metadata"]["generation"].as_i64().unwrap_or(0);
            value["metadata"]["generation"] = json!(generation + 1);
        }
        "unchanged-revision" if is_object => stay(method, &mut value["metadata"]),
        "wrong-cell" => {
            for row in value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
                row["cells"][0] = json!("planted");
            }
        }
        "wrong-reason" if value["reason"] == "NotFound" => value["reason"] = json!("Gone"),
        "missing-details" if value["kind"] == "Status" => drop(remove(value, "details")),
        "revision-going-back" if is_object && method == Method::GET => {
            let revision =
                value["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
            value["metadata"]["resourceVersion"] = json!(revision.unwrap_or(1).saturating_sub(1).to_string());
        }
        "lost-label" if is_object => drop(remove(&mut value["metadata"], "labels")),
        "extra-field" if is_object => value["planted"] = json!(true),
        "wrong-column" if value["kind"] == "Table" => {
            value["columnDefinitions"][0]["name"] = json!("Planted");
        }
        "missing-condition" if is_object => remove_conditions(&mut value["status"]),
        _ => {}
    }
}

/// Shows after a write the version that was shown before it.
fn stay(method: &Method, metadata: &mut Value) {
    static SHOWN: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
    let mut shown = SHOWN.lock();
    match shown.get(&uid) {
        Some(version) if matches!(*method, Method::PUT | Method::PATCH) => {
            metadata["resourceVersion"] = version.clone();
        }
        _ => drop(shown.insert(uid, metadata["resourceVersion"].clone())),
    }
}

fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_changes_what_it_names_only() {
        let object = json!({"metadata": {"uid": "u", "labels": {"a": "b"}, "resourceVersion": "7"}, "status": {"tags": [{"conditions": [1], "tag": "t"}]}});
        let changed = |fault: &str| {
            let mut value = object.clone();
            change(fault, &Method::GET, &mut value);
            value
        };
        assert_eq!(changed("wrong-reason"), object);
        assert_eq!(changed("lost-label")["metadata"]["labels"], Value::Null);
        assert_eq!(changed("revision-going-back")["metadata"]["resourceVersion"], "6");
        assert_eq!(changed("wrong-generation")["metadata"]["generation"], 1);
        assert_eq!(changed("unchanged-revision"), object);
        assert_eq!(changed("missing-condition")["status"], json!({"tags": [{"tag": "t"}]}));
    }
}
