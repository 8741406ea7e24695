//! What imports ask for and what they record, without a registry.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::pull::{Found, MAX_BYTES, Pulled, PulledAll, PulledRepository, Puller};
use super::{record, request};
use crate::groups::image::GROUP;
use crate::groups::image::model::{generations, normalise, provisional};
use crate::groups::image::testing::Fixture;
use crate::oci::hostile::{Hostile, answer};
use crate::oci::{Client, Keyring, Limits, Trust};

const NOW: &str = "2026-11-30T03:58:44Z";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn import(spec: &Value) -> Object {
    let mut import = object(json!({"metadata": {"name": "imp", "namespace": "demo"}, "spec": spec}));
    request::set_defaults(&mut import);
    import
}

fn errors(spec: &Value) -> String {
    let import = import(spec);
    Status::invalid(GROUP, "ImageStreamImport", "imp", &request::validate(&import)).message
}

#[test]
fn what_is_wrong_is_told_as_recorded() {
    let of =
        |spec: Value| errors(&spec).replace("ImageStreamImport.image.openshift.io \"imp\" is invalid: ", "");
    assert_eq!(
        of(json!({"import": true})),
        "spec.images: Invalid value: null: you must specify at least one image or a repository import"
    );
    assert_eq!(
        of(json!({"images": [{"from": {"kind": "ImageStreamTag", "name": "x"}}]})),
        "spec.images[0].from.kind: Invalid value: \"ImageStreamTag\": only DockerImage is supported"
    );
    let image = |name: &str| json!({"images": [{"from": {"kind": "DockerImage", "name": name}}]});
    assert_eq!(of(image("")), "spec.images[0].from.name: Required value");
    assert_eq!(
        of(image("A:b:c")),
        "spec.images[0].from.name: Invalid value: \"A:b:c\": invalid reference format"
    );
    assert_eq!(of(image("*")), "<nil>");
    let mode = json!({"images": [{"from": {"kind": "DockerImage", "name": "x"}, "to": {"name": ""},
        "importPolicy": {"importMode": "Nope"}}]});
    assert_eq!(
        of(mode),
        "[spec.images[0].to.name: Invalid value: \"\": the name of the target tag must be specified, \
         spec.images[0].importPolicy.importMode: Invalid value: \"Nope\": invalid import mode, valid modes are '', \
         'Legacy', 'PreserveOriginal']"
    );
    let repository = |name: &str| json!({"repository": {"from": {"kind": "DockerImage", "name": name}}});
    assert_eq!(
        of(repository("a/b:1")),
        "spec.repository.from.name: Invalid value: \"a/b:1\": you must specify an image repository, not a tag or ID"
    );
    assert_eq!(
        of(repository("")),
        "spec.repository.from.name: Required value: container image references require a name"
    );
    assert_eq!(of(repository("a/b")), "<nil>");
}

#[test]
fn the_tag_of_the_pull_spec_is_the_streams_where_none_is_named() {
    let image = |name: &str| json!({"from": {"kind": "DockerImage", "name": name}});
    let digest = format!("a@sha256:{}", "0".repeat(64));
    let filled = import(&json!({"images": [image("q.io/x/y:1"), image("busybox"), image(&digest)]}));
    let images = filled.at(&["spec", "images"]).unwrap();
    assert_eq!(images[0]["to"], json!({"name": "1"}));
    assert_eq!(images[0]["importPolicy"], json!({"importMode": "Legacy"}));
    assert_eq!(images[0]["referencePolicy"], json!({"type": "Source"}));
    assert!(images[1].get("to").is_none() && images[2].get("to").is_none());
}

fn found(digest: &str) -> Result<Found, Status> {
    let image = json!({"metadata": {"name": digest}, "dockerImageReference": format!("q.io/x/y@{digest}")});
    Ok(Found { image: object(image), manifests: Vec::new() })
}

fn pulled(outcome: Result<Found, Status>) -> PulledAll {
    PulledAll { images: vec![Pulled { tag: "1".to_owned(), outcome }], repository: None }
}

