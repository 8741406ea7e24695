//! Reads: a consistent state at one revision, from the keys in memory and the records in the file.
//!
//! A view of the file is taken while the published keys are held still. The view may be a commit ahead of them (it is
//! published in a moment), never behind; and compaction only removes what was superseded at published revisions. So
//! every record that the keys name is in the view.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use redb::Error;

use super::Shared;
use super::disk::View;
use super::state::Keys;
use crate::store::{Change, ChangeSink, Key, Past, Record, Revision, Snapshot, StoreError, Subscription};

/// Changes that a subscriber gets at most of what was before: all that is kept may be more than memory is for.
pub(super) const SUBSCRIBED_MAX: Revision = 10_000;

impl Shared {
    /// As [`crate::store::Engine::get`].
    pub(super) fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let (found, view) = {
            let keys = self.state.read();
            let Some((key, live)) = keys.live.get_key_value(key) else { return Ok(None) };
            ((Key::clone(key), live.revision), self.disk.view().map_err(|error| failed(&error))?)
        };
        view.record(&found.0, found.1).map(Some).map_err(|error| failed(&error))
    }

    /// As [`crate::store::Engine::list`].
    pub(super) fn list(&self, prefix: &str, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        let (current, mut wanted, view) = {
            let keys = self.state.read();
            let view = self.disk.view().map_err(|error| failed(&error))?;
            (keys.revision, positions(&keys, prefix), view)
        };
        let at = at.unwrap_or(current);
        if at > current {
            return Err(StoreError::Future { requested: at, current });
        }
        let oldest = self.compacted.load(Ordering::Acquire).max(view.compacted);
        if at < oldest && at != current {
            return Err(StoreError::Compacted { requested: at, oldest });
        }
        if at < current {
            rewind(&view, prefix, &mut wanted, at, current).map_err(|error| failed(&error))?;
        }
        let records = records(&view, wanted, &mut HashMap::new()).map_err(|error| failed(&error))?;
        Ok(Snapshot { revision: at, records })
    }

    /// As [`crate::store::Engine::subscribe`].
    pub(super) fn subscribe(
        &self,
        prefix: &str,
        sink: &Arc<dyn ChangeSink>,
    ) -> Result<Subscription, StoreError> {
        let (revision, wanted, view) = {
            // Nothing is published while the sinks are held.
            let mut sinks = self.sinks.lock();
            let keys = self.state.read();
            let view = self.disk.view().map_err(|error| failed(&error))?;
            sinks.push((prefix.into(), Arc::clone(sink)));
            (keys.revision, positions(&keys, prefix), view)
        };
        let kept = self.compacted.load(Ordering::Acquire).max(view.compacted).min(revision);
        let since = kept.max(revision.saturating_sub(SUBSCRIBED_MAX));
        let mut loaded = HashMap::new();
        let read = history(&view, prefix, since, revision, &mut loaded)
            .and_then(|history| Ok((history, records(&view, wanted, &mut loaded)?)));
        match read {
            Ok((history, records)) => {
                Ok(Subscription { snapshot: Snapshot { revision, records }, history, since })
            }
            Err(error) => {
                self.sinks.lock().retain(|(_, other)| !Arc::ptr_eq(other, sink));
                Err(failed(&error))
            }
        }
    }
}

fn failed(error: &Error) -> StoreError {
    StoreError::Failed(error.to_string().into())
}

fn positions(keys: &Keys, prefix: &str) -> BTreeMap<Key, Revision> {
    keys.with_prefix(prefix).map(|(key, live)| (Key::clone(key), live.revision)).collect()
}

/// Takes the changes after `at` back, newest first.
fn rewind(
    view: &View,
    prefix: &str,
    wanted: &mut BTreeMap<Key, Revision>,
    at: Revision,
    current: Revision,
) -> Result<(), Error> {
    view.changes(at + 1..=current, true, |_, stored| {
        if stored.key.starts_with(prefix) {
            match stored.previous {
                Some(previous) => wanted.insert(stored.key.into(), previous),
                None => wanted.remove(stored.key),
            };
        }
        Ok(())
    })
}

/// Reads records in the order of the file, returns them in the order of keys. What is `loaded` is not read again.
fn records(
    view: &View,
    wanted: BTreeMap<Key, Revision>,
    loaded: &mut HashMap<Revision, Record>,
) -> Result<Vec<Record>, Error> {
    let mut wanted: Vec<(Key, Revision)> = wanted.into_iter().collect();
    wanted.sort_unstable_by_key(|(_, revision)| *revision);
    let mut records = Vec::with_capacity(wanted.len());
    for (key, revision) in wanted {
        let record = match loaded.remove(&revision) {
            Some(record) => record,
            None => view.record(&key, revision)?,
        };
        records.push(record);
    }
    records.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    Ok(records)
}

/// The changes after `since` up to `revision`, oldest first. Values are shared among changes; the newest record of
/// each changed key stays in `loaded`.
fn history(
    view: &View,
    prefix: &str,
    since: Revision,
    revision: Revision,
    loaded: &mut HashMap<Revision, Record>,
) -> Result<Vec<Past>, Error> {
    let mut changes = Vec::new();
    view.changes(since + 1..=revision, false, |at, stored| {
        if !stored.key.starts_with(prefix) {
            return Ok(());
        }
        let previous = match stored.previous {
            None => None,
            Some(previous) => Some(match loaded.remove(&previous) {
                Some(record) => record,
                None => view.record(&stored.key.into(), previous)?,
            }),
        };
        let key = previous.as_ref().map_or_else(|| Key::from(stored.key), |record| Key::clone(&record.key));
        let current = stored.value.map(|value| Record {
            key: Key::clone(&key),
            create_revision: stored.create_revision,
            revision: at,
            value: Bytes::copy_from_slice(value),
        });
        if let Some(record) = &current {
            loaded.insert(at, record.clone());
        }
        changes.push(Past { change: Change { key, revision: at, current }, previous });
        Ok(())
    })?;
    Ok(changes)
}
