//! Tags as they are shown: the recorded answers, and what their tables say.

use jiff::Timestamp;
use picoshift_machinery::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::image_tag::ImageTags;
use super::super::kind::{TagKind, semantic};
use super::super::stream_tag::StreamTags;
use super::super::{embedded, row};
use crate::groups::image::model::{self, Event};

const DIGEST: &str = "sha256:a51146d38077ff992eba84cf1d5e9b249073503eb74868699016153b031a38f7";

pub(super) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The recorded stream after an import that failed and a push.
fn stream() -> Object {
    let tag = |name: &str, generation: i64, from: &str| {
        json!({"name": name, "annotations": null, "from": {"kind": "DockerImage", "name": from},
            "generation": generation, "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"}})
    };
    let repository = "image-registry.openshift-image-registry.svc:5000/demo/app";
    object(json!({
        "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": "app", "namespace": "demo", "uid": "a056519c", "resourceVersion": "655", "generation": 6,
            "creationTimestamp": "2026-11-30T03:58:40Z",
            "annotations": {"openshift.io/image.dockerRepositoryCheck": "2026-11-30T03:58:44Z"}},
        "spec": {"lookupPolicy": {"local": true},
            "tags": [tag("1.0", 2, "quay.io/lab/app:1.0"), tag("local", 6, "127.0.0.1:1/lab/local:1")]},
        "status": {"dockerImageRepository": repository, "tags": [
            {"tag": "local", "items": null, "conditions": [{"type": "ImportSuccess", "status": "False",
                "lastTransitionTime": "2026-11-30T03:58:44Z", "reason": "InternalError", "generation": 6}]},
            {"tag": "pushed", "items": [{"created": "2026-11-30T03:58:45Z", "generation": 6, "image": DIGEST,
                "dockerImageReference": format!("{repository}@{DIGEST}")}]},
        ]},
    }))
}

fn image() -> Object {
    object(json!({
        "kind": "Image", "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": DIGEST, "resourceVersion": "654", "uid": "0263986d",
            "creationTimestamp": "2026-11-30T03:58:45Z"},
        "dockerImageReference": "elsewhere", "dockerImageManifest": "{}", "dockerImageConfig": "{}",
        "dockerImageLayers": [{"name": "sha256:a3", "size": 32, "mediaType": "t"}],
        "dockerImageMetadata": {"kind": "DockerImage", "Id": ""}, "dockerImageMetadataVersion": "1.0",
    }))
}

#[test]
fn a_pushed_tag_is_as_recorded() {
    let shown = StreamTags.render(&stream(), "pushed", Some(&image()), false).unwrap();
    let reference = format!("image-registry.openshift-image-registry.svc:5000/demo/app@{DIGEST}");
    let wanted = json!({
        "kind": "ImageStreamTag", "apiVersion": "image.openshift.io/v1", "generation": 6, "tag": null,
        "lookupPolicy": {"local": true},
        "metadata": {"creationTimestamp": "2026-11-30T03:58:45Z", "name": "app:pushed", "namespace": "demo",
            "resourceVersion": "655", "uid": "a056519c"},
        "image": {"metadata": {"name": DIGEST, "resourceVersion": "654", "uid": "0263986d",
                "creationTimestamp": "2026-11-30T03:58:45Z"},
            "dockerImageReference": reference,
            "dockerImageLayers": [{"name": "sha256:a3", "size": 32, "mediaType": "t"}],
            "dockerImageMetadata": {"kind": "DockerImage", "Id": ""}, "dockerImageMetadataVersion": "1.0"},
    });
    assert_eq!(Value::Object(shown.0), wanted);
}

#[test]
fn tags_without_an_event_are_not_there_as_recorded() {
    for tag in ["1.0", "local", "nosuch"] {
        assert!(StreamTags.render(&stream(), tag, None, false).is_none(), "{tag}");
    }
    assert_eq!(StreamTags.names(&stream()), ["local", "pushed"]);
    assert!(ImageTags.render(&stream(), "nosuch", None, false).is_none());
    assert_eq!(ImageTags.names(&stream()), ["1.0", "local", "pushed"]);
}

#[test]
fn a_tag_that_was_just_set_is_as_recorded() {
    let shown = StreamTags.render(&stream(), "1.0", None, true).unwrap();
    assert_eq!(shown.0["generation"], 0);
    assert_eq!(shown.0["tag"]["generation"], 2);
    let wanted = json!({"metadata": {}, "dockerImageMetadata": {"kind": "DockerImage",
        "apiVersion": "image.openshift.io/1.0", "Id": "", "Created": null, "ContainerConfig": {}},
        "dockerImageMetadataVersion": "1.0"});
    assert_eq!(shown.0["image"], wanted);
    assert_eq!(shown.creation_timestamp(), "2026-11-30T03:58:40Z", "the stream's");
}

