//! Tags that are resolved, that follow other tags, and that are written by many at once.

use picoshift_machinery::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::groups::image::model::{
    Event, TagReference, latest_event, record_import, status_tag, status_tags::items,
};
use crate::groups::image::testing::{Fixture, registry};
use crate::groups::image::{Hostnames, Part, model};

fn docker(tag: &str, source: &str) -> Value {
    json!({"name": tag, "from": {"kind": "DockerImage", "name": source}})
}

/// A tag that follows `namespace/stream:tag`, or `stream:tag`, or `tag`.
fn follow(tag: &str, source: &str) -> Value {
    match source.split_once('/') {
        Some((namespace, name)) => {
            json!({"name": tag, "from": {"kind": "ImageStreamTag", "namespace": namespace, "name": name}})
        }
        None => json!({"name": tag, "from": {"kind": "ImageStreamTag", "name": source}}),
    }
}

/// Images (or pull specs, where there is none) in the history of a tag.
fn history(stream: &Object, tag: &str) -> Vec<String> {
    let entry = status_tag(stream, tag).cloned().unwrap_or_default();
    let shown =
        |event: Event| if event.image.is_empty() { event.docker_image_reference } else { event.image };
    items(&entry).iter().map(Event::read).map(shown).collect()
}

fn set(tag: Value) -> impl Fn(&mut Object) + Send + Sync {
    move |stream: &mut Object| model::set_spec_tag(stream, tag.clone())
}

fn imported(tag: &'static str, image: &'static str) -> impl Fn(&mut Object) + Send + Sync {
    move |stream: &mut Object| {
        let event = Event {
            created: "2026-01-02T03:04:05Z".to_owned(),
            docker_image_reference: format!("quay.io/x:{}", image.replace(':', "-")),
            image: image.to_owned(),
            generation: stream.generation().unwrap_or(0),
        };
        record_import(stream, tag, &event);
    }
}

#[tokio::test]
async fn a_tag_of_a_pull_spec_means_it_at_once_until_it_is_imported() {
    let fixture = Fixture::bare().await;
    let made = fixture.stream("a/app", json!([docker("t", "quay.io/x:1")])).await.unwrap();
    assert_eq!(history(&made, "t"), ["quay.io/x:1"]);
    assert_eq!(latest_event(&made, "t").unwrap().generation, 1);
    assert_eq!(made.str_at(&["status", "dockerImageRepository"]), "");

    // Asked to import again: nothing but the generation.
    let again = |stream: &mut Object| {
        model::spec_tags::set_spec_tag_field(stream, "t", "generation", json!(0));
    };
    let asked = fixture.change("a/app", Part::Spec, again).await.unwrap();
    assert_eq!((asked.generation(), history(&asked, "t")), (Some(2), vec!["quay.io/x:1".to_owned()]));

    let done = fixture.change("a/app", Part::Both, imported("t", "sha256:1")).await.unwrap();
    assert_eq!(history(&done, "t"), ["sha256:1"]);
    let asked = fixture.change("a/app", Part::Spec, again).await.unwrap();
    assert_eq!(history(&asked, "t"), ["sha256:1"], "an image is not taken back to a pull spec");

    let moved = fixture.change("a/app", Part::Spec, set(docker("t", "quay.io/x:2"))).await.unwrap();
    assert_eq!(history(&moved, "t"), ["quay.io/x:2", "sha256:1"]);
    let moved = fixture.change("a/app", Part::Spec, set(docker("t", "quay.io/x:3"))).await.unwrap();
    assert_eq!(history(&moved, "t"), ["quay.io/x:3", "sha256:1"]);
    let done = fixture.change("a/app", Part::Both, imported("t", "sha256:3")).await.unwrap();
    assert_eq!(history(&done, "t"), ["sha256:3", "sha256:1"]);

    let gone = fixture.change("a/app", Part::Spec, set(docker("u", "quay.io/u"))).await.unwrap();
    assert_eq!(history(&gone, "u"), ["quay.io/u"]);
    let mut whole: Value = gone.0.into();
    whole["spec"]["tags"].as_array_mut().unwrap().clear();
    let bare = Object::from_value(fixture.put("imagestreams", &whole).await.unwrap()).unwrap();
    assert_eq!((history(&bare, "u"), history(&bare, "t").len()), (vec![], 2), "images stay, guesses go");
}

