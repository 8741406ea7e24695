//! What is durable and published, in memory: where each key stands, without values.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::{RwLock, RwLockReadGuard};

use super::history::History;
use super::record::MAX_KEY;
use crate::store::{Change, Key, Revision};

/// Where a live key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) create_revision: Revision,
    pub(super) revision: Revision,
    /// Bytes of its record, roughly.
    pub(super) size: u32,
}

/// All live keys at one revision.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) live: BTreeMap<Key, Live>,
    pub(super) revision: Revision,
}

impl Keys {
    /// The live keys with a prefix, in order.
    pub(super) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a Key, &'a Live)> {
        self.live
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Takes over one change, the next one, and tells the history what it superseded.
    pub(super) fn apply(&mut self, change: &Change, history: &mut History) {
        let superseded = match &change.current {
            Some(record) => {
                let live = Live {
                    create_revision: record.create_revision,
                    revision: record.revision,
                    size: record_size(&record.key, record.value.len()),
                };
                self.live.insert(Key::clone(&change.key), live)
            }
            None => self.live.remove(&change.key),
        };
        let tombstone = if change.current.is_none() { record_size(&change.key, 0) } else { 0 };
        history.push(superseded.map_or(0, |live| live.size).saturating_add(tombstone));
        self.revision = change.revision;
    }
}

/// Bytes that a record takes in the file, roughly.
pub(super) fn record_size(key: &str, value: usize) -> u32 {
    u32::try_from(key.len().min(MAX_KEY) + value + 64).unwrap_or(u32::MAX)
}

/// The published keys, shared.
pub(super) struct State(RwLock<Keys>);

impl State {
    pub(super) fn new(keys: Keys) -> Self {
        Self(RwLock::new(keys))
    }

    /// The keys, held still. The guard keeps publication waiting: for a look or a copy, not for reading values.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.0.read()
    }

    /// Where one key stands.
    pub(super) fn find(&self, key: &str) -> Option<Live> {
        self.0.read().live.get(key).copied()
    }

    /// Takes over changes, all at once.
    pub(super) fn apply(&self, changes: &[Change], history: &mut History) {
        let mut keys = self.0.write();
        for change in changes {
            keys.apply(change, history);
        }
    }
}
