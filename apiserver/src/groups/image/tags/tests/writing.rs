//! Writes of tags: the recorded answers, and that nothing is lost.

use std::sync::Arc;

use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::fixture::{Fixture, context, context_of, docker_tag};
use crate::groups::image::model::{spec_tags, status_tags};
use crate::rest::patch::Replacement;
use crate::rest::{Deleted, ListOptions, Updater, WriteOptions};

/// A patch, as a function.
struct Patch<F>(F);

impl<F: Fn(&mut Object) + Send + Sync> Updater for Patch<F> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut object = current.clone();
        (self.0)(&mut object);
        Ok(object)
    }

    fn retries(&self) -> bool {
        true
    }
}

/// Code, reason and message.
fn told<T>(outcome: Result<T, Status>) -> (u16, String, String) {
    match outcome {
        Ok(_) => panic!("it was expected to fail"),
        Err(status) => (status.code, status.reason, status.message),
    }
}

fn wanted(code: u16, reason: &str, message: &str) -> (u16, String, String) {
    (code, reason.to_owned(), message.to_owned())
}

/// What was recorded of a tag that was written, with the pull spec shown at once as we do.
fn recorded(name: &str, tag: &str, spec_generation: i64, pull_spec: &str) -> Value {
    json!({
        "kind": "ImageStreamTag", "apiVersion": "image.openshift.io/v1",
        "metadata": {"name": name, "namespace": "demo"},
        "tag": {"name": tag, "annotations": null, "from": {"kind": "DockerImage", "name": pull_spec},
            "generation": spec_generation, "importPolicy": {"importMode": "Legacy"},
            "referencePolicy": {"type": "Source"}},
        "generation": spec_generation, "lookupPolicy": {"local": false},
        "image": {"metadata": {}, "dockerImageReference": pull_spec,
            "dockerImageMetadata": {"kind": "DockerImage", "apiVersion": "image.openshift.io/1.0", "Id": "",
                "Created": null, "ContainerConfig": {}},
            "dockerImageMetadataVersion": "1.0"},
    })
}

fn without_system_fields(mut object: Object) -> Value {
    for field in ["creationTimestamp", "resourceVersion", "uid"] {
        assert!(!object.str_at(&["metadata", field]).is_empty(), "{field}");
        object.set_metadata(field, Value::Null);
    }
    Value::Object(object.0)
}

#[tokio::test]
async fn creates_are_as_recorded() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    let body = docker_tag("viatag:1", "quay.io/lab/viatag:1");
    let made = fixture.post(istags, body.clone()).await.unwrap();
    assert_eq!(made, fixture.get(istags, "viatag:1").await.unwrap(), "the answer is what a GET shows");
    assert_eq!(without_system_fields(made), recorded("viatag:1", "1", 1, "quay.io/lab/viatag:1"));
    let taken = fixture.post(istags, body).await.unwrap_err();
    let details = taken.details.clone().unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("viatag:1", "imagestreamtag"));
    let text = "imagestreamtag.image.openshift.io \"viatag:1\" already exists";
    assert_eq!(told(Err::<(), _>(taken)), wanted(409, "AlreadyExists", text));
    let nameless = fixture.post(istags, docker_tag("viatag", "quay.io/lab/viatag:1")).await;
    assert_eq!(told(nameless), wanted(500, "", "\"viatag\" must be of the form <stream_name>:<tag>"));
    let (created, put) = fixture.put(istags, docker_tag("viatag:3", "quay.io/lab/viatag:3")).await.unwrap();
    assert!(created);
    assert_eq!(without_system_fields(put), recorded("viatag:3", "3", 2, "quay.io/lab/viatag:3"));
    let (created, put) = fixture.put(istags, docker_tag("viatag:3", "quay.io/lab/viatag:4")).await.unwrap();
    assert!(!created);
    assert_eq!(put.0["tag"]["generation"], 3);
    assert_eq!(put.0["image"]["dockerImageReference"], "quay.io/lab/viatag:4");
}