/// A stream with tag `one` of a pull spec, which has its provisional event.
fn stream() -> Object {
    let mut stream = object(json!({
        "metadata": {"name": "imp", "namespace": "demo", "generation": 3},
        "spec": {"tags": [{"name": "one", "from": {"kind": "DockerImage", "name": "q.io/x/y:1"}, "generation": 3}]},
    }));
    normalise(&mut stream);
    provisional::add_provisional(&mut stream, "one", "q.io/x/y:1", 3, "2026-11-30T03:58:40Z");
    stream
}

fn one() -> Object {
    import(&json!({"import": true, "images": [
        {"from": {"kind": "DockerImage", "name": "q.io/x/y:1"}, "to": {"name": "one"}, "importPolicy": {"scheduled": true}}]}))
}

#[test]
fn a_success_replaces_the_provisional_event() {
    let (mut stream, began) = (stream(), stream());
    record::record(&mut stream, &began, &one(), &pulled(found("sha256:a")), NOW);
    assert_eq!(
        stream.at(&["status", "tags"]).unwrap(),
        &json!([{"tag": "one", "items": [{"created": NOW, "dockerImageReference": "q.io/x/y@sha256:a",
            "image": "sha256:a", "generation": 4}]}])
    );
    let tag = &stream.at(&["spec", "tags"]).unwrap()[0];
    assert_eq!(tag["generation"], 0);
    assert_eq!(tag["importPolicy"], json!({"scheduled": true, "importMode": "Legacy"}));
    assert_eq!(stream.annotation("openshift.io/image.dockerRepositoryCheck"), Some(NOW));
}

#[test]
fn a_failure_keeps_it_and_says_so_once() {
    let (mut first, failure) = (stream(), Status::internal("q.io/x/y:1: no"));
    record::record(&mut first, &stream(), &one(), &pulled(Err(failure.clone())), NOW);
    assert_eq!(
        first.at(&["status", "tags"]).unwrap(),
        &json!([{"tag": "one",
            "items": [{"created": "2026-11-30T03:58:40Z", "dockerImageReference": "q.io/x/y:1", "image": "",
                "generation": 3}],
            "conditions": [{"type": "ImportSuccess", "status": "False", "lastTransitionTime": NOW,
                "reason": "InternalError", "message": "Internal error occurred: q.io/x/y:1: no", "generation": 4}]}])
    );
    assert_eq!(first.at(&["spec", "tags"]).unwrap()[0]["generation"], 0);
    // Stored, it gets its generation; the same failure again is no news.
    let mut stored = first.clone();
    generations::advance(&mut stored, &stream());
    assert_eq!(stored.at(&["spec", "tags"]).unwrap()[0]["generation"], 4);
    let before = stored.clone();
    record::record(&mut stored, &before, &one(), &pulled(Err(failure)), "2026-11-30T04:00:00Z");
    assert_eq!(stored, before);
    record::record(
        &mut stored,
        &before,
        &one(),
        &pulled(Err(Status::internal("else"))),
        "2026-11-30T04:00:00Z",
    );
    assert_ne!(stored, before);
    let before = stored.clone();
    record::record(&mut stored, &before, &one(), &pulled(found("sha256:a")), "2026-11-30T04:01:00Z");
    assert!(stored.at(&["status", "tags"]).unwrap()[0].get("conditions").is_none());
}

#[test]
fn a_tag_that_was_deleted_or_changed_meanwhile_stays_so() {
    let began = stream();
    for outcome in [found("sha256:a"), Err(Status::internal("no"))] {
        let mut deleted = began.clone();
        deleted.object_mut("spec").remove("tags");
        deleted.object_mut("status").remove("tags");
        let mut changed = began.clone();
        changed.object_mut("spec")["tags"][0]["from"]["name"] = json!("q.io/x/y:2");
        for stream in [deleted, changed] {
            let mut after = stream.clone();
            record::record(&mut after, &began, &one(), &pulled(outcome.clone()), NOW);
            assert_eq!(after.at(&["spec"]), stream.at(&["spec"]));
            assert_eq!(after.at(&["status"]), stream.at(&["status"]));
        }
    }
}

