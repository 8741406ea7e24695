//! ImageStreams: nobody ships a CRD of them, so its schema is written here after the Go types.

use picoshift_tests::http::patch;
use serde_json::{Value, json};

use crate::subject::{Manifest, Subject};

/// ImageStreams of about 1.7 KB as they are served, status included.
pub(crate) static IMAGE_STREAMS: Subject = Subject {
    prefix: "imagestreams-",
    group: "image.openshift.io",
    crd_group: "image.bench.picoshift.io",
    kind: "ImageStream",
    plural: "imagestreams",
    manifest: Manifest::Schema(schema),
    body,
    // What a tag is for: the spec changes, but no tag gets another image and no history grows.
    change: |number| {
        let note = json!({"description": format!("build {number}")});
        (patch::JSON, json!([{"op": "add", "path": "/spec/tags/0/annotations", "value": note}]))
    },
};

/// Three tags which only note a pull spec: nobody tries to import them while others measure.
fn body(name: &str, _namespace: &str) -> Value {
    let tag = |tag: &str| {
        json!({
            "name": tag, "annotations": null,
            "from": {"kind": "DockerImage", "name": format!("registry.bench.example.org/shop/{name}:{tag}")},
            "reference": true, "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"},
        })
    };
    json!({
        "metadata": {
            "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop", "team": "storefront"},
        },
        "spec": {"lookupPolicy": {"local": false}, "tags": [tag("1.0"), tag("1.1"), tag("latest")]},
    })
}

fn schema() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer", "format": "int64", "nullable": true});
    let yes = json!({"type": "boolean"});
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let tag = object(&json!({
        "name": text, "from": reference(), "reference": yes, "generation": number,
        "annotations": {"type": "object", "nullable": true, "additionalProperties": text},
        "importPolicy": object(&json!({
            "insecure": yes, "scheduled": yes,
            "importMode": {"type": "string", "enum": ["", "Legacy", "PreserveOriginal"]},
        })),
        "referencePolicy": object(&json!({"type": {"type": "string", "enum": ["Source", "Local"]}})),
    }));
    let event = object(&json!({
        "created": time, "dockerImageReference": text, "image": text, "generation": number,
    }));
    let condition = object(&json!({
        "type": text, "status": text, "lastTransitionTime": time, "reason": text, "message": text,
        "generation": number,
    }));
    let history = object(&json!({"tag": text, "items": list(&event), "conditions": list(&condition)}));
    object(&json!({
        "apiVersion": text, "kind": text, "metadata": {"type": "object"},
        "spec": object(&json!({
            "dockerImageRepository": text, "lookupPolicy": object(&json!({"local": yes})), "tags": list(&tag),
        })),
        "status": object(&json!({
            "dockerImageRepository": text, "publicDockerImageRepository": text, "tags": list(&history),
        })),
    }))
}

/// An ObjectReference.
fn reference() -> Value {
    let text = json!({"type": "string"});
    object(&json!({
        "apiVersion": text, "fieldPath": text, "kind": text, "name": text, "namespace": text,
        "resourceVersion": text, "uid": text,
    }))
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "nullable": true, "items": items})
}
