//! What every engine must promise, as tests against `dyn Engine` alone.
//!
//! Nothing here may hold for one engine only: revisions have gaps where an engine counts more than our changes, an engine
//! may be further than our last write, and limits are its own. What is the embedded one's alone is tested beside it.
//!
//! In: a function that opens an engine on the same data each time it is called (all handed out before are dropped by
//! then). [`engine_suite!`] makes one test of each promise.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Change, ChangeSink, Engine, Expect, Record, Revision, StoreError, Write};

/// Opens the engine under test.
pub(crate) type Open<'a> = &'a dyn Fn() -> Arc<dyn Engine>;

/// Makes a test of each promise; `$open` gives a fresh `impl Fn() -> Arc<dyn Engine>`.
macro_rules! engine_suite {
    ($open:expr) => {
        $crate::store::engine_suite::engine_suite!(@tests $open;
            a_new_store_has_a_revision preconditions conflicts_count_pending_writes writes_are_ordered sinks_see_changes_before_the_writer
            sinks_see_each_change_once subscriptions_have_history lists_at_old_revisions compaction_forgets
            restarts_keep_everything writers_who_go_away_still_write writers_race_safely prefixes_are_exact limits_are_errors
            histories_equal_the_model);
    };
    (@tests $open:expr; $($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let open = $open;
            $crate::store::engine_suite::$name(&open).await;
        }
    )*};
}
pub(crate) use engine_suite;

/// A write of a short text.
pub(crate) fn write(key: &str, expect: Expect, value: Option<&str>) -> Write {
    Write { key: key.into(), expect, value: value.map(|text| Bytes::copy_from_slice(text.as_bytes())) }
}

/// Submits and waits.
pub(crate) async fn put(engine: &dyn Engine, key: &str, expect: Expect, value: Option<&str>) -> Revision {
    let pending = engine.submit(write(key, expect, value)).unwrap();
    pending.done.await.unwrap();
    pending.revision
}

/// A sink that keeps what it sees.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<Change>>);

impl ChangeSink for Seen {
    fn apply(&self, changes: &[Change]) {
        self.0.lock().extend_from_slice(changes);
    }
}

fn conflict(result: Result<super::Pending, StoreError>) -> Option<Revision> {
    match result {
        Err(StoreError::Conflict { current }) => current,
        Err(other) => panic!("expected a conflict, got {other}"),
        Ok(pending) => panic!("expected a conflict, got revision {}", pending.revision),
    }
}

fn texts(records: &[Record]) -> Vec<(String, String)> {
    let text = |record: &Record| (record.key.to_string(), String::from_utf8(record.value.to_vec()).unwrap());
    records.iter().map(text).collect()
}

pub(crate) async fn a_new_store_has_a_revision(open: Open<'_>) {
    let first = open().revision();
    assert!(first > 0, "a watch from 0 is a watch from anywhere");
    let engine = open();
    let again = engine.revision();
    assert!(again >= first, "it never goes back");
    assert!(engine.list("", None).unwrap().revision >= again);
    assert!(engine.compacted() <= engine.revision());
    let subscription = engine.subscribe("a/", Arc::new(Seen::default())).unwrap();
    assert!(subscription.since <= subscription.snapshot.revision && subscription.history.is_empty());
    assert!(put(&*engine, "a/1", Expect::Absent, Some("one")).await > again);
}

