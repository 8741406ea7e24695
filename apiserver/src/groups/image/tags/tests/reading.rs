//! Lists, page by page and whole, and images of a stream.

use std::sync::Arc;

use picoshift_machinery::selector::{FieldSelector, LabelSelector};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{Fixture, REGISTRY, context};
use crate::groups::image::model::{Event, add_event};
use crate::groups::image::streams::INTERNAL;
use crate::rest::{ListOptions, Storage, WriteOptions};

const DIGEST: &str = "sha256:a51146d38077ff992eba84cf1d5e9b249073503eb74868699016153b031a38f7";
const CHILD: &str = "sha256:c0ffee000077ff992eba84cf1d5e9b249073503eb74868699016153b031a38f7";

async fn some_streams() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.make("demo", "app", json!({"l": "1"}), &["2", "1", "3"]).await;
    fixture.make("demo", "app-x", Value::Null, &["1"]).await;
    fixture.make("demo", "empty", Value::Null, &[]).await;
    fixture.make("demo-b", "z", json!({"l": "1"}), &["1", "2"]).await;
    fixture
}

#[tokio::test]
async fn lists_are_sorted_selected_and_of_one_revision() {
    let fixture = some_streams().await;
    for storage in [&fixture.istags, &fixture.itags] {
        let list = async |namespace: &str, options: ListOptions| {
            fixture.list(storage, namespace, &options).await.unwrap().0
        };
        let demo = ["demo/app:1", "demo/app:2", "demo/app:3", "demo/app-x:1"];
        assert_eq!(list("demo", ListOptions::default()).await, demo);
        // As etcd orders keys: a dash comes before the slash.
        let all = ["demo-b/z:1", "demo-b/z:2", "demo/app:1", "demo/app:2", "demo/app:3", "demo/app-x:1"];
        assert_eq!(list("", ListOptions::default()).await, all);
        let labels = LabelSelector::parse("l=1").unwrap();
        let labelled = ListOptions { labels, ..ListOptions::default() };
        assert_eq!(list("demo", labelled).await, demo[..3]);
        let named = |text: &str| ListOptions {
            fields: FieldSelector::parse(text).unwrap(),
            ..ListOptions::default()
        };
        assert_eq!(list("", named("metadata.name=app:2")).await, ["demo/app:2"]);
        assert_eq!(list("", named("metadata.namespace=demo-b,metadata.name!=z:1")).await, ["demo-b/z:2"]);
        assert_eq!(list("", named("metadata.name=app")).await, [""; 0]);
    }
    let streams = Arc::clone(&fixture.streams) as Arc<dyn Storage>;
    let of_streams = streams.list(&context(&streams, "", "list"), &ListOptions::default()).await.unwrap();
    let of_tags = fixture.list(&fixture.istags, "", &ListOptions::default()).await.unwrap();
    assert_eq!(of_tags.2, of_streams.revision);
}

#[tokio::test]
async fn pages_show_one_revision_and_miss_nothing() {
    let fixture = some_streams().await;
    let whole = fixture.list(&fixture.istags, "", &ListOptions::default()).await.unwrap();
    for limit in 1..8 {
        let mut names = Vec::new();
        let mut options = ListOptions { limit, ..ListOptions::default() };
        loop {
            let (page, token, revision) = fixture.list(&fixture.istags, "", &options).await.unwrap();
            assert!(page.len() <= usize::try_from(limit).unwrap());
            assert_eq!(revision, whole.2, "all pages are of the first one's revision");
            names.extend(page);
            if token.is_empty() {
                break;
            }
            options.continue_token = token;
        }
        assert_eq!(names, whole.0, "by {limit}");
    }
    // What changes between two pages is not seen by the second.
    let first = ListOptions { limit: 1, ..ListOptions::default() };
    let (_, token, _) = fixture.list(&fixture.istags, "demo", &first).await.unwrap();
    fixture.delete(&fixture.istags, "app:2", None).await.unwrap();
    let rest = ListOptions { continue_token: token, ..ListOptions::default() };
    let (names, _, _) = fixture.list(&fixture.istags, "demo", &rest).await.unwrap();
    assert_eq!(names, ["demo/app:2", "demo/app:3", "demo/app-x:1"]);
    let bad = ListOptions { continue_token: "x".to_owned(), ..ListOptions::default() };
    assert_eq!(fixture.list(&fixture.istags, "demo", &bad).await.unwrap_err().code, 400);
}

