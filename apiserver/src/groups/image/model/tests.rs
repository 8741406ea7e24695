//! The functions over a stream, against what the real server does and against their own promises.

use picoshift_machinery::Object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::provisional::add_provisional;
use super::spec_tags::TagReference;
use super::status_tags::items;
use super::*;

fn stream(value: Value) -> Object {
    let mut object = Object::from_value(value).unwrap();
    normalise(&mut object);
    object
}

fn event(reference: &str, image: &str, generation: i64) -> Event {
    Event {
        created: "2026-11-30T03:58:45Z".to_owned(),
        docker_image_reference: reference.to_owned(),
        image: image.to_owned(),
        generation,
    }
}

fn history(object: &Object, tag: &str) -> Vec<(String, String, i64)> {
    let entry = status_tag(object, tag).cloned().unwrap_or_default();
    items(&entry)
        .iter()
        .map(Event::read)
        .map(|event| (event.docker_image_reference, event.image, event.generation))
        .collect()
}

fn row(reference: &str, image: &str, generation: i64) -> (String, String, i64) {
    (reference.to_owned(), image.to_owned(), generation)
}

#[test]
fn a_bare_stream_is_completed_as_go_encodes_it() {
    let object = stream(json!({"spec": {"dockerImageRepository": "", "tags": [
        {"name": "b", "from": {"kind": "DockerImage", "name": "x", "namespace": ""}, "reference": false},
        {"name": "a", "annotations": {"k": "first"}},
        {"name": "a", "annotations": {"k": "last"}},
    ]}}));
    let policies = json!([{"importMode": "Legacy"}, {"type": "Source"}]);
    assert_eq!(
        Value::Object(object.0),
        json!({
            "spec": {"lookupPolicy": {"local": false}, "tags": [
                {"name": "a", "annotations": {"k": "last"}, "generation": null,
                 "importPolicy": policies[0], "referencePolicy": policies[1]},
                {"name": "b", "annotations": null, "from": {"kind": "DockerImage", "name": "x"},
                 "generation": null, "importPolicy": policies[0], "referencePolicy": policies[1]},
            ]},
            "status": {"dockerImageRepository": ""},
        })
    );
}

#[test]
fn events_collapse_or_stack_as_upstream() {
    let mut object = stream(json!({}));
    assert!(add_event(&mut object, "t", &event("r1", "i1", 1)));
    assert!(!add_event(&mut object, "t", &event("r1", "i1", 1)), "the same again");
    assert!(add_event(&mut object, "t", &event("r1", "i1", 2)), "a new generation");
    assert!(add_event(&mut object, "t", &event("r2", "i1", 3)), "another pull spec of the image");
    assert!(add_event(&mut object, "t", &event("r2", "i2", 3)), "another image of the pull spec");
    assert_eq!(history(&object, "t"), [row("r2", "i2", 3)]);
    assert!(add_event(&mut object, "t", &event("r3", "i3", 4)));
    assert_eq!(history(&object, "t"), [row("r3", "i3", 4), row("r2", "i2", 3)]);
}

#[test]
fn a_failed_import_shows_a_condition_and_null_items() {
    let mut object = stream(json!({}));
    let failed = Condition::import_failed("InternalError", "no", 6, "2026-11-30T03:58:44Z");
    set_condition(&mut object, "local", &failed);
    assert_eq!(
        object.at(&["status", "tags"]).unwrap(),
        &json!([{"tag": "local", "items": null, "conditions": [{
            "type": "ImportSuccess", "status": "False", "lastTransitionTime": "2026-11-30T03:58:44Z",
            "reason": "InternalError", "message": "no", "generation": 6,
        }]}])
    );
    add_event(&mut object, "local", &event("r", "i", 6));
    assert!(status_tag(&object, "local").unwrap().get("conditions").is_none(), "success clears it");
}

#[test]
fn an_import_replaces_the_provisional_event() {
    let mut object =
        stream(json!({"spec": {"tags": [{"name": "t", "from": {"kind": "DockerImage", "name": "q/x:2"}}]}}));
    add_event(&mut object, "t", &event("q/x@sha256:1", "sha256:1", 1));
    add_provisional(&mut object, "t", "q/x:2", 2, "now");
    assert_eq!(history(&object, "t"), [row("q/x:2", "", 2), row("q/x@sha256:1", "sha256:1", 1)]);
    assert!(record_import(&mut object, "t", &event("q/x@sha256:2", "sha256:2", 2)));
    assert_eq!(
        history(&object, "t"),
        [row("q/x@sha256:2", "sha256:2", 2), row("q/x@sha256:1", "sha256:1", 1)]
    );

    // The same image under another name collapses, as if there had never been a provisional event.
    let mut object =
        stream(json!({"spec": {"tags": [{"name": "t", "from": {"kind": "DockerImage", "name": "q/y:1"}}]}}));
    add_event(&mut object, "t", &event("q/x@sha256:1", "sha256:1", 1));
    add_provisional(&mut object, "t", "q/y:1", 2, "now");
    record_import(&mut object, "t", &event("q/y@sha256:1", "sha256:1", 2));
    assert_eq!(history(&object, "t"), [row("q/y@sha256:1", "sha256:1", 2)]);
}