pub(crate) async fn preconditions(open: Open<'_>) {
    let engine = open();
    let created = put(&*engine, "a/1", Expect::Absent, Some("one")).await;
    assert!(engine.revision() >= created);
    assert_eq!(conflict(engine.submit(write("a/1", Expect::Absent, Some("x")))), Some(created));
    assert_eq!(conflict(engine.submit(write("a/1", Expect::At(created + 9), Some("x")))), Some(created));
    assert_eq!(conflict(engine.submit(write("a/2", Expect::At(created), Some("x")))), None);
    assert_eq!(conflict(engine.submit(write("a/2", Expect::Absent, None))), None, "nothing to delete");
    let updated = put(&*engine, "a/1", Expect::At(created), Some("two")).await;
    let record = engine.get("a/1").unwrap().unwrap();
    assert_eq!(
        (record.create_revision, record.revision, &*record.value),
        (created, updated, b"two".as_slice())
    );
    let deleted = put(&*engine, "a/1", Expect::At(updated), None).await;
    assert_eq!(engine.get("a/1").unwrap(), None);
    let again = put(&*engine, "a/1", Expect::Absent, Some("")).await;
    let record = engine.get("a/1").unwrap().unwrap();
    assert_eq!((record.create_revision, record.value.len()), (again, 0));
    assert!(created < updated && updated < deleted && deleted < again);
}

pub(crate) async fn conflicts_count_pending_writes(open: Open<'_>) {
    let engine = open();
    let first = engine.submit(write("k", Expect::Absent, Some("1"))).unwrap();
    assert_eq!(conflict(engine.submit(write("k", Expect::Absent, Some("2")))), Some(first.revision));
    let second = engine.submit(write("k", Expect::At(first.revision), Some("2"))).unwrap();
    let third = engine.submit(write("k", Expect::At(second.revision), None)).unwrap();
    assert_eq!(conflict(engine.submit(write("k", Expect::At(second.revision), None))), None);
    let fourth = engine.submit(write("k", Expect::Absent, Some("4"))).unwrap();
    engine.settled().await;
    assert_eq!(engine.get("k").unwrap().unwrap().create_revision, fourth.revision);
    assert!(engine.revision() >= fourth.revision);
    for pending in [first, second, third, fourth] {
        pending.done.await.unwrap();
    }
}

pub(crate) async fn writes_are_ordered(open: Open<'_>) {
    let engine = open();
    let start = engine.revision();
    let seen = Arc::new(Seen::default());
    engine.subscribe("", Arc::clone(&seen) as Arc<dyn ChangeSink>).unwrap();
    for number in 0..50 {
        let pending = engine.submit(write(&format!("k/{number}"), Expect::Absent, Some("v"))).unwrap();
        assert!(pending.revision > start + number, "a revision of its own");
    }
    engine.settled().await;
    let seen = seen.0.lock();
    let keys: Vec<String> = seen.iter().map(|change| change.key.to_string()).collect();
    assert_eq!(keys, (0..50).map(|number| format!("k/{number}")).collect::<Vec<_>>());
    assert!(seen.is_sorted_by(|one, next| one.revision < next.revision));
}