#[tokio::test]
async fn reads_fail_as_recorded() {
    let fixture = Fixture::new().await;
    fixture.make("demo", "app", Value::Null, &["1"]).await;
    let form = "ImageStreamTags must be retrieved with <name>:<tag>";
    assert_eq!(told(fixture.get(&fixture.istags, "app").await), wanted(400, "BadRequest", form));
    for (name, missing) in [("app:nosuch", "app:nosuch"), ("nosuch:1", "nosuch")] {
        let status = fixture.get(&fixture.istags, name).await.unwrap_err();
        let details = status.details.clone().unwrap();
        assert_eq!((details.name.as_str(), details.kind.as_str()), (missing, "imagestreamtags"));
        let text = format!("imagestreamtags.image.openshift.io \"{missing}\" not found");
        assert_eq!(told(Err::<(), _>(status)), wanted(404, "NotFound", &text));
        let text = format!("imagetags.image.openshift.io \"{missing}\" not found");
        assert_eq!(told(fixture.get(&fixture.itags, name).await), wanted(404, "NotFound", &text));
    }
    let form = "ImageTags must be retrieved with <name>:<tag>";
    assert_eq!(told(fixture.get(&fixture.itags, "app@1").await), wanted(400, "BadRequest", form));
}

#[tokio::test]
async fn invalid_tags_are_refused_with_their_fields() {
    let fixture = Fixture::new().await;
    let refused = fixture.post(&fixture.istags, docker_tag("a:1", "x:y:z")).await;
    let text = "ImageStreamTag.image.openshift.io \"a:1\" is invalid: tag.from.name: Invalid value: \"x:y:z\": invalid reference format";
    assert_eq!(told(refused), wanted(422, "Invalid", text));
    let mut body = docker_tag("a:1", "x");
    body["tag"]["annotations"] = json!({"a": "b"});
    let text = "ImageStreamTag.image.openshift.io \"a:1\" is invalid: tag.annotations: Invalid value: \"<map>\": tag annotations must not be provided or must be equal to the object meta annotations";
    assert_eq!(told(fixture.post(&fixture.istags, body).await), wanted(422, "Invalid", text));
    // A name that no stream can have is the stream's error.
    let refused = fixture.post(&fixture.istags, docker_tag("Bad_Name:1", "x")).await;
    let text = "ImageStream.image.openshift.io \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": must match \"[a-z0-9]+(?:[._-][a-z0-9]+)*\"";
    assert_eq!(told(refused), wanted(422, "Invalid", text));
    let refused = fixture.post(&fixture.itags, json!({"metadata": {"name": "a:1"}, "spec": null})).await;
    let text = "ImageTag.image.openshift.io \"a:1\" is invalid: spec: Required value: spec is a required field during creation";
    assert_eq!(told(refused), wanted(422, "Invalid", text));
    let refused =
        fixture.post(&fixture.itags, json!({"metadata": {"name": "a"}, "spec": {"name": "x"}})).await;
    let text = "ImageTag.image.openshift.io \"a\" is invalid: spec.name: Invalid value: \"x\": must match image tag name";
    assert_eq!(told(refused), wanted(422, "Invalid", text));
    let generated = fixture.post(&fixture.istags, json!({"metadata": {"generateName": "a:"}})).await;
    assert_eq!(told(generated).2, "Internal error occurred: metadata.name was not generated");
    assert_eq!(fixture.list(&fixture.itags, "", &ListOptions::default()).await.unwrap().0.len(), 0);
}

#[tokio::test]
async fn versions_are_honoured_and_blind_writes_always_pass() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    let made = fixture.post(istags, docker_tag("app:1", "quay.io/a:1")).await.unwrap();
    fixture.put(istags, docker_tag("app:2", "quay.io/a:2")).await.unwrap();
    let current = fixture.stream("app").await.resource_version().to_owned();
    let mut old = docker_tag("app:1", "quay.io/a:9");
    old["metadata"]["resourceVersion"] = made.resource_version().into();
    let why = format!(
        "Operation cannot be fulfilled on imagestreamtags.image.openshift.io \"app:1\": another caller has updated the resource version to {current}"
    );
    assert_eq!(told(fixture.put(istags, old.clone()).await), wanted(409, "Conflict", &why));
    old["metadata"]["resourceVersion"] = current.into();
    let (created, changed) = fixture.put(istags, old).await.unwrap();
    assert!(!created);
    assert_eq!(changed.0["image"]["dockerImageReference"], "quay.io/a:9");
    let mut elsewhere = docker_tag("nosuch:1", "quay.io/a:9");
    elsewhere["metadata"]["resourceVersion"] = "5".into();
    let why = "imagestreamtags.image.openshift.io \"nosuch:1\" not found";
    assert_eq!(told(fixture.put(istags, elsewhere).await), wanted(404, "NotFound", why));
    let nothing = fixture.put(istags, json!({"metadata": {"name": "app:3"}, "tag": null})).await;
    let why = "imagestreamtag 3 is not a spec tag in imagestream demo/app, cannot be updated";
    assert_eq!(told(nothing), wanted(400, "BadRequest", why));
}

