//! Power is cut at every sync point, and between them with any part of what was not synced on the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::disk::{Disk, Event, apply};
use crate::store::embedded::{Embedded, Options, open};
use crate::store::engine_suite::{put, write};
use crate::store::{Change, ChangeSink, Engine, Expect, Revision};

/// State at each revision: key to value.
type Model = BTreeMap<Revision, BTreeMap<String, Vec<u8>>>;

/// Notes on the disk's own record when a change became visible, which is before its writer is answered.
struct Notes(Disk);

impl ChangeSink for Notes {
    fn apply(&self, changes: &[Change]) {
        for change in changes {
            self.0.seen(change.revision);
        }
    }
}

/// A small generator; the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn options() -> Options {
    Options { keep_changes: 24, ..Options::default() }
}

/// An empty store as it is after [`open::initialize`].
pub(super) fn empty() -> Disk {
    let disk = Disk::default();
    open::initialize(disk.backend()).unwrap();
    disk
}

/// Creates, updates and deletes in batches of different size, with values of different size.
async fn workload(engine: &dyn Engine, model: &mut Model) {
    let mut numbers = Numbers(7);
    let mut state: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut positions: BTreeMap<String, Revision> = BTreeMap::new();
    for round in 0..24 {
        for _ in 0..=numbers.below(5) {
            let key = format!("k/{}", numbers.below(12));
            let expect = positions.get(&key).map_or(Expect::Absent, |revision| Expect::At(*revision));
            let delete = positions.contains_key(&key) && numbers.below(4) == 0;
            let length = if numbers.below(12) == 0 { 20_000 } else { numbers.below(700) };
            let value = (!delete).then(|| vec![b'a' + (round % 26) as u8; length]);
            let mut change = write(&key, expect, None);
            change.value = value.clone().map(Into::into);
            let pending = engine.submit(change).unwrap();
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
            model.insert(pending.revision, state.clone());
        }
        engine.settled().await;
    }
}

/// Runs the workload on a recording disk; what the disk was before, what happened, and what should be there.
async fn recorded() -> (Vec<u8>, Vec<Event>, Model) {
    let initial = empty().bytes();
    let disk = Disk::with(initial.clone());
    let engine = Embedded::open_on(disk.backend(), options()).unwrap();
    let mut model = Model::from([(open::FIRST_REVISION, BTreeMap::new())]);
    engine.subscribe("", Arc::new(Notes(disk.clone()))).unwrap();
    workload(&*engine, &mut model).await;
    engine.shutdown().unwrap();
    (initial, disk.events(), model)
}

/// Opens what survived and checks it against the model; returns the disk for a further cut.
fn check(image: Vec<u8>, seen: Revision, model: &Model, label: &str) -> Disk {
    let disk = Disk::with(image);
    // With the usual options nothing is forgotten while the states are compared.
    let engine = match Embedded::open_on(disk.backend(), Options::default()) {
        Ok(engine) => engine,
        Err(why) => panic!("{label}: not opened: {why}"),
    };
    let revision = engine.revision();
    assert!(revision >= seen, "{label}: revision {seen} was seen, {revision} is there");
    assert!(model.contains_key(&revision), "{label}: revision {revision} was never submitted");
    assert!(engine.compacted() <= revision);
    for (at, state) in model.range(engine.compacted()..=revision) {
        let listed = engine.list("", Some(*at)).unwrap();
        let found: BTreeMap<String, Vec<u8>> =
            listed.records.iter().map(|record| (record.key.to_string(), record.value.to_vec())).collect();
        assert!(found == *state, "{label}: the state at {at} is another one");
    }
    disk
}

fn newest_seen(events: &[Event]) -> Revision {
    let seen = |event: &Event| if let Event::Seen(revision) = event { Some(*revision) } else { None };
    events.iter().rev().find_map(seen).unwrap_or(0)
}

/// Bytes after all events up to the last sync, and the events after it.
fn synced(initial: &[u8], events: &[Event]) -> (Vec<u8>, Vec<Event>) {
    let border = events.iter().rposition(|event| matches!(event, Event::Sync)).map_or(0, |last| last + 1);
    let mut bytes = initial.to_vec();
    events[..border].iter().for_each(|event| apply(&mut bytes, event));
    (bytes, events[border..].to_vec())
}