#[test]
fn a_failed_import_keeps_the_provisional_event_and_the_other_way_round() {
    let mut object =
        stream(json!({"spec": {"tags": [{"name": "t", "from": {"kind": "DockerImage", "name": "q/x"}}]}}));
    let failed = Condition::import_failed("NotFound", "no", 1, "now");
    set_condition(&mut object, "t", &failed);
    add_provisional(&mut object, "t", "q/x", 1, "now");
    assert_eq!(history(&object, "t"), [row("q/x", "", 1)]);
    assert!(conditions::has_condition(&object, "t", &failed));
    let tag = spec_tag(&object, "t").unwrap().0.clone();
    drop_provisional(&mut object, "t", TagReference(&tag));
    assert_eq!(history(&object, "t"), []);
    assert!(conditions::has_condition(&object, "t", &failed));
}

#[test]
fn changed_tags_get_the_new_generation() {
    let mut old = stream(json!({"metadata": {"generation": 1}, "spec": {"tags": [
        {"name": "a", "from": {"kind": "DockerImage", "name": "x"}}, {"name": "b"},
    ]}}));
    generations::begin(&mut old);
    let of = |object: &Object, tag: &str| spec_tag(object, tag).unwrap().generation();
    assert_eq!((old.generation(), of(&old, "a"), of(&old, "b")), (Some(1), Some(1), Some(1)));

    let mut next = old.clone();
    spec_tags::set_spec_tag_field(&mut next, "a", "generation", json!(7));
    generations::advance(&mut next, &old);
    assert_eq!(next, old, "a client cannot set a generation");

    set_spec_tag(&mut next, json!({"name": "c"}));
    spec_tags::set_spec_tag_field(&mut next, "a", "generation", json!(0));
    generations::advance(&mut next, &old);
    assert_eq!(next.generation(), Some(2));
    assert_eq!((of(&next, "a"), of(&next, "b"), of(&next, "c")), (Some(2), Some(1), Some(2)));
}

#[test]
fn images_are_found_by_prefix() {
    let mut object = stream(json!({}));
    let (first, second) = (format!("sha256:abc{:061}", 1), format!("sha256:abd{:061}", 2));
    add_event(&mut object, "a", &event("r", &first, 1));
    add_event(&mut object, "b", &event("r", &second, 1));
    for id in [first.as_str(), "sha256:abc", "abc"] {
        assert_eq!(resolve_image(&object, id, "now").unwrap().image, first, "{id}");
    }
    let missing = resolve_image(&object, "dead", "now").unwrap_err();
    assert_eq!(missing.message, "imagestreamimage.image.openshift.io \"dead\" not found");
    let several = resolve_image(&object, "ab", "now").unwrap_err();
    let both = format!("multiple images match the prefix \"ab\": {first}, {second}");
    assert!(several.message.ends_with(&both), "{}", several.message);
}

prop_compose! {
    fn any_event()(reference in "[ab]", image in "[xy]?", generation in 0_i64..3) -> Event {
        event(&reference, &image, generation)
    }
}

proptest! {
    /// Neighbours in a history never share pull spec or image at the time they are added; the newest event always
    /// means what was added last; nothing below the newest ever changes.
    #[test]
    fn histories_only_grow_at_the_top(events in prop::collection::vec(any_event(), 1..20)) {
        let mut object = stream(json!({}));
        for event in events {
            let before = history(&object, "t");
            let changed = add_event(&mut object, "t", &event);
            let after = history(&object, "t");
            prop_assert_eq!(changed, before != after);
            let newest = latest_event(&object, "t").unwrap();
            prop_assert!(newest.means(&event));
            prop_assert_eq!(newest.generation, event.generation);
            prop_assert!(after.len() == before.len() || after.len() == before.len() + 1);
            let kept = before.len().min(after.len() - 1);
            prop_assert_eq!(&after[after.len() - kept..], &before[before.len() - kept..]);
        }
    }

    /// A list of spec tags is what a map would be.
    #[test]
    fn spec_tags_are_a_map(tags in prop::collection::vec(("[a-d]{1,2}", any::<bool>()), 0..12)) {
        let wanted: std::collections::BTreeMap<String, bool> = tags.iter().cloned().collect();
        let list: Vec<Value> =
            tags.iter().map(|(name, reference)| json!({"name": name, "reference": reference})).collect();
        let whole = stream(json!({"spec": {"tags": list.clone()}}));
        let mut one_by_one = stream(json!({}));
        for tag in list {
            set_spec_tag(&mut one_by_one, tag);
        }
        prop_assert_eq!(&whole, &one_by_one);
        let got: std::collections::BTreeMap<String, bool> =
            spec_tags(&whole).into_iter().map(|(name, tag)| (name.to_owned(), tag.is_reference())).collect();
        prop_assert_eq!(got, wanted);
        let mut again = whole.clone();
        normalise(&mut again);
        prop_assert_eq!(again, whole);
    }
}