/// A stream as it is after a user wrote to its tag while an import ran.
fn written(stream: &Object, field: &str, value: Value) -> Object {
    let mut next = stream.clone();
    next.object_mut("spec")["tags"][0][field] = value;
    generations::advance(&mut next, stream);
    next
}

#[test]
fn what_a_user_asks_for_meanwhile_is_not_answered_by_an_import_that_began_before() {
    let began = stream();
    let changes = [
        ("importPolicy", json!({"importMode": "PreserveOriginal"})),
        ("importPolicy", json!({"importMode": "Legacy", "scheduled": true})),
        ("reference", json!(true)),
        ("generation", json!(0)),
    ];
    for outcome in [found("sha256:a"), Err(Status::internal("no"))] {
        for (field, value) in changes.clone() {
            let stream = written(&began, field, value);
            let mut after = stream.clone();
            record::record(&mut after, &began, &one(), &pulled(outcome.clone()), NOW);
            assert_eq!(after.at(&["spec"]), stream.at(&["spec"]), "{field}");
            assert_eq!(after.at(&["status"]), stream.at(&["status"]), "{field}");
        }
    }
}

#[test]
fn an_import_beside_another_one_of_the_same_is_recorded_if_it_succeeds() {
    let began = stream();
    for outcome in [found("sha256:a"), Err(Status::internal("no"))] {
        let mut other = began.clone();
        let same = import(&json!({"import": true, "images": [
            {"from": {"kind": "DockerImage", "name": "q.io/x/y:1"}, "to": {"name": "one"}}]}));
        record::record(&mut other, &began, &same, &pulled(outcome), NOW);
        generations::advance(&mut other, &began);
        let mut after = other.clone();
        record::record(&mut after, &began, &one(), &pulled(found("sha256:b")), NOW);
        assert_eq!(after.at(&["status", "tags"]).unwrap()[0]["items"][0]["image"], "sha256:b");
        assert_eq!(after.at(&["spec", "tags"]).unwrap()[0]["importPolicy"]["scheduled"], true);
        let mut after = other.clone();
        record::record(&mut after, &began, &one(), &pulled(Err(Status::internal("late"))), NOW);
        assert_eq!(after.at(&["status"]), other.at(&["status"]), "a failure that is older");
    }
}

#[test]
fn what_is_there_already_is_no_change() {
    let (mut once, empty) = (stream(), stream());
    record::record(&mut once, &stream(), &one(), &pulled(found("sha256:a")), NOW);
    generations::advance(&mut once, &empty);
    once.set_metadata("generation", 4);
    let before = once.clone();
    record::record(&mut once, &before, &one(), &pulled(found("sha256:a")), "2026-11-30T04:00:00Z");
    assert_eq!(once, before);
    record::record(&mut once, &before, &one(), &pulled(found("sha256:b")), "2026-11-30T04:00:00Z");
    let items = &once.at(&["status", "tags"]).unwrap()[0]["items"];
    assert_eq!(
        (items[0]["image"].as_str(), items[1]["image"].as_str()),
        (Some("sha256:b"), Some("sha256:a"))
    );
    assert_eq!(items[0]["generation"], 5);
}

