//! Answers that the real server gave, replayed.

use std::sync::Arc;

use picoshift_machinery::media_type::MetaVersion;
use picoshift_machinery::{Object, Status};
use serde_json::{Map, Value, json};

use super::model::{
    Condition, REPOSITORY_CHECK, provisional, set_condition, set_spec_tag, spec_tags::set_spec_tag_field,
};
use super::testing::{Fixture, cx};
use super::{Hostnames, Part};
use crate::rest::fields::{FieldManagers, Tracker};
use crate::rest::patch::{ParsedPatch, PatchUpdater, parse};
use crate::rest::query::IncludeObject;
use crate::rest::table::{TableOptions, table};
use crate::rest::{GetOptions, WriteOptions};
use crate::schema::{Schemas, merge_types};

/// Requests and answers of the real server, whose caller was an administrator.
const RECORDED: &str = include_str!("testdata/recorded.json");
/// The registry that it was told of.
const REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000";
const IMAGE: &str = "sha256:a51146d38077ff992eba84cf1d5e9b249073503eb74868699016153b031a38f7";

fn recorded() -> Value {
    serde_json::from_str(RECORDED).unwrap()
}

async fn fixture() -> Fixture {
    Fixture::new(Hostnames { internal: REGISTRY.to_owned(), external: String::new() }, &[]).await
}

/// Without what every server makes anew.
fn comparable(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for field in ["uid", "resourceVersion", "creationTimestamp", "created"] {
                    map.remove(field);
                }
                map.values_mut().for_each(walk);
            }
            Value::Array(list) => list.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

/// What the stream would be without provisional events.
fn without_provisional(stream: &Object) -> Value {
    let mut bare = stream.clone();
    let tags: Vec<String> = super::model::spec_tags(stream).into_keys().map(str::to_owned).collect();
    for tag in tags {
        if provisional::is_provisional(&bare, &tag) {
            super::model::status_tags::remove_latest(&mut bare, &tag);
        }
    }
    if bare.at(&["status", "tags"]).and_then(Value::as_array).is_some_and(Vec::is_empty) {
        bare.object_mut("status").remove("tags");
    }
    bare.0.into()
}

fn answer(outcome: Result<Value, Status>) -> Value {
    outcome.unwrap_or_else(|status| status.to_value())
}

