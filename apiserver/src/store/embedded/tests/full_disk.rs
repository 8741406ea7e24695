//! The disk fills up or goes away: the write is refused, nothing acknowledged is lost, reads go on, a restart works.

use std::sync::Arc;

use super::disk::Disk;
use super::power_loss::empty;
use crate::store::embedded::open::FIRST_REVISION;
use crate::store::embedded::room::Room;
use crate::store::embedded::{Embedded, Options};
use crate::store::engine_suite::{put, write};
use crate::store::{Engine, Expect, StoreError};

async fn failing(spoil: impl FnOnce(&Disk)) -> (Disk, Arc<Embedded>, String) {
    let disk = empty();
    let engine = Embedded::open_on(disk.backend(), Options::default()).unwrap();
    for number in 0..30 {
        put(&*engine, &format!("k/{number:02}"), Expect::Absent, Some(&"v".repeat(500))).await;
    }
    assert_eq!(engine.failure(), None);
    spoil(&disk);
    let refused = engine.submit(write("new", Expect::Absent, Some("lost"))).unwrap();
    let queued = engine.submit(write("new", Expect::At(refused.revision), Some("lost too")));
    let Err(StoreError::Failed(why)) = refused.done.await else { panic!("the write must fail") };
    if let Ok(queued) = queued {
        assert!(matches!(queued.done.await, Err(StoreError::Failed(_))));
    }
    engine.settled().await;
    (disk, engine, why.to_string())
}

fn check_reads(engine: &dyn Engine) {
    assert_eq!(engine.revision(), FIRST_REVISION + 30);
    assert_eq!(engine.get("new").unwrap(), None);
    assert_eq!(engine.get("k/07").unwrap().unwrap().value.len(), 500);
    assert_eq!(engine.list("k/", None).unwrap().records.len(), 30);
    assert_eq!(engine.list("k/", Some(FIRST_REVISION + 11)).unwrap().records.len(), 11);
}

fn check_refusal(engine: &dyn Engine) {
    for _ in 0..2 {
        let again = engine.submit(write("k/new", Expect::Absent, Some("v")));
        assert!(matches!(again, Err(StoreError::Failed(_))), "nothing is written until a restart");
        assert!(matches!(engine.compact(5), Err(StoreError::Failed(_))));
    }
}

#[tokio::test]
async fn a_full_disk_fails_writes_only() {
    for room in [0, 100, 4096, 5000] {
        let (disk, engine, why) = failing(|disk| disk.fill_after(room)).await;
        assert!(why.contains("write the file"), "{why}");
        check_reads(&*engine);
        check_refusal(&*engine);
        assert!(engine.failure().is_some_and(|why| why.contains("write the file")), "the probe sees it");
        assert!(engine.shutdown().is_err(), "the loss is told");
        drop(engine);
        let engine = Embedded::open_on(Disk::with(disk.bytes()).backend(), Options::default()).unwrap();
        check_reads(&*engine);
        assert_eq!(put(&*engine, "new", Expect::Absent, Some("v")).await, FIRST_REVISION + 31);
    }
}

#[tokio::test]
async fn a_disk_that_is_seen_to_be_full_refuses_writes_until_there_is_room() {
    let room = Room::Said(parking_lot::Mutex::new(64 << 20));
    let engine = Embedded::open_with(empty().backend(), Options::default(), room).unwrap();
    let said = |free| match &engine.shared.queue.room {
        Room::Said(said) => *said.lock() = free,
        other => panic!("{other:?}"),
    };
    let one = put(&*engine, "k", Expect::Absent, Some("1")).await;
    said(4 << 20);
    for refused in [write("k", Expect::At(one), Some("2")), write("l", Expect::Absent, Some("2"))] {
        let Err(StoreError::Full { free, needed }) = engine.submit(refused) else {
            panic!("must be refused")
        };
        assert!(free == 4 << 20 && needed > free);
    }
    let conflict = engine.submit(write("k", Expect::Absent, Some("2")));
    assert!(matches!(conflict, Err(StoreError::Conflict { .. })), "what is wrong anyhow is told first");
    assert_eq!((engine.revision(), engine.failure()), (one, None));
    assert_eq!(engine.get("k").unwrap().unwrap().revision, one);
    said(64 << 20);
    assert_eq!(put(&*engine, "k", Expect::At(one), Some("3")).await, one + 1, "no revision was lost");
}

#[tokio::test]
async fn a_failed_sync_fails_writes_only() {
    let (disk, engine, why) = failing(Disk::fail_syncs).await;
    assert!(why.contains("the disk went away"), "{why}");
    check_reads(&*engine);
    check_refusal(&*engine);
    let events = disk.events().len();
    drop(engine);
    assert_eq!(disk.events().len(), events, "nothing more is written after a failed sync");
    // Whether the write that failed is in the file is open; the rest is there.
    let engine = Embedded::open_on(Disk::with(disk.bytes()).backend(), Options::default()).unwrap();
    assert!((30..=32).contains(&(engine.revision() - FIRST_REVISION)));
    assert_eq!(engine.list("k/", None).unwrap().records.len(), 30);
}

#[tokio::test]
async fn a_full_queue_is_busy_not_endless() {
    let disk = empty();
    let engine = Embedded::open_on(disk.backend(), Options::default()).unwrap();
    // Holds the committer: it publishes only when it can tell the sinks.
    let held = engine.shared.sinks.lock();
    let value = bytes::Bytes::from(vec![1; 1 << 20]);
    let mut accepted = Vec::new();
    let refused = loop {
        let mut create = write(&format!("k/{}", accepted.len()), Expect::Absent, None);
        create.value = Some(value.clone());
        match engine.submit(create) {
            Ok(pending) => accepted.push(pending),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
    assert!((20..40).contains(&accepted.len()), "{} MiB were taken", accepted.len());
    drop(held);
    for pending in accepted {
        pending.done.await.unwrap();
    }
    put(&*engine, "later", Expect::Absent, Some("v")).await;
}

#[tokio::test]
async fn a_panicking_sink_stops_the_store() {
    struct Bomb;
    impl crate::store::ChangeSink for Bomb {
        fn apply(&self, _: &[crate::store::Change]) {
            panic!("tick");
        }
    }
    let engine = Embedded::open_on(empty().backend(), Options::default()).unwrap();
    engine.subscribe("b/", Arc::new(Bomb)).unwrap();
    put(&*engine, "a", Expect::Absent, Some("v")).await;
    let pending = engine.submit(write("b/x", Expect::Absent, Some("v"))).unwrap();
    let Err(StoreError::Failed(why)) = pending.done.await else { panic!("must fail") };
    assert!(why.contains("tick"), "{why}");
    assert!(engine.submit(write("c", Expect::Absent, Some("v"))).is_err());
    assert!(engine.get("a").unwrap().is_some());
}
