//! Streams as openshift-controller-manager sees them, and as our server shows them.

use serde_json::{Value, json};

use super::*;

fn stream(change: impl FnOnce(&mut Value)) -> ImageStream {
    let mut stream = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 2,
            "annotations": {REPOSITORY_CHECK: "2026-01-01T00:00:00Z"}},
        "spec": {"lookupPolicy": {"local": false}, "tags": [{
            "name": "latest", "annotations": null, "generation": 2,
            "from": {"kind": "DockerImage", "name": "registry.example.org/web:1"},
            "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"},
        }]},
        "status": {"dockerImageRepository": "", "tags": [{"tag": "latest", "items": [
            {"created": "2026-01-01T00:00:00Z", "dockerImageReference": "registry.example.org/web@sha256:a",
                "generation": 1, "image": "sha256:a"}]}]},
    });
    change(&mut stream);
    serde_json::from_value(stream).unwrap()
}

fn tags(request: Option<Request>) -> Vec<String> {
    let Some(request) = request else { return Vec::new() };
    let images = request.body["spec"]["images"].as_array().cloned().unwrap_or_default();
    images.iter().map(|image| image["to"]["name"].as_str().unwrap().to_owned()).collect()
}

fn changed(change: impl FnOnce(&mut Value)) -> Vec<String> {
    tags(request(&stream(change), Why::Changed))
}

#[test]
fn a_tag_that_is_newer_than_its_image_is_asked_for() {
    let request = request(&stream(|_| {}), Why::Changed).unwrap();
    assert_eq!(
        request.body,
        json!({
            "apiVersion": "image.openshift.io/v1", "kind": "ImageStreamImport",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"},
            "spec": {"import": true, "images": [{
                "from": {"kind": "DockerImage", "name": "registry.example.org/web:1"}, "to": {"name": "latest"},
                "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"},
            }]},
            "status": {},
        })
    );
}

#[test]
fn a_recorded_answer_is_enough() {
    let event = |generation: i64, image: &str| json!({"generation": generation, "image": image});
    let items = |items: Value| move |stream: &mut Value| stream["status"]["tags"][0]["items"] = items;
    assert!(changed(items(json!([event(2, "sha256:b")]))).is_empty());
    assert!(changed(items(json!([event(3, "sha256:b")]))).is_empty());
    // A failure is an answer too, also without any event.
    let failed = |generation: i64| {
        move |stream: &mut Value| {
            stream["status"]["tags"][0]["items"] = Value::Null;
            stream["status"]["tags"][0]["conditions"] =
                json!([{"type": "ImportSuccess", "status": "False", "generation": generation}]);
        }
    };
    assert!(changed(failed(2)).is_empty());
    assert_eq!(changed(failed(1)), ["latest"]);
}

#[test]
fn a_tag_that_only_resolves_to_its_reference_is_not_imported_yet() {
    let provisional =
        json!({"generation": 2, "image": "", "dockerImageReference": "registry.example.org/web:1"});
    let alone = provisional.clone();
    assert_eq!(changed(|stream| stream["status"]["tags"][0]["items"] = json!([alone])), ["latest"]);
    let before = json!({"generation": 1, "image": "sha256:a"});
    assert_eq!(
        changed(|stream| stream["status"]["tags"][0]["items"] = json!([provisional, before])),
        ["latest"]
    );
    assert_eq!(changed(|stream| stream["status"] = Value::Null), ["latest"]);
}

#[test]
fn what_is_no_image_in_a_registry_is_not_asked_for() {
    assert!(changed(|stream| stream["spec"]["tags"][0]["reference"] = json!(true)).is_empty());
    assert!(changed(|stream| stream["spec"]["tags"][0]["from"]["kind"] = json!("ImageStreamTag")).is_empty());
    assert!(changed(|stream| stream["spec"]["tags"][0]["from"] = Value::Null).is_empty());
    assert!(changed(|stream| stream["spec"]["tags"] = Value::Null).is_empty());
}

#[test]
fn a_tag_without_a_generation_counts_only_while_the_stream_was_never_checked() {
    let unknown = |stream: &mut Value| stream["spec"]["tags"][0]["generation"] = Value::Null;
    assert!(changed(unknown).is_empty());
    let never = |stream: &mut Value| {
        unknown(stream);
        stream["metadata"]["annotations"] = Value::Null;
    };
    assert_eq!(changed(never), ["latest"]);
    let known = |stream: &mut Value| {
        stream["metadata"]["annotations"] = Value::Null;
        stream["spec"]["tags"][0]["generation"] = json!(1);
    };
    assert!(changed(known).is_empty());
}

#[test]
fn a_repository_is_imported_once_with_all_its_tags() {
    let whole = |stream: &mut Value| {
        stream["metadata"]["annotations"] = json!({INSECURE: "true"});
        stream["spec"]["dockerImageRepository"] = json!("registry.example.org/web");
        stream["spec"]["tags"][0]["generation"] = json!(1);
    };
    let request = |stream: &ImageStream| super::request(stream, Why::Changed);
    let asked = request(&stream(whole)).unwrap();
    assert_eq!(
        asked.body["spec"]["repository"],
        json!({"from": {"kind": "DockerImage", "name": "registry.example.org/web"},
            "importPolicy": {"insecure": true}})
    );
    assert_eq!(tags(Some(asked)), ["latest"]);
    let alone = |stream: &mut Value| {
        whole(stream);
        stream["spec"]["tags"] = Value::Null;
    };
    assert_eq!(request(&stream(alone)).unwrap().body["spec"].get("images"), None);
    let done = |value: &mut Value| {
        whole(value);
        value["metadata"]["annotations"][REPOSITORY_CHECK] = json!("2026-01-01T00:00:00Z");
    };
    assert_eq!(request(&stream(done)), None);
}

#[test]
fn scheduled_tags_are_asked_for_again_and_again() {
    let scheduled = |name: &'static str| {
        move |stream: &mut Value| {
            let tag = &mut stream["spec"]["tags"][0];
            tag["importPolicy"]["scheduled"] = json!(true);
            tag["from"]["name"] = json!(name);
            tag["generation"] = json!(1);
        }
    };
    let moving = stream(scheduled("registry.example.org/web:1"));
    assert!(is_scheduled(&moving));
    assert_eq!(request(&moving, Why::Changed), None);
    assert_eq!(tags(request(&moving, Why::Scheduled)), ["latest"]);
    // A digest stays what it is once it has been imported.
    let fixed = stream(scheduled("registry.example.org/web@sha256:a"));
    assert!(!is_scheduled(&fixed));
    assert_eq!(request(&fixed, Why::Scheduled), None);
    let not_yet = stream(|stream| {
        scheduled("registry.example.org/web@sha256:a")(stream);
        stream["status"]["tags"][0]["items"][0]["image"] = json!("");
    });
    assert!(is_scheduled(&not_yet));
    assert!(!is_scheduled(&stream(|_| {})));
}

#[test]
fn requests_for_the_same_are_recognised() {
    let digest = |change: fn(&mut Value)| request(&stream(change), Why::Changed).unwrap().digest;
    let first = digest(|_| {});
    assert_eq!(digest(|stream| stream["metadata"]["resourceVersion"] = json!("9")), first);
    assert_ne!(digest(|stream| stream["spec"]["tags"][0]["generation"] = json!(3)), first);
    assert_ne!(digest(|stream| stream["spec"]["tags"][0]["from"]["name"] = json!("b")), first);
    assert_ne!(digest(|stream| stream["metadata"]["uid"] = json!("u-2")), first);
}