#[test]
fn a_repository_brings_a_tag_for_each_of_its_own() {
    let import =
        import(&json!({"import": true, "repository": {"from": {"kind": "DockerImage", "name": "q.io/x/y"},
        "referencePolicy": {"type": "Local"}}}));
    let images = vec![
        Pulled { tag: "latest".to_owned(), outcome: found("sha256:a") },
        Pulled { tag: "1.0".to_owned(), outcome: Err(Status::internal("no")) },
    ];
    let repository =
        PulledRepository { status: Status::success(None), images, additional: vec!["x".to_owned()] };
    let pulled = PulledAll { images: Vec::new(), repository: Some(repository) };
    let mut stream = object(json!({"metadata": {"name": "imp", "namespace": "demo", "generation": 0}}));
    let empty = stream.clone();
    record::record(&mut stream, &empty, &import, &pulled, NOW);
    let tags = stream.at(&["spec", "tags"]).unwrap().as_array().unwrap();
    assert_eq!(tags.len(), 1);
    assert_eq!((&tags[0]["name"], &tags[0]["from"]["name"]), (&json!("latest"), &json!("q.io/x/y:latest")));
    assert_eq!(tags[0]["referencePolicy"], json!({"type": "Local"}));
    let status = stream.at(&["status", "tags"]).unwrap();
    assert_eq!((&status[0]["tag"], &status[0]["items"]), (&json!("1.0"), &Value::Null));
    assert_eq!(status[0]["conditions"][0]["generation"], 1);
    assert_eq!(status[1]["items"][0]["image"], "sha256:a");
}

/// `127.0.0.1:1`: nothing listens there.
fn refused(spec: &Value) -> Value {
    json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamImport", "metadata": {"name": "imp"},
        "spec": spec, "status": {}})
}

#[tokio::test]
async fn an_import_that_fails_is_answered_as_recorded() {
    let fixture = Fixture::bare().await;
    let spec =
        json!({"import": false, "images": [{"from": {"kind": "DockerImage", "name": "127.0.0.1:1/x/y:1"}}]});
    let mut answer = fixture.post("imagestreamimports", "demo", &refused(&spec)).await.unwrap();
    let metadata = answer["metadata"].as_object_mut().unwrap();
    assert!(metadata.remove("uid").is_some() && metadata.remove("creationTimestamp").is_some());
    let text = r#"127.0.0.1:1/x/y:1: Get "https://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused"#;
    assert_eq!(
        answer,
        json!({
            "kind": "ImageStreamImport",
            "apiVersion": "image.openshift.io/v1",
            "metadata": {"name": "imp", "namespace": "demo"},
            "spec": {"import": false, "images": [{
                "from": {"kind": "DockerImage", "name": "127.0.0.1:1/x/y:1"}, "to": {"name": "1"},
                "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"}}]},
            "status": {"images": [{
                "status": {"metadata": {}, "status": "Failure",
                    "message": format!("Internal error occurred: {text}"), "reason": "InternalError",
                    "details": {"causes": [{"message": text}]}, "code": 500},
                "tag": "1"}]},
        })
    );
    let error =
        fixture.post("imagestreamimports", "demo", &refused(&json!({"import": true}))).await.unwrap_err();
    assert_eq!(error.code, 422);
    let cause = &error.details.unwrap().causes[0];
    assert_eq!((cause.reason.as_str(), cause.field.as_str()), ("FieldValueInvalid", "spec.images"));
}

#[tokio::test]
async fn a_failed_tag_means_its_pull_spec_and_says_why_it_is_not_imported() {
    let fixture = Fixture::bare().await;
    let spec = json!({"import": true, "images": [
        {"from": {"kind": "DockerImage", "name": "127.0.0.1:1/lab/local:1"}, "to": {"name": "local"}}]});
    let answer = fixture.post("imagestreamimports", "demo", &refused(&spec)).await.unwrap();
    let stream = fixture.get("demo/imp").await;
    let shown = &answer["status"]["import"];
    assert_eq!(shown["metadata"]["resourceVersion"], stream.resource_version());
    assert!(shown.get("kind").is_none());
    let tag = &shown["spec"]["tags"][0];
    assert_eq!((&tag["generation"], &tag["from"]["name"]), (&json!(1), &json!("127.0.0.1:1/lab/local:1")));
    let status = &shown["status"]["tags"][0];
    assert_eq!(status["items"][0]["dockerImageReference"], "127.0.0.1:1/lab/local:1");
    assert_eq!(status["items"][0]["image"], "");
    assert_eq!(
        (&status["conditions"][0]["reason"], &status["conditions"][0]["generation"]),
        (&json!("InternalError"), &json!(1))
    );
    // The same again is nothing new.
    fixture.post("imagestreamimports", "demo", &refused(&spec)).await.unwrap();
    assert_eq!(fixture.get("demo/imp").await, stream);
}