#[test]
fn an_image_tag_is_as_recorded() {
    let mut before = stream();
    before.set_metadata("annotations", Value::Null);
    let shown = ImageTags.render(&before, "1.0", None, false).unwrap();
    let wanted = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageTag", "image": null, "status": null,
        "metadata": {"creationTimestamp": "2026-11-30T03:58:40Z", "generation": 6, "name": "app:1.0",
            "namespace": "demo", "resourceVersion": "655", "uid": "a056519c"},
        "spec": {"annotations": null, "from": {"kind": "DockerImage", "name": "quay.io/lab/app:1.0"},
            "generation": 2, "importPolicy": {"importMode": "Legacy"}, "name": "1.0",
            "referencePolicy": {"type": "Source"}},
    });
    assert_eq!(Value::Object(shown.0), wanted);
    let pushed = ImageTags.render(&stream(), "pushed", Some(&image()), false).unwrap();
    assert_eq!(pushed.0["spec"], Value::Null);
    assert_eq!(pushed.0["status"]["items"][0]["image"], DIGEST);
    assert!(pushed.0["image"].get("dockerImageManifest").is_none());
}

#[test]
fn a_pull_spec_that_was_not_imported_is_shown_at_once() {
    let mut stream = stream();
    model::provisional::add_provisional(&mut stream, "1.0", "quay.io/lab/app:1.0", 2, "2026-11-30T03:58:41Z");
    let shown = StreamTags.render(&stream, "1.0", None, false).unwrap();
    assert_eq!(shown.str_at(&["image", "dockerImageReference"]), "quay.io/lab/app:1.0");
    assert_eq!(shown.0["image"]["metadata"], json!({}));
    assert_eq!((shown.creation_timestamp(), &shown.0["generation"]), ("2026-11-30T03:58:41Z", &json!(2)));
}