pub(crate) async fn sinks_see_changes_before_the_writer(open: Open<'_>) {
    /// Looks at the engine while it is told of a change.
    struct Early(std::sync::Weak<dyn Engine>, Mutex<Vec<Revision>>, Mutex<Vec<Change>>);
    impl ChangeSink for Early {
        fn apply(&self, changes: &[Change]) {
            self.1.lock().push(self.0.upgrade().unwrap().revision());
            self.2.lock().extend_from_slice(changes);
        }
    }
    let engine = open();
    let sink = Arc::new(Early(Arc::downgrade(&engine), Mutex::default(), Mutex::default()));
    engine.subscribe("k", Arc::clone(&sink) as Arc<dyn ChangeSink>).unwrap();
    let mut expect = Expect::Absent;
    for number in 0..10 {
        let revision = put(&*engine, "k", expect, Some(&number.to_string())).await;
        assert_eq!(sink.2.lock().last().unwrap().revision, revision, "seen before the writer was answered");
        assert!(*sink.1.lock().last().unwrap() < revision, "seen before the revision is reached");
        assert!(engine.revision() >= revision);
        expect = Expect::At(revision);
    }
    let values: Vec<Bytes> =
        sink.2.lock().iter().flat_map(|change| change.current.clone()).map(|r| r.value).collect();
    assert_eq!(values, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
}

pub(crate) async fn sinks_see_each_change_once(open: Open<'_>) {
    let engine = open();
    let writer = Arc::clone(&engine);
    let writes = tokio::spawn(async move {
        for number in 0..200 {
            let _ = writer.submit(write(&format!("k/{number}"), Expect::Absent, Some("v"))).unwrap();
            tokio::task::yield_now().await;
        }
        writer.settled().await;
    });
    let mut subscribed = Vec::new();
    while !writes.is_finished() {
        let sink = Arc::new(Seen::default());
        let start = engine.subscribe("k/", Arc::clone(&sink) as Arc<dyn ChangeSink>).unwrap();
        subscribed.push((start, sink));
        tokio::task::yield_now().await;
    }
    writes.await.unwrap();
    for (start, sink) in subscribed {
        let mut revisions: Vec<Revision> =
            start.snapshot.records.iter().map(|record| record.revision).collect();
        assert_eq!(start.history.len(), revisions.len());
        revisions.sort_unstable();
        assert!(revisions.iter().all(|revision| *revision <= start.snapshot.revision));
        let live: Vec<Revision> = sink.0.lock().iter().map(|change| change.revision).collect();
        assert!(live.iter().all(|revision| *revision > start.snapshot.revision));
        revisions.extend(live);
        assert_eq!(revisions.len(), 200, "none lost, none twice");
        assert!(revisions.is_sorted_by(|one, next| one < next));
    }
}

pub(crate) async fn subscriptions_have_history(open: Open<'_>) {
    let engine = open();
    let one = put(&*engine, "r/a", Expect::Absent, Some("1")).await;
    let two = put(&*engine, "r/a", Expect::At(one), Some("2")).await;
    put(&*engine, "other", Expect::Absent, Some("x")).await;
    let three = put(&*engine, "r/a", Expect::At(two), None).await;
    let subscription = engine.subscribe("r/", Arc::new(Seen::default())).unwrap();
    assert_eq!(subscription.snapshot.records, []);
    assert!((three..=engine.revision()).contains(&subscription.snapshot.revision));
    assert!(subscription.since < one);
    let revisions: Vec<Revision> = subscription.history.iter().map(|past| past.change.revision).collect();
    assert_eq!(revisions, [one, two, three]);
    let [create, update, delete] = &subscription.history[..] else { panic!("three changes") };
    assert_eq!(create.previous, None);
    assert_eq!(update.previous, create.change.current);
    assert_eq!((&delete.previous, &delete.change.current), (&update.change.current, &None));
}

pub(crate) async fn lists_at_old_revisions(open: Open<'_>) {
    let engine = open();
    let one = put(&*engine, "l/a", Expect::Absent, Some("a1")).await;
    let two = put(&*engine, "l/b", Expect::Absent, Some("b1")).await;
    let three = put(&*engine, "l/a", Expect::At(one), Some("a2")).await;
    let four = put(&*engine, "l/b", Expect::At(two), None).await;
    let at = |revision| texts(&engine.list("l/", Some(revision)).unwrap().records);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(at(one), [pair("l/a", "a1")]);
    assert_eq!(at(two), [pair("l/a", "a1"), pair("l/b", "b1")]);
    assert_eq!(at(three), [pair("l/a", "a2"), pair("l/b", "b1")]);
    assert_eq!(at(four), [pair("l/a", "a2")]);
    let newest = engine.list("l/", None).unwrap();
    assert!(newest.revision >= four);
    assert_eq!(texts(&newest.records), at(four));
    let far = newest.revision + 1_000_000;
    match engine.list("l/", Some(far)) {
        Err(StoreError::Future { requested, current }) => assert!(requested == far && current >= four),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn compaction_forgets(open: Open<'_>) {
    let engine = open();
    let one = put(&*engine, "c/a", Expect::Absent, Some("1")).await;
    let two = put(&*engine, "c/a", Expect::At(one), Some("2")).await;
    let three = put(&*engine, "c/b", Expect::Absent, Some("3")).await;
    let four = put(&*engine, "c/a", Expect::At(two), None).await;
    engine.compact(three).unwrap();
    assert_eq!(engine.compacted(), three);
    match engine.list("c/", Some(two)) {
        Err(StoreError::Compacted { requested, oldest }) => assert_eq!((requested, oldest), (two, three)),
        other => panic!("{other:?}"),
    }
    let listed = engine.list("c/", Some(three)).unwrap();
    assert_eq!(listed.records.len(), 2, "the compacted revision itself can be read");
    let subscription = engine.subscribe("c/", Arc::new(Seen::default())).unwrap();
    assert_eq!((subscription.since, subscription.history.len()), (three, 1));
    assert_eq!(
        subscription.history[0].previous.as_ref().unwrap().revision,
        two,
        "history has its previous records"
    );
    engine.compact(one).unwrap();
    assert_eq!(engine.compacted(), three, "it never goes back");
    engine.compact(four + 1_000_000).unwrap();
    let top = engine.compacted();
    assert!((four..=engine.revision()).contains(&top), "and not beyond what is there");
    assert_eq!(engine.list("c/", Some(top)).unwrap().records.len(), 1);
    let five = put(&*engine, "c/a", Expect::Absent, Some("5")).await;
    assert_eq!(engine.list("c/", Some(top)).unwrap().records.len(), 1);
    assert_eq!(engine.list("c/", Some(five)).unwrap().records.len(), 2);
}

pub(crate) async fn restarts_keep_everything(open: Open<'_>) {
    let engine = open();
    let one = put(&*engine, "a", Expect::Absent, Some("1")).await;
    let two = put(&*engine, "a", Expect::At(one), Some("2")).await;
    let last = put(&*engine, "a", Expect::At(two), None).await;
    drop(engine);
    let engine = open();
    assert!(engine.revision() >= last);
    assert_eq!(texts(&engine.list("", Some(one)).unwrap().records), [("a".to_owned(), "1".to_owned())]);
    let history = engine.subscribe("", Arc::new(Seen::default())).unwrap().history;
    assert_eq!(history.last().unwrap().previous.as_ref().unwrap().revision, two);
    engine.compact(last).unwrap();
    let later = put(&*engine, "b", Expect::Absent, Some("later")).await;
    let gone = put(&*engine, "b", Expect::At(later), None).await;
    engine.compact(gone).unwrap();
    engine.settled().await;
    drop(engine);
    let engine = open();
    assert!(engine.revision() >= gone, "also when nothing is left of the newest change");
    assert_eq!(engine.list("", None).unwrap().records, []);
    assert!(put(&*engine, "c", Expect::Absent, Some("")).await > gone);
}

pub(crate) async fn writers_who_go_away_still_write(open: Open<'_>) {
    let engine = open();
    drop(engine.submit(write("k", Expect::Absent, Some("1"))).unwrap());
    let second = engine.submit(write("l", Expect::Absent, Some("2"))).unwrap();
    let mut done = second.done;
    // Asked once, and given up then.
    let _ = futures::poll!(&mut done);
    drop(done);
    engine.settled().await;
    assert_eq!(engine.list("", None).unwrap().records.len(), 2);
}

pub(crate) async fn writers_race_safely(open: Open<'_>) {
    let engine = open();
    let writers: Vec<_> = (0..8).map(|_| tokio::spawn(count_up(Arc::clone(&engine), 25))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let record = engine.get("counter").unwrap().unwrap();
    assert_eq!(&*record.value, b"200", "no update is lost");
}

/// Increments a shared counter as clients do: read, write, retry on conflict.
async fn count_up(engine: Arc<dyn Engine>, times: u32) {
    for _ in 0..times {
        loop {
            let current = engine.get("counter").unwrap();
            let text = current.as_ref().map_or("0", |record| std::str::from_utf8(&record.value).unwrap());
            let next = (text.parse::<u32>().unwrap() + 1).to_string();
            let expect = current.as_ref().map_or(Expect::Absent, |record| Expect::At(record.revision));
            match engine.submit(write("counter", expect, Some(&next))) {
                Ok(pending) => break pending.done.await.unwrap(),
                Err(StoreError::Conflict { .. }) => engine.settled().await,
                Err(other) => panic!("{other}"),
            }
        }
    }
}

pub(crate) async fn prefixes_are_exact(open: Open<'_>) {
    let engine = open();
    let sink = Arc::new(Seen::default());
    engine.subscribe("r/ns/", Arc::clone(&sink) as Arc<dyn ChangeSink>).unwrap();
    for key in ["r/ns/b", "r/ns/a", "r/ns2/a", "r/ns", "r/nr/z", "s/ns/a", "r/ns/é"] {
        put(&*engine, key, Expect::Absent, Some(key)).await;
    }
    let listed = engine.list("r/ns/", None).unwrap();
    let keys: Vec<&str> = listed.records.iter().map(|record| &*record.key).collect();
    assert_eq!(keys, ["r/ns/a", "r/ns/b", "r/ns/é"]);
    let seen: Vec<String> = sink.0.lock().iter().map(|change| change.key.to_string()).collect();
    assert_eq!(seen, ["r/ns/b", "r/ns/a", "r/ns/é"]);
    assert_eq!(engine.list("", None).unwrap().records.len(), 7);
    assert_eq!(engine.list("t", None).unwrap().records.len(), 0);
}

pub(crate) async fn limits_are_errors(open: Open<'_>) {
    let engine = open();
    let large = |size: usize| Write {
        key: "big".into(),
        expect: Expect::Absent,
        value: Some(Bytes::from(vec![7; size])),
    };
    let over = 64 << 20;
    let limit = match engine.submit(large(over)) {
        Err(StoreError::TooLarge { size, limit }) if size >= over => limit,
        _ => panic!("too large"),
    };
    assert!(limit >= 1_500_000, "objects of 1.5 MB are stored");
    assert!(matches!(engine.submit(large(limit + 1)), Err(StoreError::TooLarge { .. })));
    let endless = write(&"k".repeat(1 << 20), Expect::Absent, Some(""));
    assert!(matches!(engine.submit(endless), Err(StoreError::TooLarge { .. })));
    engine.submit(large(limit)).unwrap().done.await.unwrap();
    assert_eq!(engine.get("big").unwrap().unwrap().value.len(), limit);
    // A resource, a namespace and a name, each as long as it can be.
    put(&*engine, &"n".repeat(600), Expect::Absent, Some("v")).await;
}

/// Some hundred writes of a few keys, then: the state at every revision, and the history, are the model's.
pub(crate) async fn histories_equal_the_model(open: Open<'_>) {
    let engine = open();
    let mut model: Vec<(Revision, BTreeMap<String, String>)> = vec![(engine.revision(), BTreeMap::new())];
    let mut positions: BTreeMap<String, Revision> = BTreeMap::new();
    for step in 0..300_u32 {
        let key = format!("m/{}", step.wrapping_mul(2_654_435_761) >> 29);
        let delete = step % 5 == 4 && positions.contains_key(&key);
        let value = (!delete).then(|| format!("value {step}"));
        let expect = positions.get(&key).map_or(Expect::Absent, |revision| Expect::At(*revision));
        let pending = engine.submit(write(&key, expect, value.as_deref())).unwrap();
        let mut state = model.last().unwrap().1.clone();
        match value {
            Some(value) => {
                positions.insert(key.clone(), pending.revision);
                state.insert(key, value);
            }
            None => {
                positions.remove(&key);
                state.remove(&key);
            }
        }
        model.push((pending.revision, state));
    }
    engine.settled().await;
    drop(engine);
    let engine = open();
    for (step, (revision, state)) in model.iter().enumerate() {
        let listed = engine.list("m/", Some(*revision)).unwrap();
        let state: Vec<_> = state.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(texts(&listed.records), state, "at step {step}");
    }
    assert_eq!(engine.subscribe("m/", Arc::new(Seen::default())).unwrap().history.len(), 300);
}