/// A stream with a pushed manifest list.
async fn pushed() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.make("demo", "app", Value::Null, &[]).await;
    let images = Arc::clone(&fixture.images) as Arc<dyn Storage>;
    let manifest = json!({"digest": CHILD, "mediaType": "a/b", "manifestSize": 1, "architecture": "amd64", "os": "linux"});
    for (name, manifests) in [(DIGEST, json!([manifest])), (CHILD, json!([]))] {
        let body = json!({"metadata": {"name": name}, "dockerImageReference": format!("{REGISTRY}/demo/app@{name}"),
            "dockerImageManifests": manifests});
        let object = fixture.decoded(&*images, &body);
        images.create(&context(&images, "", "create"), object, &WriteOptions::default()).await.unwrap();
    }
    let event = Event {
        created: "2026-11-30T03:58:45Z".to_owned(),
        docker_image_reference: format!("{REGISTRY}/demo/app@{DIGEST}"),
        image: DIGEST.to_owned(),
        generation: 1,
    };
    let streams = Arc::clone(&fixture.streams) as Arc<dyn Storage>;
    let mut stream = fixture.stream("app").await;
    add_event(&mut stream, "pushed", &event);
    stream.set_annotation("openshift.io/image.dockerRepositoryCheck", "x");
    let options = WriteOptions { subresource: INTERNAL.to_owned(), ..WriteOptions::default() };
    let update = crate::rest::patch::Replacement(stream);
    streams.update(&context(&streams, "demo", "update"), "app", &update, &options).await.unwrap();
    fixture
}

#[tokio::test]
async fn images_of_a_stream_are_found_by_a_part_of_their_digest() {
    let fixture = pushed().await;
    let get = async |name: &str| fixture.get(&fixture.isimages, name).await;
    for (id, image) in
        [(DIGEST, DIGEST), ("a511", DIGEST), ("sha256:a5", DIGEST), (CHILD, CHILD), ("c0ffee", CHILD)]
    {
        let shown = get(&format!("app@{id}")).await.unwrap();
        let mut metadata = shown.0["metadata"].clone();
        assert!(metadata["creationTimestamp"].take().is_string());
        let wanted = json!({"name": format!("app@{id}"), "namespace": "demo", "creationTimestamp": null,
            "annotations": {"openshift.io/image.dockerRepositoryCheck": "x"}});
        assert_eq!(metadata, wanted);
        assert_eq!(shown.str_at(&["image", "metadata", "name"]), image);
        assert!(shown.0["image"].get("kind").is_none());
    }
    let told = async |name: &str| {
        let status = get(name).await.unwrap_err();
        (status.code, status.message)
    };
    let missing = "imagestreamimage.image.openshift.io \"app@sha256:dead\" not found";
    assert_eq!(told("app@sha256:dead").await, (404, missing.to_owned()));
    let form = "ImageStreamImages must be retrieved with <name>@<id>";
    assert_eq!(told("app").await, (400, form.to_owned()));
    let missing = "imagestreamimages.image.openshift.io \"nosuch\" not found";
    assert_eq!(told("nosuch@a").await, (404, missing.to_owned()));
}

#[tokio::test]
async fn a_tag_shows_its_image_and_misses_one_that_is_gone() {
    let fixture = pushed().await;
    let shown = fixture.get(&fixture.istags, "app:pushed").await.unwrap();
    assert_eq!(shown.0["tag"], Value::Null);
    assert_eq!(shown.str_at(&["image", "metadata", "name"]), DIGEST);
    assert_eq!(shown.creation_timestamp(), "2026-11-30T03:58:45Z");
    let images = Arc::clone(&fixture.images) as Arc<dyn Storage>;
    images.delete(&context(&images, "", "delete"), DIGEST, &Default::default()).await.unwrap();
    let status = fixture.get(&fixture.istags, "app:pushed").await.unwrap_err();
    assert_eq!(status.message, format!("imagestreamtags.image.openshift.io \"{DIGEST}\" not found"));
    let shown = fixture.get(&fixture.itags, "app:pushed").await.unwrap();
    assert_eq!(shown.0["image"], Value::Null);
    let listed = fixture.list(&fixture.istags, "demo", &ListOptions::default()).await.unwrap();
    assert_eq!(listed.0, ["demo/app:pushed"], "lists do not look at images");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Pages of any size, put together, are the whole list.
    #[test]
    fn pages_are_the_whole(
        streams in prop::collection::btree_map("(n|n-x)/[a-c]{1,2}(-x)?", prop::collection::btree_set("[a-c.-]{1,3}", 0..4), 0..5),
        limit in 1..4u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::new().await;
            for (key, tags) in &streams {
                let (namespace, name) = key.split_once('/').unwrap();
                let tags: Vec<String> = tags.iter().map(|tag| format!("t{tag}")).collect();
                let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
                fixture.make(namespace, name, Value::Null, &tags).await;
            }
            let whole = fixture.list(&fixture.itags, "", &ListOptions::default()).await.unwrap().0;
            prop_assert_eq!(whole.len(), streams.values().map(std::collections::BTreeSet::len).sum::<usize>());
            let mut paged = Vec::new();
            let mut options = ListOptions { limit, ..ListOptions::default() };
            loop {
                let (page, token, _) = fixture.list(&fixture.itags, "", &options).await.unwrap();
                paged.extend(page);
                if token.is_empty() {
                    break;
                }
                options.continue_token = token;
            }
            prop_assert_eq!(paged, whole);
            Ok(())
        })?;
    }
}