#[test]
fn annotations_of_the_tag_are_the_images_too() {
    let mut stream = stream();
    let tag = json!({"name": "pushed", "annotations": {"a": "b"}});
    model::set_spec_tag(&mut stream, tag);
    let mut image = image();
    image.set_annotation("c", "d");
    let shown = StreamTags.render(&stream, "pushed", Some(&image), false).unwrap();
    assert_eq!(shown.0["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(shown.0["image"]["metadata"]["annotations"], json!({"a": "b", "c": "d"}));
    let listed = StreamTags.render(&stream, "pushed", None, false).unwrap();
    assert_eq!(listed.0["image"]["metadata"], json!({"name": DIGEST}), "a list does not look at images");
}

#[test]
fn the_policy_says_from_where_an_image_is_pulled() {
    let event = |image: &str| Event {
        docker_image_reference: "quay.io/lab/app@sha256:1".to_owned(),
        image: image.to_owned(),
        ..Event::default()
    };
    let mut stream = stream();
    let pull = |stream: &Object, image: &str| embedded::pull_spec(stream, "l", &event(image));
    assert_eq!(pull(&stream, DIGEST), "quay.io/lab/app@sha256:1", "no spec tag");
    model::set_spec_tag(&mut stream, json!({"name": "l", "referencePolicy": {"type": "Local"}}));
    let local = format!("image-registry.openshift-image-registry.svc:5000/demo/app@{DIGEST}");
    assert_eq!(pull(&stream, DIGEST), local);
    assert_eq!(pull(&stream, ""), "quay.io/lab/app@sha256:1", "the image is not known");
    for repository in ["", "::bad::"] {
        stream.object_mut("status").insert("dockerImageRepository".to_owned(), repository.into());
        assert_eq!(pull(&stream, DIGEST), "quay.io/lab/app@sha256:1", "no registry: {repository:?}");
    }
}

/// The cells but for the name, of an image tag at 03:59:00.
fn cells(spec: &Value, status: &Value) -> Vec<Value> {
    let now: Timestamp = "2026-11-30T03:59:00Z".parse().unwrap();
    let tag = object(json!({"metadata": {"name": "a:b"}, "spec": spec, "status": status}));
    row::image_tag(&tag, now).split_off(1)
}

#[test]
fn image_tags_in_a_table() {
    let from = |kind: &str, name: &str, generation: i64| json!({"from": {"kind": kind, "name": name}, "generation": generation});
    let event = |image: &str, generation: i64| {
        json!({"items": [{"created": "2026-11-30T03:58:45Z",
        "dockerImageReference": "r:1", "image": image, "generation": generation}]})
    };
    let none = Value::Null;
    let docker = from("DockerImage", "quay.io/a:1", 2);
    let failed = json!({"items": null, "conditions": [{"type": "ImportSuccess", "status": "False",
        "reason": "NotFound", "lastTransitionTime": "2026-11-30T03:58:50Z"}]});
    let mut scheduled = docker.clone();
    scheduled["importPolicy"] = json!({"scheduled": true});
    let mut reference = docker.clone();
    reference["reference"] = json!(true);
    let mut elsewhere = from("ImageStreamTag", "s:t", 1);
    elsewhere["from"]["namespace"] = json!("ns");
    let cases = [
        // As recorded.
        (docker.clone(), none.clone(), json!(["Tag", "quay.io/a:1", null, ""])),
        (scheduled, none.clone(), json!(["Scheduled", "quay.io/a:1", null, ""])),
        (reference, event("", 2), json!(["Ref", "r:1", 1, "15 seconds ago"])),
        (docker.clone(), event("", 2), json!(["Tag", "r:1", 1, "15 seconds ago"])),
        (docker.clone(), event(DIGEST, 2), json!(["Tag", format!("image/{DIGEST}"), 1, "15 seconds ago"])),
        (docker.clone(), event(DIGEST, 1), json!(["Tag", "Importing", 1, "15 seconds ago"])),
        (docker.clone(), event(DIGEST, 3), json!(["Push", format!("image/{DIGEST}"), 1, "15 seconds ago"])),
        (none.clone(), event(DIGEST, 3), json!(["Push", format!("image/{DIGEST}"), 1, "15 seconds ago"])),
        (docker, failed, json!(["Tag", "ImportFailed (NotFound)", null, "10 seconds ago"])),
        (json!({"generation": 1}), none.clone(), json!(["", "", null, ""])),
        (none.clone(), none.clone(), json!(["", "", null, ""])),
        (from("ImageStreamImage", "s@sha256:1", 1), none.clone(), json!(["Tag", "image/sha256:1", null, ""])),
        (from("ImageStreamImage", "s", 1), none.clone(), json!(["Tag", "InvalidRefName", null, ""])),
        (from("Pod", "s", 1), none.clone(), json!(["Tag", "InvalidRefKind", null, ""])),
        (from("ImageStreamTag", "s:t", 1), none.clone(), json!(["Tag", "istag/s:t", null, ""])),
        (
            from("ImageStreamTag", "t", 1),
            event(DIGEST, 9),
            json!(["Track", format!("image/{DIGEST}"), 1, "15 seconds ago"]),
        ),
        (elsewhere, none, json!(["Tag", "istag ns/s:t", null, ""])),
    ];
    for (spec, status, wanted) in cases {
        assert_eq!(Value::Array(cells(&spec, &status)), wanted, "{spec} {status}");
    }
}

#[test]
fn stream_tags_in_a_table() {
    let now: Timestamp = "2026-11-30T03:58:46Z".parse().unwrap();
    let shown = StreamTags.render(&stream(), "pushed", None, false).unwrap();
    let reference = format!("image-registry.openshift-image-registry.svc:5000/demo/app@{DIGEST}");
    assert_eq!(row::stream_tag(&shown, now), ["app:pushed", &reference, "1 second ago", DIGEST]);
    assert_eq!(row::stream_image(&shown, now), ["app:pushed", "1 second ago", &reference, DIGEST]);
    assert_eq!(row::stream_tag(&Object::default(), now), ["", "", "292 years ago", ""]);
}

#[test]
fn empty_and_absent_are_the_same() {
    let one = json!({"a": {}, "b": [], "c": "", "d": null, "e": {"f": [{}]}, "g": 0, "h": false});
    assert_eq!(semantic(Some(&one)), json!({"e": {"f": [null]}, "g": 0, "h": false}));
    assert_eq!(semantic(Some(&json!({"a": {"b": ""}}))), semantic(None));
}

proptest! {
    /// Whatever a stream holds, its tags are shown, with the names of the list, and never twice.
    #[test]
    fn any_stream_is_shown(
        spec in prop::collection::vec(("[a-c]{1,2}", "DockerImage|ImageStreamTag|ImageStreamImage|X", "[a-c:@]{0,4}"), 0..5),
        status in prop::collection::vec(("[a-c]{1,2}", "[a-c]{0,2}", "[a-c]{0,2}"), 0..5),
    ) {
        let spec: Vec<Value> = spec.iter().map(|(name, kind, from)| json!({"name": name, "from": {"kind": kind, "name": from}})).collect();
        let status: Vec<Value> = status.iter().map(|(tag, image, reference)| json!({"tag": tag, "items": [{"image": image, "dockerImageReference": reference}]})).collect();
        let mut stream = object(json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"tags": spec}, "status": {"tags": status}}));
        model::normalise(&mut stream);
        for kind in [&StreamTags as &dyn TagKind, &ImageTags] {
            let names = kind.names(&stream);
            let mut sorted = names.clone();
            sorted.sort();
            sorted.dedup();
            prop_assert_eq!(&sorted, &names);
            for name in names {
                let Some(shown) = kind.render(&stream, &name, None, false) else { continue };
                prop_assert_eq!(shown.name(), format!("s:{name}"));
                prop_assert_eq!(kind.row(&shown).len(), kind.resource().columns.len());
            }
        }
    }
}