/// Applies some of the unsynced events: each is there, not there, or torn at a sector.
fn partly(bytes: &mut Vec<u8>, unsynced: &[Event], numbers: &mut Numbers) {
    for event in unsynced {
        match (numbers.below(3), event) {
            (0, _) => {}
            (1, Event::Write(offset, data)) => {
                let sectors = numbers.below(data.len() / 512 + 1);
                let (head, tail) = data.split_at((sectors * 512).min(data.len()));
                let torn = match numbers.below(2) {
                    0 => Event::Write(*offset, head.to_vec()),
                    _ => Event::Write(*offset + head.len() as u64, tail.to_vec()),
                };
                apply(bytes, &torn);
            }
            _ => apply(bytes, event),
        }
    }
}

/// The lengths that the file had do not shrink in a cut: a file system makes the length with the data or before it.
fn grown(bytes: &mut Vec<u8>, unsynced: &[Event]) {
    let mut lengths = unsynced.iter().rev().filter_map(|event| match event {
        Event::SetLen(length) => Some(*length as usize),
        _ => None,
    });
    if let Some(length) = lengths.next() {
        bytes.resize(length, 0);
    }
}

#[tokio::test]
async fn every_sync_point_is_a_good_end() {
    let (initial, events, model) = recorded().await;
    let mut cuts = 0;
    for (index, event) in events.iter().enumerate() {
        if matches!(event, Event::Sync) {
            let (bytes, _) = synced(&initial, &events[..=index]);
            // What becomes visible right behind this sync was made durable by it.
            let until = events[index + 1..].iter().position(|event| !matches!(event, Event::Seen(_)));
            let seen = newest_seen(&events[..until.map_or(events.len(), |more| index + 1 + more)]);
            check(bytes, seen, &model, &format!("after sync at {index}"));
            cuts += 1;
        }
    }
    assert!(cuts > 24, "every commit syncs, {cuts} syncs seen");
}

#[tokio::test]
async fn any_part_of_the_unsynced_is_a_good_end() {
    let (initial, events, model) = recorded().await;
    let mut numbers = Numbers(99);
    for (index, event) in events.iter().enumerate() {
        if !matches!(event, Event::Sync) {
            continue;
        }
        let seen = newest_seen(&events[..index]);
        let (bytes, unsynced) = synced(&initial, &events[..index]);
        // All in order up to some point, as when the process is killed; and parts in any order, as when power fails.
        let stop = numbers.below(unsynced.len() + 1);
        let mut prefix = bytes.clone();
        unsynced[..stop].iter().for_each(|event| apply(&mut prefix, event));
        check(prefix, seen, &model, &format!("{stop} of {} writes before {index}", unsynced.len()));
        for attempt in 0..3 {
            let mut part = bytes.clone();
            grown(&mut part, &unsynced);
            partly(&mut part, &unsynced, &mut numbers);
            check(part, seen, &model, &format!("part {attempt} of the writes before {index}"));
        }
    }
}

#[tokio::test]
async fn a_cut_during_recovery_is_a_good_end() {
    let (initial, events, model) = recorded().await;
    let mut numbers = Numbers(5);
    for _ in 0..12 {
        let index = numbers.below(events.len());
        let seen = newest_seen(&events[..index]);
        let mut image = initial.clone();
        events[..index].iter().for_each(|event| apply(&mut image, event));
        let recovery = check(image.clone(), seen, &model, &format!("killed at {index}")).events();
        for stop in 0..=recovery.len() {
            if stop % 3 == 0 || matches!(recovery.get(stop), Some(Event::Sync)) {
                let (mut again, unsynced) = synced(&image, &recovery[..stop]);
                grown(&mut again, &unsynced);
                partly(&mut again, &unsynced, &mut numbers);
                check(again, seen, &model, &format!("killed at {index}, cut at {stop} of the recovery"));
            }
        }
    }
}

#[tokio::test]
async fn concurrent_writers_share_syncs() {
    let disk = empty();
    let engine = Embedded::open_on(disk.backend(), Options::default()).unwrap();
    let before = disk.syncs();
    // The committer publishes its first commit only when it can tell the sinks; all others wait behind it.
    let held = engine.shared.sinks.lock();
    let mut creates = Vec::new();
    for number in 0..400 {
        creates.push(engine.submit(write(&format!("k/{number}"), Expect::Absent, Some("v"))).unwrap());
    }
    drop(held);
    for create in creates {
        create.done.await.unwrap();
    }
    let syncs = disk.syncs() - before;
    assert!(syncs <= 2, "400 creates took {syncs} syncs");
    let before = disk.syncs();
    for number in 0..20 {
        put(&*engine, &format!("alone/{number}"), Expect::Absent, Some("v")).await;
    }
    let syncs = disk.syncs() - before;
    assert!(
        (20..=25).contains(&syncs),
        "20 creates one by one took {syncs} syncs; one each, more when the file shrinks"
    );
}
