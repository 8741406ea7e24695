//! Defaults of a decoded route, and what Go's encoding leaves out (`library-go/pkg/route/defaulting`).

use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

/// Legacy placeholder that old clients sent for "no destination CA"; it counts as none.
const EMPTY_DESTINATION_CA: &str = "-----BEGIN COMMENT-----
This is an empty PEM file created to provide backwards compatibility
for reencrypt routes that have no destinationCACertificate. This 
content will only appear for routes accessed via /oapi/v1/routes.
-----END COMMENT-----
";

/// Texts that are left out when empty.
const OPTIONAL_SPEC: [&str; 4] = ["host", "path", "subdomain", "wildcardPolicy"];
const OPTIONAL_TLS: [&str; 5] =
    ["caCertificate", "certificate", "destinationCACertificate", "insecureEdgeTerminationPolicy", "key"];

/// Fills in defaults. A field of a wrong type stays as it is: that is for validation to refuse.
pub(super) fn apply(object: &mut Object) {
    spec(object);
    status(object);
}

fn spec(object: &mut Object) {
    let Some(spec) = child(&mut object.0, "spec") else { return };
    prune(spec, &OPTIONAL_SPEC);
    for field in ["httpHeaders", "port", "tls"] {
        if spec.get(field).is_some_and(Value::is_null) {
            spec.remove(field);
        }
    }
    if spec.get("alternateBackends").is_some_and(is_empty_list) {
        spec.remove("alternateBackends");
    }
    spec.entry("wildcardPolicy").or_insert_with(|| json!("None"));
    if let Some(to) = child(spec, "to") {
        target(to);
    }
    for backend in objects(spec.get_mut("alternateBackends")) {
        target(backend);
    }
    if let Some(Value::Object(tls)) = spec.get_mut("tls") {
        termination(tls);
    }
}

/// Drops the legacy placeholder from a reencrypt route.
pub(super) fn strip_empty_destination_ca(object: &mut Object) {
    let Some(Value::Object(tls)) = object.0.get_mut("spec").and_then(|spec| spec.get_mut("tls")) else {
        return;
    };
    let is = |field: &str, text: &str| tls.get(field).and_then(Value::as_str) == Some(text);
    if is("termination", "reencrypt") && is("destinationCACertificate", EMPTY_DESTINATION_CA) {
        tls.remove("destinationCACertificate");
    }
}

fn target(backend: &mut Map<String, Value>) {
    if empty(backend.get("kind")) {
        backend.insert("kind".to_owned(), json!("Service"));
    }
    if backend.get("weight").is_none_or(Value::is_null) {
        backend.insert("weight".to_owned(), json!(100));
    }
}

fn termination(tls: &mut Map<String, Value>) {
    prune(tls, &OPTIONAL_TLS);
    if tls.get("externalCertificate").is_some_and(Value::is_null) {
        tls.remove("externalCertificate");
    }
    if empty(tls.get("termination")) {
        let chosen = if tls.contains_key("destinationCACertificate") { "" } else { "edge" };
        tls.insert("termination".to_owned(), json!(chosen));
    }
    let lower = match tls.get("termination").and_then(Value::as_str) {
        Some("Edge") => "edge",
        Some("Passthrough") => "passthrough",
        Some("Reencrypt") => "reencrypt",
        _ => return,
    };
    tls.insert("termination".to_owned(), json!(lower));
}

fn status(object: &mut Object) {
    let Some(status) = child(&mut object.0, "status") else { return };
    for ingress in objects(status.get_mut("ingress")) {
        if empty(ingress.get("wildcardPolicy")) {
            ingress.insert("wildcardPolicy".to_owned(), json!("None"));
        }
    }
    if status.get("ingress").is_some_and(is_empty_list) {
        status.remove("ingress");
    }
}

/// The object in a field, made where the field is absent or null.
fn child<'a>(map: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let slot = map.entry(field).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn prune(map: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        if map.contains_key(*field) && empty(map.get(*field)) {
            map.remove(*field);
        }
    }
}

/// Whether a text is absent, null or empty.
fn empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}