#[tokio::test]
async fn only_annotations_of_a_stream_tag_can_change() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    fixture.make("demo", "app", json!({"l": "1"}), &["1"]).await;
    let annotate = Patch(|tag: &mut Object| tag.set_annotation("a", "b"));
    let (created, changed) = fixture.change(istags, "app:1", &annotate).await.unwrap();
    assert!(!created);
    assert_eq!(changed.annotations().get("a"), Some(&"b"));
    assert_eq!(changed.0["tag"]["annotations"], json!({"a": "b"}));
    assert_eq!(changed.0["tag"]["from"]["name"], "quay.io/a:1", "the tag itself stays");
    assert_eq!(spec_tags(&fixture.stream("app").await)["1"].0["annotations"], json!({"a": "b"}));
    let relabel = Patch(|tag: &mut Object| tag.set_metadata("labels", json!({"l": "2"})));
    let text = "ImageStreamTag.image.openshift.io \"app:1\" is invalid: metadata: Invalid value: \"\": may not update fields other than metadata.annotations";
    assert_eq!(told(fixture.change(istags, "app:1", &relabel).await), wanted(422, "Invalid", text));
    let mut other = docker_tag("app:1", "quay.io/a:1");
    other["metadata"]["uid"] = "other".into();
    let status = fixture.put(istags, other).await.unwrap_err();
    assert!(
        status.message.contains("metadata.uid: Invalid value: \"other\": field is immutable"),
        "{status}"
    );
    // A PUT without annotations takes them away, one without labels leaves the stream's.
    let (_, changed) = fixture.put(istags, docker_tag("app:1", "quay.io/a:1")).await.unwrap();
    assert_eq!((changed.annotations().len(), changed.labels().len()), (0, 1));
}

#[tokio::test]
async fn image_tags_are_written_by_their_spec() {
    let fixture = Fixture::new().await;
    let itags = &fixture.itags;
    let body = |from: &str| json!({"metadata": {"name": "app:1"}, "spec": {"name": "1", "from": {"kind": "DockerImage", "name": from}}});
    let (created, made) = fixture.put(itags, body("quay.io/a:1")).await.unwrap();
    assert!(created);
    assert_eq!(made.0["spec"]["generation"], 1);
    let text = "imagetags.image.openshift.io \"app:1\" already exists";
    assert_eq!(told(fixture.post(itags, body("quay.io/a:2")).await), wanted(409, "AlreadyExists", text));
    // Blind: of a tag that was not imported clients know no status.
    let (created, changed) = fixture.put(itags, body("quay.io/a:2")).await.unwrap();
    assert!(!created);
    assert_eq!(changed.0["spec"]["from"]["name"], "quay.io/a:2");
    let erase = Patch(|tag: &mut Object| {
        tag.0.insert("status".to_owned(), json!({"tag": "1", "items": [{"image": "x"}]}));
    });
    let text = "ImageTag.image.openshift.io \"app:1\" is invalid: status: Invalid value: \"\": may not update fields other than spec";
    assert_eq!(told(fixture.change(itags, "app:1", &erase).await), wanted(422, "Invalid", text));
    let rename = Patch(|tag: &mut Object| tag.set_annotation("a", "b"));
    let text = "ImageTag.image.openshift.io \"app:1\" is invalid: metadata: Invalid value: \"\": may not update fields other than spec";
    assert_eq!(told(fixture.change(itags, "app:1", &rename).await), wanted(422, "Invalid", text));
    let unset = Patch(|tag: &mut Object| {
        tag.0.insert("spec".to_owned(), Value::Null);
    });
    let (_, gone) = fixture.change(itags, "app:1", &unset).await.unwrap();
    assert_eq!(gone.0["spec"], Value::Null);
    assert!(spec_tags(&fixture.stream("app").await).is_empty());
}