const INDEX: &str = "content-type: application/vnd.oci.image.index.v1+json\r\n";

/// What an import of `spec` finds at a registry, when there is room for so many bytes.
async fn pull(hostile: &Hostile, mut spec: Value, room: usize) -> PulledAll {
    let name =
        |tag: &str| json!({"kind": "DockerImage", "name": format!("{}/lab/app{tag}", hostile.address)});
    for image in spec["images"].as_array_mut().into_iter().flatten() {
        image["from"] = name(":1");
    }
    if spec.get("repository").is_some() {
        spec["repository"]["from"] = name("");
    }
    let client = Client::new(&Trust::default(), Limits::default()).unwrap();
    let puller = Puller {
        client: &client,
        keyring: &Keyring::default(),
        deadline: Instant::now() + Duration::from_secs(60),
        max_tags: None,
        now: NOW,
        records: false,
        bytes: &AtomicUsize::new(MAX_BYTES - room),
    };
    puller.pull(&import(&spec), &Object::default()).await
}

#[tokio::test]
async fn what_an_import_holds_is_counted() {
    let index = r#"{"manifests":[]}"#;
    let manifest = "/v2/lab/app/manifests/1";
    let too_large = "the images of this import are too large together";
    let list = answer("200 OK", INDEX, index);
    let hostile = Hostile::start(&[(manifest, &[&list])]).await;
    let image = json!({"importPolicy": {"importMode": "PreserveOriginal", "insecure": true}});
    for (room, fits) in [(index.len(), true), (index.len() - 1, false)] {
        let pulled = pull(&hostile, json!({"images": [image]}), room).await;
        match &pulled.images[0].outcome {
            Ok(_) => assert!(fits),
            Err(status) => assert!(!fits && status.message.ends_with(too_large), "{}", status.message),
        }
    }
    // The same twice is looked up once, and held twice.
    let pulled = pull(&hostile, json!({"images": [image, image]}), index.len()).await;
    assert!(pulled.images[0].outcome.is_ok());
    assert!(pulled.images[1].outcome.as_ref().unwrap_err().message.ends_with(too_large));
    // The second try, without credentials, begins anew.
    let denied = answer("403 Forbidden", "", r#"{"details":"incorrect username or password"}"#);
    let hostile = Hostile::start(&[(manifest, &[&denied, &list])]).await;
    assert!(pull(&hostile, json!({"images": [image]}), 0).await.images[0].outcome.is_ok());
    // Texts of failures are kept too, and tags.
    let gone = answer("404 Not Found", "", r#"{"errors":[{"message":"long"}]}"#);
    let hostile = Hostile::start(&[(manifest, &[&gone])]).await;
    let mut images = vec![image.clone(); 6];
    images[0]["includeManifest"] = true.into();
    let pulled = pull(&hostile, json!({"images": images}), 10).await;
    let last = pulled.images.last().unwrap().outcome.as_ref().unwrap_err();
    assert!(last.message.ends_with(too_large), "{}", last.message);
    let tags = answer("200 OK", "", r#"{"tags":["1","22"]}"#);
    let hostile = Hostile::start(&[("/v2/lab/app/tags/list", &[&tags]), (manifest, &[&list])]).await;
    let repository = pull(&hostile, json!({"repository": image}), 2).await.repository.unwrap();
    assert!(repository.status.message.ends_with(too_large), "{}", repository.status.message);
}

#[tokio::test]
async fn only_so_many_imports_run_at_a_time() {
    let fixture = Fixture::bare().await;
    // It takes connections and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let from = json!({"kind": "DockerImage", "name": format!("{}/x/y:1", silent.local_addr().unwrap())});
    let body = refused(&json!({"import": false, "images": [{"from": from}]}));
    let mut posts: FuturesUnordered<_> =
        (0..17).map(|_| fixture.post("imagestreamimports", "demo", &body)).collect();
    let status = posts.next().await.unwrap().unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.unwrap().retry_after_seconds, 5);
}