#[tokio::test]
async fn a_push_replaces_the_provisional_event() {
    let fixture = Fixture::bare().await;
    fixture.stream("a/app", json!([docker("t", "quay.io/x:1")])).await.unwrap();
    fixture.push("a/app", "t", "sha256:1").await;
    let pushed = fixture.get("a/app").await;
    assert_eq!(history(&pushed, "t"), ["sha256:1"]);
    let moved = fixture.change("a/app", Part::Spec, set(docker("t", "quay.io/x:2"))).await.unwrap();
    assert_eq!(history(&moved, "t"), ["quay.io/x:2", "sha256:1"]);
    // A writer of the status that does not know provisional events puts its own upon it, or keeps it.
    let event = |image: &str| Event {
        created: "2026-01-02T03:04:05Z".to_owned(),
        docker_image_reference: format!("quay.io/y:{}", image.replace(':', "-")),
        image: image.to_owned(),
        generation: 0,
    };
    let touch = |stream: &mut Object| stream.set_annotation("k", "v");
    let kept = fixture.change("a/app", Part::Status, touch).await.unwrap();
    assert_eq!(history(&kept, "t"), ["quay.io/x:2", "sha256:1"]);
    let upon = |stream: &mut Object| {
        model::add_event(stream, "t", &event("sha256:2"));
        model::add_event(stream, "t", &event("sha256:3"));
    };
    let written = fixture.change("a/app", Part::Status, upon).await.unwrap();
    assert_eq!(history(&written, "t"), ["sha256:3", "sha256:2", "sha256:1"]);
}

#[tokio::test]
async fn an_import_of_a_new_tag_needs_no_provisional_event() {
    let fixture = Fixture::bare().await;
    fixture.stream("a/app", json!([])).await.unwrap();
    let import = |stream: &mut Object| {
        model::set_spec_tag(stream, docker("t", "quay.io/x:1"));
        imported("t", "sha256:1")(stream);
    };
    let done = fixture.change("a/app", Part::Both, import).await.unwrap();
    assert_eq!(history(&done, "t"), ["sha256:1"]);
    let failed = |stream: &mut Object| {
        model::set_spec_tag(stream, docker("u", "quay.io/u:1"));
        let why = model::Condition::import_failed("NotFound", "no", 3, "2026-01-02T03:04:05Z");
        model::set_condition(stream, "u", &why);
    };
    let failed = fixture.change("a/app", Part::Both, failed).await.unwrap();
    assert_eq!(history(&failed, "u"), ["quay.io/u:1"]);
    assert_eq!(status_tag(&failed, "u").unwrap()["conditions"][0]["reason"], "NotFound");
}

#[tokio::test]
async fn tags_follow_tags_of_their_stream_in_the_same_answer() {
    let fixture = Fixture::bare().await;
    let tags = json!([follow("a", "b"), follow("b", "app:c")]);
    fixture.stream("a/app", tags).await.unwrap();
    fixture.push("a/app", "c", "i1").await;
    let first = fixture.get("a/app").await;
    assert_eq!((history(&first, "a"), history(&first, "b")), (vec!["i1".to_owned()], vec!["i1".to_owned()]));
    fixture.push("a/app", "b", "pushed").await;
    let second = fixture.get("a/app").await;
    assert_eq!(history(&second, "b"), ["pushed", "i1"], "a push holds until the source changes");
    assert_eq!(history(&second, "a"), ["pushed", "i1"]);
    fixture.push("a/app", "c", "i2").await;
    let third = fixture.get("a/app").await;
    for tag in ["a", "b"] {
        assert_eq!(history(&third, tag), ["i2", "pushed", "i1"]);
    }
}

