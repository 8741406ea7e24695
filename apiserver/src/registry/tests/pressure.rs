//! Lists and watches while much is written: what memory forgets, who is cut off, and what each watch holds.

use super::*;

/// Changes one object so often.
async fn change(fixture: &Fixture, name: &str, times: usize) {
    change_in(fixture, "a", name, times).await;
}

async fn change_in(fixture: &Fixture, namespace: &str, name: &str, times: usize) {
    for _ in 0..times {
        let touch = Edit(|o| {
            let n = o.annotation("n").map_or(0, |n| n.parse::<u64>().unwrap());
            o.set_annotation("n", &(n + 1).to_string());
        });
        fixture.guests.update(&cx(namespace), name, &touch, &WriteOptions::default()).await.unwrap();
    }
}

/// Has memory forget all that was written so far: the log keeps 16 MiB.
async fn outgrow_the_log(fixture: &Fixture) {
    let mut large = guest("large", "z");
    large.object_mut("spec").insert("pad".to_owned(), "x".repeat(1 << 20).into());
    fixture.guests.create(&cx("b"), large, &WriteOptions::default()).await.unwrap();
    change_in(fixture, "b", "large", 17).await;
}

fn at(revision: Revision) -> ListOptions {
    ListOptions {
        resource_version: Some(revision),
        version_match: Some(VersionMatch::Exact),
        ..ListOptions::default()
    }
}

#[tokio::test]
async fn lists_go_back_further_than_memory_does() {
    let fixture = Fixture::new().await;
    for n in 0..5 {
        fixture.create(&format!("g{n}"), "s").await;
    }
    let page = ListOptions { limit: 2, ..ListOptions::default() };
    let first = fixture.guests.list(&cx("a"), &page).await.unwrap();
    let before = items(&fixture.guests.list(&cx("a"), &ListOptions::default()).await.unwrap());
    fixture.delete("g3").await;
    change(&fixture, "g4", 3).await;
    outgrow_the_log(&fixture).await;
    let mut watch = fixture
        .watch(&ListOptions { resource_version: Some(first.revision), ..ListOptions::default() })
        .await;
    assert_eq!(events(&mut watch, 2).await, ["ERROR 410"], "memory has forgotten, and the watch has ended");

    let rest = ListOptions { continue_token: first.continue_token.clone(), ..page.clone() };
    let rest = fixture.guests.list(&cx("a"), &rest).await.unwrap();
    assert_eq!((names(&rest), rest.remaining), (vec!["g2".into(), "g3".into()], Some(1)));
    let exact = fixture.guests.list(&cx("a"), &at(first.revision)).await.unwrap();
    let shown = |items: &[Arc<Item>]| items.iter().map(|i| i.bytes.clone()).collect::<Vec<_>>();
    assert_eq!(shown(&items(&exact)), shown(&before), "the same bytes from the store as from memory");

    // Also after a restart, until the store has forgotten too.
    let fixture = fixture.restart().await;
    let exact = fixture.list(&at(first.revision)).await.unwrap();
    assert_eq!(names(&exact), ["g0", "g1", "g2", "g3", "g4"]);
    fixture.engine.compact(fixture.engine.revision()).unwrap();
    let refused = fixture.list(&at(first.revision)).await.err().unwrap();
    assert_eq!((refused.code, refused.reason.as_str()), (410, "Expired"));
    assert_eq!(refused.message, "The resourceVersion for the provided list is too old.");
}