#[tokio::test]
async fn exchanges_end_as_recorded() {
    let fixture = fixture().await;
    let mut replayed = 0;
    for case in recorded()["exchanges"].as_array().unwrap() {
        let (verb, path) = (case["verb"].as_str().unwrap(), case["path"].as_str().unwrap());
        let parts: Vec<&str> = path.split('/').collect();
        let (namespace, rest) = match parts.as_slice() {
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let got = match (verb, rest) {
            ("POST", [plural]) => answer(fixture.post(plural, namespace, &case["body"]).await),
            ("DELETE", [plural, name]) => fixture.delete(plural, namespace, name).await,
            ("GET", ["imagestreams", name, "layers"]) => {
                let cx = cx(namespace, "imagestreams", "layers");
                let outcome = fixture.storage("imagestreams").get(&cx, name, &GetOptions::default()).await;
                answer(outcome.map(|item| serde_json::from_slice(&item.bytes).unwrap()))
            }
            // These need a namespace with secrets, and the stream that the next test makes.
            ("GET", [.., "secrets"]) | ("PATCH", _) => continue,
            other => panic!("{other:?}"),
        };
        replayed += 1;
        assert_eq!(comparable(got), comparable(case["answer"].clone()), "{verb} {path} {}", case["body"]);
    }
    assert_eq!(replayed, 12);
}

#[tokio::test]
async fn names_are_refused_as_recorded() {
    let fixture = fixture().await;
    for (name, why) in
        [("Bad_Name", r#"must match "[a-z0-9]+(?:[._-][a-z0-9]+)*""#), ("aaaa/bbbb", "may not contain '/'")]
    {
        let refused = fixture.stream(&format!("demo/{name}"), json!([])).await.unwrap_err();
        assert_eq!(
            refused.message,
            format!(
                "ImageStream.image.openshift.io \"{name}\" is invalid: metadata.name: Invalid value: \"{name}\": {why}"
            )
        );
    }
}

/// `oc create imagestream`, `oc tag` twice, `set image-lookup`, a failed import and a push: the stream is the real
/// server's at every step, but for provisional events.
#[tokio::test]
async fn a_stream_lives_as_recorded() {
    let fixture = fixture().await;
    let recorded = recorded();
    let streams = &recorded["streams"];
    let made = fixture.post("imagestreams", "demo", &json!({"metadata": {"name": "app"}})).await.unwrap();
    assert_eq!(comparable(made), comparable(streams[0].clone()));

    let tag = |name: &'static str, source: &'static str, policy: Value| {
        move |stream: &mut Object| {
            let from = json!({"kind": "DockerImage", "name": source});
            set_spec_tag(stream, json!({"name": name, "from": from, "importPolicy": policy.clone()}));
        }
    };
    fixture.change("demo/app", Part::Spec, tag("1.0", "quay.io/lab/app:1.0", json!({}))).await.unwrap();
    let scheduled = tag("latest", "quay.io/lab/app:latest", json!({"scheduled": true}));
    let tagged = fixture.change("demo/app", Part::Spec, scheduled).await.unwrap();
    assert_eq!(comparable(without_provisional(&tagged)), comparable(streams[1].clone()));

    let lookup = |stream: &mut Object| {
        stream.object_mut("spec").insert("lookupPolicy".to_owned(), json!({"local": true}));
    };
    fixture.change("demo/app", Part::Spec, lookup).await.unwrap();
    let local = tag("local", "127.0.0.1:1/lab/local:1", json!({}));
    fixture.change("demo/app", Part::Spec, local).await.unwrap();
    let message = r#"Internal error occurred: 127.0.0.1:1/lab/local:1: Get "https://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused"#;
    let failed = |stream: &mut Object| {
        let now = "2026-11-30T03:58:44Z";
        stream.set_annotation(REPOSITORY_CHECK, now);
        set_spec_tag_field(stream, "local", "generation", json!(0));
        let generation = stream.generation().unwrap_or(0) + 1;
        set_condition(stream, "local", &Condition::import_failed("InternalError", message, generation, now));
    };
    fixture.change("demo/app", Part::Both, failed).await.unwrap();
    let mapping = json!({
        "kind": "ImageStreamMapping", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "app"},
        "tag": "pushed", "image": {
            "metadata": {"name": IMAGE},
            "dockerImageMetadata": {"Architecture": "amd64", "Config": {"Cmd": ["/bin/sh"], "Env": ["A=b"]}},
            "dockerImageLayers": recorded["image"]["dockerImageLayers"],
        },
    });
    let pushed = fixture.post("imagestreammappings", "demo", &mapping).await.unwrap();
    let success =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    assert_eq!(pushed, success);
    let now = fixture.get("demo/app").await;
    assert_eq!(comparable(without_provisional(&now)), comparable(streams[2].clone()));
    let image = fixture.group.access.image(IMAGE).await.unwrap();
    assert_eq!(comparable(image.0.into()), comparable(recorded["image"].clone()));

    // The same push again changes nothing.
    fixture.post("imagestreammappings", "demo", &mapping).await.unwrap();
    assert_eq!(fixture.get("demo/app").await, now);
    let missing = fixture.post("imagestreammappings", "other", &mapping).await.unwrap_err();
    assert_eq!(missing.message, "imagestreammappings.image.openshift.io \"app\" not found");

    status_patch(&fixture, &recorded).await;
}

async fn status_patch(fixture: &Fixture, recorded: &Value) {
    let case = recorded["exchanges"].as_array().unwrap().iter().find(|case| case["verb"] == "PATCH").unwrap();
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", "application/merge-patch+json".parse().unwrap());
    let patch = parse(&headers, case["body"].to_string().as_bytes()).unwrap();
    let apply = |patch: &ParsedPatch, current: &Object| patch.apply(current);
    let options = WriteOptions { subresource: "status".to_owned(), ..WriteOptions::default() };
    let cx = cx("demo", "imagestreams", "status");
    let storage = fixture.storage("imagestreams");
    let updated = storage.update(&cx, "app", &PatchUpdater::new(patch, apply), &options).await.unwrap();
    let shown = updated.into_item().object().unwrap();
    // The recorded one has been written twice more, by `oc`.
    let mut wanted = comparable(case["answer"].clone());
    wanted["metadata"]["generation"] = json!(6);
    assert_eq!(comparable(without_provisional(&shown)), wanted);
    let kept = fixture.get("demo/app").await;
    assert_eq!(kept.str_at(&["status", "dockerImageRepository"]), format!("{REGISTRY}/demo/app"));
    assert_eq!(
        comparable(without_provisional(&kept))["spec"],
        comparable(recorded["watched"].clone())["spec"]
    );
}

#[tokio::test]
async fn tables_have_the_recorded_columns() {
    let fixture = fixture().await;
    let made = fixture.stream("demo/created", json!([])).await.unwrap();
    let options = TableOptions { version: MetaVersion::V1, include: IncludeObject::None };
    let storage = fixture.storage("imagestreams");
    let shown = table(&*storage, &[made], &Map::new(), options, true);
    assert_eq!(shown["columnDefinitions"], recorded()["table"]["columnDefinitions"]);
    assert_eq!(shown["rows"][0]["cells"], json!(["created", format!("{REGISTRY}/demo/created"), "", ""]));
}

/// Creates as a client of this name does; answers what it owns.
async fn owned_by_creator(fixture: &Fixture, plural: &str, body: &Value) -> Value {
    let storage = fixture.storage(plural);
    let types = Arc::new(merge_types().unwrap());
    let fields = FieldManagers::new(&types, &Schemas::load().unwrap(), storage.resource()).unwrap();
    let tracker = Tracker::new(Arc::clone(fields.of("").unwrap()), "curl".to_owned());
    let options = WriteOptions { tracker: Some(tracker), ..WriteOptions::default() };
    let object = fixture.decode(plural, body).unwrap();
    let item = storage.create(&cx("demo", plural, ""), object, &options).await.unwrap();
    let made: Value = serde_json::from_slice(&item.bytes).unwrap();
    let entries = made["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["manager"]), (1, &json!("curl")), "{made}");
    entries[0]["fieldsV1"].clone()
}

#[tokio::test]
async fn creators_own_what_they_own_on_the_real_server() {
    let fixture = fixture().await;
    let body = json!({"metadata": {"name": "e11"}, "spec": {"tags": [{"name": "dup"}, {"name": "dup"}]}});
    assert_eq!(
        owned_by_creator(&fixture, "imagestreams", &body).await,
        json!({"f:spec": {"f:tags": {".": {}, "k:{\"name\":\"dup\"}": {".": {}, "f:annotations": {},
            "f:generation": {}, "f:importPolicy": {".": {}, "f:importMode": {}}, "f:name": {},
            "f:referencePolicy": {".": {}, "f:type": {}}}}}})
    );
    // Not stored, and noted all the same.
    let image = json!({"from": {"kind": "DockerImage", "name": "127.0.0.1:1/x/y:1"}});
    let body =
        json!({"metadata": {"name": "imp"}, "spec": {"import": false, "images": [image]}, "status": {}});
    let owned = owned_by_creator(&fixture, "imagestreamimports", &body).await;
    assert_eq!(owned, json!({"f:spec": {"f:images": {}}}));
}