#[tokio::test]
async fn followers_of_other_streams_are_touched_and_stay_so() {
    let fixture = Fixture::new(registry(), &[]).await;
    fixture.stream("src/base", json!([docker("1", "quay.io/base:1")])).await.unwrap();
    let made =
        fixture.stream("a/app", json!([follow("t", "src/base:1"), follow("new", "src/base:none")])).await;
    let made = made.unwrap();
    assert_eq!(history(&made, "t"), ["quay.io/base:1"]);
    fixture.stream("b/next", json!([follow("u", "a/app:t")])).await.unwrap();
    let unrelated = fixture.stream("a/unrelated", json!([])).await.unwrap();

    fixture.change("src/base", Part::Both, imported("1", "sha256:1")).await.unwrap();
    let touched = fixture.get("a/app").await;
    assert_eq!(history(&touched, "t"), ["sha256:1"], "refined, as the source was");
    assert_eq!(touched.generation(), Some(1));
    assert!(touched.resource_version().parse::<u64>().unwrap() > made.resource_version().parse().unwrap());
    assert_eq!(fixture.watched("a", made.resource_version(), 2).await, ["ADDED unrelated", "MODIFIED app"]);
    assert_eq!(history(&fixture.get("b/next").await, "u"), ["sha256:1"]);
    assert_eq!(fixture.get("a/unrelated").await, unrelated);

    fixture.push("src/base", "1", "i2").await;
    fixture.push("src/base", "1", "i3").await;
    fixture.push("src/base", "none", "i9").await;
    let followed = fixture.get("a/app").await;
    assert_eq!(history(&followed, "t"), ["i3", "i2", "sha256:1"]);
    assert_eq!(history(&followed, "new"), ["i9"], "a tag that came later");

    // A revision shows the same after a restart, and the next write keeps the events.
    let before = (fixture.bytes("a/app").await, fixture.bytes("b/next").await);
    let fixture = fixture.restart(registry()).await;
    assert_eq!((fixture.bytes("a/app").await, fixture.bytes("b/next").await), before);
    let label = |stream: &mut Object| stream.set_metadata("labels", json!({"a": "b"}));
    let labelled = fixture.change("a/app", Part::Spec, label).await.unwrap();
    assert_eq!(labelled.0["status"], followed.0["status"]);
    fixture.push("src/base", "1", "i4").await;
    assert_eq!(history(&fixture.get("b/next").await, "u"), ["i4", "i3", "i2", "sha256:1"]);

    // Without its source a tag stays what it was, and follows again when it is back.
    fixture.delete("imagestreams", "src", "base").await;
    assert_eq!(history(&fixture.get("a/app").await, "t")[0], "i4");
    fixture.stream("src/base", json!([])).await.unwrap();
    fixture.push("src/base", "1", "i5").await;
    assert_eq!(history(&fixture.get("b/next").await, "u")[0], "i5");
    assert_eq!(fixture.engine.failure(), None);
}

#[tokio::test]
async fn another_registry_is_a_new_revision() {
    let fixture = Fixture::bare().await;
    let made = fixture.stream("a/app", json!([])).await.unwrap();
    let fixture = fixture.restart(registry()).await;
    let moved = fixture.get("a/app").await;
    assert_eq!(moved.str_at(&["status", "dockerImageRepository"]), "registry.svc:5000/a/app");
    assert_ne!(moved.resource_version(), made.resource_version());
    let external = Hostnames { external: "registry.example".to_owned(), ..registry() };
    let fixture = fixture.restart(external).await;
    let shown = fixture.get("a/app").await;
    assert_eq!(shown.str_at(&["status", "publicDockerImageRepository"]), "registry.example/a/app");
}

#[tokio::test]
async fn a_tag_whose_only_event_came_by_a_touch_can_be_deleted() {
    let fixture = Fixture::bare().await;
    fixture.stream("src/base", json!([])).await.unwrap();
    fixture.stream("a/app", json!([follow("t", "src/base:new"), docker("u", "quay.io/u:1")])).await.unwrap();
    assert_eq!(history(&fixture.get("a/app").await, "t"), Vec::<String>::new());
    fixture.change("src/base", Part::Both, imported("new", "i1")).await.unwrap();
    assert_eq!(history(&fixture.get("a/app").await, "t"), ["i1"]);
    // A write of something else keeps it.
    let label = |stream: &mut Object| stream.set_metadata("labels", json!({"a": "b"}));
    let labelled = fixture.change("a/app", Part::Spec, label).await.unwrap();
    assert_eq!(history(&labelled, "t"), ["i1"]);

    fixture.stream("a/other", json!([follow("t", "src/base:later")])).await.unwrap();
    fixture.change("src/base", Part::Both, imported("later", "i2")).await.unwrap();
    assert_eq!(history(&fixture.get("a/other").await, "t"), ["i2"]);
    fixture.delete("imagestreamtags", "a", "other:t").await;
    assert_eq!(history(&fixture.get("a/other").await, "t"), Vec::<String>::new());
    let bare = fixture.get("a/other").await;
    assert!(status_tag(&bare, "t").is_none(), "{}", bare.0["status"]);
}