#[tokio::test]
async fn an_expired_token_comes_with_one_that_goes_on() {
    let fixture = Fixture::new().await;
    for n in 0..5 {
        fixture.create(&format!("g{n}"), "s").await;
    }
    let first = fixture.list(&ListOptions { limit: 2, ..ListOptions::default() }).await.unwrap();
    fixture.delete("g3").await;
    fixture.create("g9", "s").await;
    outgrow_the_log(&fixture).await;
    fixture.engine.compact(fixture.engine.revision()).unwrap();
    let go_on =
        |token: &str| ListOptions { limit: 2, continue_token: token.to_owned(), ..ListOptions::default() };
    let refused = fixture.list(&go_on(&first.continue_token)).await.err().unwrap();
    assert_eq!((refused.code, refused.reason.as_str()), (410, "Expired"));
    assert!(
        refused.message.starts_with("The provided continue parameter is too old to display a consistent")
    );
    let second = fixture.list(&go_on(&refused.continue_token)).await.unwrap();
    assert_eq!(names(&second), ["g2", "g4"], "from where it was, as things are now");
    assert!(second.revision > first.revision);
    let third = fixture.list(&go_on(&second.continue_token)).await.unwrap();
    assert_eq!((names(&third), third.revision), (vec!["g9".into(), "large".into()], second.revision));
    assert_eq!(third.continue_token, "");
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_the_others_see_all() {
    let fixture = Fixture::new().await;
    let first = fixture.create("one", "s").await;
    let from = ListOptions { resource_version: Some(first.revision), ..ListOptions::default() };
    let mut slow = fixture.watch(&from).await;
    let mut others = Vec::new();
    for _ in 0..50 {
        let mut watch = fixture.guests.watch(&cx(""), &from).await.unwrap();
        others.push(tokio::spawn(async move { events(&mut watch, 29).await.len() }));
    }
    change(&fixture, "one", 1).await;
    assert_eq!(events(&mut slow, 1).await, ["MODIFIED one"]);
    change(&fixture, "one", 10).await;
    outgrow_the_log(&fixture).await;
    for other in others {
        assert_eq!(other.await.unwrap(), 29);
    }
    assert_eq!(events(&mut slow, 2).await, ["ERROR 410"], "nothing after that: it has ended");
}

#[tokio::test]
async fn a_batch_is_small_even_of_large_objects() {
    let fixture = Fixture::new().await;
    let revision = fixture.engine.revision();
    for n in 0..6 {
        let mut large = guest(&format!("g{n}"), "s");
        large.set_annotation("pad", &"x".repeat(100_000));
        fixture.guests.create(&cx("a"), large, &WriteOptions::default()).await.unwrap();
    }
    let size = |events: &[WatchEvent]| -> usize {
        let bytes = |event: &WatchEvent| match event {
            WatchEvent::Added(item) => item.bytes.len(),
            _ => 0,
        };
        events.iter().map(bytes).sum()
    };
    for resource_version in [Some(revision), None] {
        let mut watch = fixture.watch(&ListOptions { resource_version, ..ListOptions::default() }).await;
        let mut seen = 0;
        while seen < 6 {
            let batch = watch.next().await.unwrap();
            assert!(size(&batch) <= 256 << 10, "{} bytes at a time", size(&batch));
            seen += batch.len();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_within_a_minute_whatever_happens() {
    let fixture = Fixture::new().await;
    let one = fixture.create("one", "s").await;
    let options = |labels: &str| ListOptions {
        labels: LabelSelector::parse(labels).unwrap(),
        resource_version: Some(one.revision),
        bookmarks: true,
        ..ListOptions::default()
    };
    // One sees nothing of what happens, the other everything.
    let mut quiet = fixture.watch(&options("seat=none")).await;
    let mut busy = fixture.watch(&options("")).await;
    let mut count = [0, 0];
    for _ in 0..600 {
        // Time that stands still goes on by itself when all tasks wait, but not while one of these runs.
        let (go_on, held) = std::sync::mpsc::channel::<()>();
        let held = tokio::task::spawn_blocking(move || held.recv());
        change(&fixture, "one", 1).await;
        drop(go_on);
        assert!(held.await.unwrap().is_err());
        for (index, watch) in [&mut quiet, &mut busy].into_iter().enumerate() {
            while let Ok(Some(batch)) = tokio::time::timeout(Duration::from_millis(1), watch.next()).await {
                for event in batch {
                    if let WatchEvent::Bookmark { revision, .. } = event {
                        assert!(revision > one.revision && revision <= fixture.engine.revision());
                        count[index] += 1;
                    }
                }
            }
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(count.iter().all(|count| (10..=14).contains(count)), "{count:?} in ten minutes");
}
