//! What kube-apiserver does in the corners: watches from nowhere and from the future, pages, words of refusals.

use super::*;

#[tokio::test]
async fn a_watch_from_nowhere_tells_when_the_state_is_complete() {
    let fixture = Fixture::new().await;
    for n in 0..300 {
        fixture.create(&format!("g{n:03}"), "s").await;
    }
    for resource_version in [None, Some(0)] {
        let options = ListOptions { resource_version, bookmarks: true, ..ListOptions::default() };
        let mut watch = fixture.watch(&options).await;
        let first = watch.next().await.unwrap();
        assert!(first.len() < 300, "the whole list in one piece costs every watcher its size");
        let rest = events(&mut watch, 301 - first.len()).await;
        assert_eq!(rest.last().map(String::as_str), Some("BOOKMARK true"));
    }
    let options = ListOptions { resource_version: Some(0), ..ListOptions::default() };
    let mut watch = fixture.watch(&options).await;
    assert!(events(&mut watch, 300).await.iter().all(|event| event.starts_with("ADDED")));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_confirm_only_what_is_there_and_in_time() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    let options = |revision, timeout_seconds| ListOptions {
        resource_version: Some(revision),
        bookmarks: true,
        timeout_seconds: Some(timeout_seconds),
        ..ListOptions::default()
    };
    let soon = Duration::from_secs(30);
    let mut ahead = fixture.watch(&options(one.revision + 1000, 10)).await;
    assert!(tokio::time::timeout(soon, ahead.next()).await.is_err(), "that revision is not there yet");
    let mut short = fixture.watch(&options(one.revision, 1)).await;
    assert!(tokio::time::timeout(soon, short.next()).await.is_err(), "too short for a last bookmark");
    let mut long = fixture.watch(&options(one.revision, 10)).await;
    assert_eq!(events(&mut long, 1).await, ["BOOKMARK false"]);
}

#[tokio::test]
async fn initial_events_of_the_future_are_an_error_in_the_stream() {
    let fixture = Fixture::new().await;
    let options = ListOptions {
        resource_version: Some(1 << 40),
        version_match: Some(VersionMatch::NotOlderThan),
        send_initial_events: Some(true),
        ..ListOptions::default()
    };
    let mut watch = fixture.watch(&options).await;
    assert_eq!(events(&mut watch, 2).await, ["ERROR 504"]);
}

#[tokio::test]
async fn a_limited_list_at_a_revision_is_of_that_revision() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    fixture.create("two", "s").await;
    let options =
        |limit| ListOptions { resource_version: Some(one.revision), limit, ..ListOptions::default() };
    assert_eq!(names(&fixture.list(&options(5)).await.unwrap()), ["one"]);
    assert_eq!(names(&fixture.list(&options(0)).await.unwrap()), ["one", "two"]);
}

#[tokio::test]
async fn refusals_are_in_the_real_words() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    let uid = one.object().unwrap().uid().to_owned();
    let delete = |preconditions| DeleteOptions { preconditions, ..DeleteOptions::default() };
    let wrong = delete(Preconditions { uid: Some("bad".into()), resource_version: None });
    let refused = fixture.guests.delete(&cx("a"), "one", &wrong).await.err().unwrap();
    assert_eq!(
        refused.message,
        format!(
            "Operation cannot be fulfilled on Guest.example.io \"one\": the UID in the precondition (bad) does not \
             match the UID in record ({uid}). The object might have been deleted and then recreated"
        )
    );
    assert_eq!(refused.details.unwrap().kind, "Guest");
    let wrong = delete(Preconditions { uid: None, resource_version: Some("5".into()) });
    let refused = fixture.guests.delete(&cx("a"), "one", &wrong).await.err().unwrap();
    assert!(refused.message.contains("the ResourceVersion in the precondition (5) does not match"));

    let patched = Edit(|o| o.set_metadata("uid", "other"));
    let refused =
        fixture.guests.update(&cx("a"), "one", &patched, &WriteOptions::default()).await.unwrap_err();
    assert!(refused.message.contains("metadata.uid: Invalid value: \"other\": field is immutable"));

    let mut versioned = guest("two", "s");
    versioned.set_metadata("resourceVersion", "5");
    let refused = fixture.guests.create(&cx("a"), versioned, &WriteOptions::default()).await.unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (500, ""));
    assert_eq!(refused.message, "resourceVersion should not be set on objects to be created");

    let hold = Edit(|o| o.set_metadata("finalizers", json!(["example.io/hold"])));
    fixture.guests.update(&cx("a"), "one", &hold, &WriteOptions::default()).await.unwrap();
    fixture.delete("one").await;
    let refused = fixture.try_create("one", "s").await.unwrap_err();
    assert_eq!(refused.message, "object is being deleted: guests.example.io \"one\" already exists");
}