#[tokio::test]
async fn deleting_removes_spec_and_history() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    fixture.make("demo", "app", Value::Null, &["1", "2"]).await;
    let uid = fixture.stream("app").await.uid().to_owned();
    let refused = fixture.delete(istags, "app:1", Some("other")).await;
    let text = "Operation cannot be fulfilled on imagestreamtags.image.openshift.io \"app:1\": the UID precondition was not met";
    assert_eq!(told(refused), wanted(409, "Conflict", text));
    assert!(matches!(fixture.delete(istags, "app:1", Some(&uid)).await, Ok(Deleted::Gone(None))));
    let text = "imagestreamtags.image.openshift.io \"app:1\" not found";
    assert_eq!(told(fixture.delete(istags, "app:1", None).await), wanted(404, "NotFound", text));
    let text = "imagestreamtags.image.openshift.io \"nosuch\" not found";
    assert_eq!(told(fixture.delete(istags, "nosuch:1", None).await), wanted(404, "NotFound", text));
    fixture.delete(&fixture.itags, "app:2", None).await.unwrap();
    let stream = fixture.stream("app").await;
    assert!(spec_tags(&stream).is_empty() && status_tags(&stream).is_empty(), "{stream:?}");
    assert!(stream.at(&["spec", "tags"]).is_none() && stream.at(&["status", "tags"]).is_none());
    // It can be set again.
    assert!(fixture.put(istags, docker_tag("app:2", "quay.io/a:2")).await.unwrap().0);
}

#[tokio::test]
async fn dry_runs_store_nothing() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    fixture.make("demo", "app", Value::Null, &["1"]).await;
    let before = fixture.stream("app").await;
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    for name in ["app:2", "new:1"] {
        let body = docker_tag(name, "quay.io/a:2");
        let object = fixture.decoded(&**istags, &body);
        let made = istags.create(&context(istags, "demo", "create"), object.clone(), &dry).await.unwrap();
        assert_eq!(made.object().unwrap().0["image"]["dockerImageReference"], "quay.io/a:2");
        let cx = context(istags, "demo", "update");
        istags.update(&cx, name, &Replacement(object), &dry).await.unwrap();
    }
    let options = crate::rest::DeleteOptions { dry_run: true, ..Default::default() };
    istags.delete(&context(istags, "demo", "delete"), "app:1", &options).await.unwrap();
    assert_eq!(fixture.stream("app").await, before);
    assert!(fixture.get(istags, "new:1").await.is_err());
}

#[tokio::test]
async fn who_may_only_update_creates_no_stream() {
    let fixture = Fixture::new().await;
    let istags = &fixture.istags;
    fixture.make("demo", "app", Value::Null, &["1"]).await;
    let put = async |name: &str| {
        let object = fixture.decoded(&**istags, &docker_tag(name, "quay.io/a:2"));
        let cx = context_of("updater", istags, "demo", "update");
        istags.update(&cx, name, &Replacement(object), &WriteOptions::default()).await
    };
    assert!(put("app:2").await.is_ok(), "the stream is there");
    let text = "imagestreamtags.image.openshift.io is forbidden: User \"updater\" cannot create resource \"imagestreamtags\" in API group \"image.openshift.io\" in the namespace \"demo\"";
    assert_eq!(told(put("new:1").await), wanted(403, "Forbidden", text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_writers_of_one_stream_lose_nothing() {
    const WRITERS: usize = 20;
    const ROUNDS: usize = 4;
    let fixture = Arc::new(Fixture::new().await);
    let writers = (0..WRITERS).map(|writer| {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                // Not even the stream is there at first; each writer goes on with its own tag.
                let body = docker_tag(&format!("app:t{writer}"), &format!("quay.io/a:{round}"));
                let storage = if writer % 2 == 0 { &fixture.istags } else { &fixture.itags };
                let body = if writer % 2 == 0 {
                    body
                } else {
                    json!({"metadata": body["metadata"], "spec": body["tag"]})
                };
                if let Err(status) = fixture.put(storage, body).await {
                    panic!("writer {writer}, round {round}: {status}");
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let stream = fixture.stream("app").await;
    let tags = spec_tags(&stream);
    assert_eq!(tags.len(), WRITERS);
    assert!(tags.values().all(|tag| tag.from().unwrap().name() == "quay.io/a:3"));
    assert_eq!(
        stream.generation(),
        Some(i64::try_from(WRITERS * ROUNDS).unwrap()),
        "each write counted once"
    );
    let listed = fixture.list(&fixture.istags, "demo", &ListOptions::default()).await.unwrap();
    assert_eq!(listed.0.len(), WRITERS);
}