#[tokio::test]
async fn images_of_the_clusters_registry_are_pulled_from_the_following_stream() {
    let fixture = Fixture::new(registry(), &[]).await;
    fixture.stream("src/base", json!([])).await.unwrap();
    let image = format!("sha256:{}", "a".repeat(64));
    let body = json!({"metadata": {"name": "base"}, "tag": "1", "image": {"metadata": {"name": image}}});
    fixture.post("imagestreammappings", "src", &body).await.unwrap();
    let mut noted = follow("noted", "src/base:1");
    noted["reference"] = json!(true);
    let by_image =
        json!({"name": "i", "from": {"kind": "ImageStreamImage", "namespace": "src", "name": "base@aaaa"}});
    let made = fixture.stream("a/app", json!([follow("t", "src/base:1"), noted, by_image])).await.unwrap();
    let reference = |tag: &str| latest_event(&made, tag).unwrap().docker_image_reference;
    assert_eq!(reference("t"), format!("registry.svc:5000/a/app@{image}"));
    assert_eq!(reference("i"), format!("registry.svc:5000/a/app@{image}"));
    assert_eq!(reference("noted"), format!("registry.svc:5000/src/base@{image}"));
}

#[tokio::test]
async fn what_may_not_be_pulled_may_not_be_followed() {
    let fixture = Fixture::new(Hostnames::default(), &["src/base"]).await;
    fixture.stream("src/base", json!([docker("1", "quay.io/base:1")])).await.unwrap();
    let refused = fixture.stream("a/app", json!([follow("t", "src/base:1")])).await.unwrap_err();
    assert_eq!(
        refused.message,
        "ImageStream.image.openshift.io \"app\" is invalid: []: Internal error: imagestreams \"app\" is invalid: \
         spec.tags[t].from: Forbidden: src/base: \"no\" \"\""
    );
    fixture.stream("src/other", json!([follow("t", "base:1")])).await.unwrap();
}

#[tokio::test]
async fn circles_and_long_chains_come_to_rest() {
    let fixture = Fixture::bare().await;
    let circle = json!([follow("a", "b"), follow("b", "c"), follow("c", "a"), follow("tail", "a")]);
    fixture.stream("a/app", circle).await.unwrap();
    for (tag, image) in [("a", "i1"), ("b", "i2"), ("c", "i3")] {
        fixture.push("a/app", tag, image).await;
    }
    let still = fixture.get("a/app").await;
    assert_eq!(["a", "b", "c"].map(|tag| history(&still, tag).len()), [1, 1, 1]);
    assert_eq!(history(&still, "tail"), ["i1"]);

    for n in 0..24 {
        let source = if n == 0 { "end/s:t".to_owned() } else { format!("chain/s{}:t", n - 1) };
        if n == 0 {
            fixture.stream("end/s", json!([])).await.unwrap();
        }
        fixture.stream(&format!("chain/s{n}"), json!([follow("t", &source)])).await.unwrap();
    }
    fixture.push("end/s", "t", "image").await;
    let mut reached = 0;
    while reached < 24 && !history(&fixture.get(&format!("chain/s{reached}")).await, "t").is_empty() {
        reached += 1;
    }
    assert_eq!(reached, 16);

    // Two streams that follow each other, until one of them does not.
    fixture.stream("x/one", json!([])).await.unwrap();
    fixture.stream("x/two", json!([follow("t", "one:t")])).await.unwrap();
    fixture.push("x/one", "t", "i1").await;
    fixture.change("x/one", Part::Spec, set(follow("t", "two:t"))).await.unwrap();
    fixture.push("x/one", "t", "i2").await;
    assert_eq!(history(&fixture.get("x/two").await, "t"), ["i1"]);
    let free = |stream: &mut Object| {
        model::remove_spec_tag(stream, "t");
    };
    fixture.change("x/one", Part::Spec, free).await.unwrap();
    assert_eq!(history(&fixture.get("x/two").await, "t"), ["i2", "i1"]);
}

