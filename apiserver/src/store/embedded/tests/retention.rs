//! History is bounded in number and bytes, and so is the file.

use std::sync::Arc;

use super::power_loss::empty;
use super::{opener, path_in};
use crate::store::embedded::open::FIRST_REVISION;
use crate::store::embedded::{Embedded, Options};
use crate::store::engine_suite::{Seen, put, write};
use crate::store::{Engine, Expect, StoreError};

/// Updates one key many times.
async fn update(engine: &dyn Engine, times: usize, value: &str) {
    let mut at = engine.get("k").unwrap().map(|record| record.revision);
    for _ in 0..times {
        let pending = engine.submit(write("k", at.map_or(Expect::Absent, Expect::At), Some(value))).unwrap();
        at = Some(pending.revision);
        if pending.revision.is_multiple_of(20) {
            engine.settled().await;
        }
    }
    engine.settled().await;
}

#[tokio::test]
async fn the_number_of_changes_is_bounded() {
    let options = Options { keep_changes: 100, ..Options::default() };
    let engine = Embedded::open_on(empty().backend(), options).unwrap();
    update(&*engine, 1000, "v").await;
    let newest = engine.revision();
    assert_eq!(newest, FIRST_REVISION + 1000);
    let compacted = engine.compacted();
    assert!((800..=900).contains(&compacted), "at least 100 changes are kept, {compacted} compacted");
    assert!(matches!(engine.list("", Some(compacted - 1)), Err(StoreError::Compacted { .. })));
    assert_eq!(engine.list("", Some(compacted)).unwrap().records[0].revision, compacted);
    let subscription = engine.subscribe("", Arc::new(Seen::default())).unwrap();
    assert_eq!(subscription.history.len() as u64, newest - subscription.since);
    assert!(subscription.history.iter().all(|change| change.previous.is_some()));
}

#[tokio::test]
async fn the_bytes_of_history_are_bounded_and_the_file_too() {
    let disk = empty();
    let options = Options { keep_bytes: 1 << 20, ..Options::default() };
    let engine = Embedded::open_on(disk.backend(), options).unwrap();
    let value = "v".repeat(20_000);
    update(&*engine, 200, &value).await;
    let early = disk.bytes().len();
    update(&*engine, 600, &value).await;
    let late = disk.bytes().len();
    assert!(late <= 2 * early && late < 12 << 20, "16 MB of updates made {early}, then {late} bytes");
    let kept = engine.revision() - engine.compacted();
    assert!((40..=60).contains(&kept), "about 1 MiB of 20 kB values: {kept}");
}

#[tokio::test]
async fn compaction_survives_restarts() {
    let open = opener();
    let engine = open();
    update(&*engine, 300, "v").await;
    engine.compact(250).unwrap();
    // The work of a compaction is done by the time that a later write is settled, as long as it is one step.
    put(&*engine, "other", Expect::Absent, Some("v")).await;
    drop(engine);
    let engine = open();
    assert_eq!((engine.revision(), engine.compacted()), (FIRST_REVISION + 301, 250));
    assert!(matches!(engine.list("", Some(249)), Err(StoreError::Compacted { oldest: 250, .. })));
    assert_eq!(engine.list("", Some(250)).unwrap().records.len(), 1);
    let subscription = engine.subscribe("k", Arc::new(Seen::default())).unwrap();
    assert_eq!(
        (subscription.since, subscription.history.len()),
        (250, 50 + usize::try_from(FIRST_REVISION).unwrap())
    );
    assert_eq!(subscription.history[0].previous.as_ref().unwrap().revision, 250);
}

#[tokio::test]
async fn a_file_with_much_unused_space_shrinks_when_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let options = Options { keep_bytes: 256 << 20, ..Options::default() };
    let engine = Embedded::open(&path, options).unwrap();
    update(&*engine, 60, &"v".repeat(1_500_000)).await;
    engine.compact(60).unwrap();
    put(&*engine, "other", Expect::Absent, Some("v")).await;
    drop(engine);
    let before = std::fs::metadata(&path).unwrap().len();
    let engine = Embedded::open(&path, options).unwrap();
    assert_eq!(engine.get("k").unwrap().unwrap().value.len(), 1_500_000);
    drop(engine);
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after < 16 << 20, "{before} bytes became {after}");
}

#[tokio::test]
async fn subscribers_get_no_more_than_memory_is_for() {
    let engine = Embedded::open_on(empty().backend(), Options::default()).unwrap();
    let first = engine.revision();
    update(&*engine, 10_500, "v").await;
    assert_eq!(engine.compacted(), first, "all is kept");
    let subscription = engine.subscribe("k", Arc::new(Seen::default())).unwrap();
    assert_eq!((subscription.since, subscription.history.len()), (first + 500, 10_000));
    assert_eq!(subscription.history[0].change.revision, first + 501);
    let listed = engine.list("k", Some(first + 3)).unwrap();
    assert_eq!(listed.records[0].revision, first + 3, "lists go back further");
}

#[tokio::test]
async fn limits_are_as_documented() {
    let engine = Embedded::open_on(empty().backend(), Options::default()).unwrap();
    let largest = "v".repeat(1_572_864);
    match engine.submit(write("big", Expect::Absent, Some(&format!("{largest}v")))) {
        Err(StoreError::TooLarge { size, limit }) => {
            assert_eq!((size, limit), (largest.len() + 1, largest.len()));
        }
        _ => panic!("too large"),
    }
    put(&*engine, &"k".repeat(1024), Expect::Absent, Some(&largest)).await;
    let over = engine.submit(write(&"k".repeat(1025), Expect::Absent, Some("")));
    assert!(matches!(over, Err(StoreError::TooLarge { size: 1025, limit: 1024 })));
    assert_eq!(put(&*engine, "next", Expect::Absent, Some("v")).await, FIRST_REVISION + 2, "no gaps");
}