#[tokio::test]
async fn many_writers_of_one_stream_lose_nothing() {
    let fixture = Fixture::bare().await;
    fixture.stream("a/app", json!([])).await.unwrap();
    fixture.stream("b/base", json!([])).await.unwrap();
    fixture.change("a/app", Part::Spec, set(follow("followed", "b/base:t"))).await.unwrap();
    let writer = |writer: usize| {
        let fixture = &fixture;
        async move {
            for n in 0..5 {
                let tag = format!("t{}", writer * 5 + n);
                let source = format!("quay.io/x:{tag}");
                fixture.change("a/app", Part::Spec, set(docker(&tag, &source))).await.unwrap();
                fixture.push("a/app", &tag, &format!("image-{tag}")).await;
                if n == 0 {
                    fixture.push("a/app", &tag, &format!("newer-{tag}")).await;
                }
            }
        }
    };
    let pusher = async {
        for n in 0..20 {
            fixture.push("b/base", "t", &format!("i{n}")).await;
        }
    };
    tokio::join!(futures::future::join_all((0..20).map(writer)), pusher);
    let stream = fixture.get("a/app").await;
    assert_eq!(model::spec_tags(&stream).len(), 101);
    for n in 0..100 {
        let newer = (n % 5 == 0).then(|| format!("newer-t{n}"));
        let wanted: Vec<String> = newer.into_iter().chain([format!("image-t{n}")]).collect();
        assert_eq!(history(&stream, &format!("t{n}")), wanted);
    }
    assert_eq!(history(&stream, "followed").len(), 20);
    assert_eq!(stream.generation(), Some(102));
}

#[derive(Clone, Debug)]
enum Step {
    Follow(usize, usize),
    Push(usize, usize),
    Unfollow(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    // Six tags: two of each of three streams.
    prop_oneof![
        (0_usize..6, 0_usize..6).prop_map(|(tag, source)| Step::Follow(tag, source)),
        (0_usize..6, 0_usize..9).prop_map(|(tag, image)| Step::Push(tag, image)),
        (0_usize..6).prop_map(Step::Unfollow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Whatever is written: it comes to rest, nothing is to be touched after a restart, and a tag that nobody else
    /// pushed to since its source last changed means what its source means.
    #[test]
    fn following_comes_to_rest(steps in prop::collection::vec(any_step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::bare().await;
            let at = |n: usize| (format!("a/s{}", n / 2), format!("t{}", n % 2));
            for n in 0..3 {
                fixture.stream(&format!("a/s{n}"), json!([])).await.unwrap();
            }
            for step in &steps {
                match step {
                    Step::Follow(tag, source) => {
                        let ((stream, tag), (from, of)) = (at(*tag), at(*source));
                        let from = from.trim_start_matches("a/");
                        let tag = follow(&tag, &format!("a/{from}:{of}"));
                        fixture.change(&stream, Part::Spec, set(tag)).await.unwrap();
                    }
                    Step::Push(tag, image) => {
                        let (stream, tag) = at(*tag);
                        fixture.push(&stream, &tag, &format!("i{image}")).await;
                    }
                    Step::Unfollow(tag) => {
                        let (stream, tag) = at(*tag);
                        let remove = |stream: &mut Object| {
                            model::remove_spec_tag(stream, &tag);
                        };
                        fixture.change(&stream, Part::Spec, remove).await.unwrap();
                    }
                }
            }
            let mut before = Vec::new();
            for n in 0..3 {
                before.push(fixture.bytes(&format!("a/s{n}")).await);
            }
            let fixture = fixture.restart(Hostnames::default()).await;
            for (n, bytes) in before.iter().enumerate() {
                assert_eq!(&fixture.bytes(&format!("a/s{n}")).await, bytes, "{steps:?}");
            }
            // One more push through the whole, and each follower that is in no circle has it.
            for n in 0..6 {
                let (stream, tag) = at(n);
                fixture.push(&stream, &tag, &format!("last{n}")).await;
            }
            let mut means = Vec::new();
            let mut sources = Vec::new();
            for n in 0..6 {
                let (stream, tag) = at(n);
                let stream = fixture.get(&stream).await;
                means.push(latest_event(&stream, &tag).unwrap().image);
                let source = model::spec_tag(&stream, &tag).and_then(TagReference::from).map(|from| {
                    let (name, of) = from.stream_and_rest("").unwrap();
                    let number = |text: &str| text[1..].parse::<usize>().unwrap();
                    number(name) * 2 + number(of)
                });
                sources.push(source);
            }
            for n in 0..6 {
                // A tag that was pushed to after its source keeps the push.
                if let Some(source) = sources[n].filter(|source| *source > n) {
                    let in_circle = {
                        let (mut at, mut steps) = (Some(source), 0);
                        while let Some(next) = at.filter(|at| *at != n && steps < 7) {
                            at = sources[next];
                            steps += 1;
                        }
                        at == Some(n)
                    };
                    if !in_circle {
                        assert_eq!(means[n], means[source], "{n} of {sources:?} after {steps:?}");
                    }
                }
            }
        });
    }
}
