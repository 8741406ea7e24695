//! Submitted writes on their way to the file: preconditions, revisions, limits.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::record::{MAX_KEY, MAX_VALUE};
use super::room::Room;
use super::state::{Live, State};
use crate::store::{Expect, Key, Revision, StoreError, Write};

/// Bytes of writes that may wait (or be in the commit that runs) at a time.
pub(super) const MAX_QUEUED: usize = 32 << 20;
/// Most writes in one commit.
const MAX_BATCH: usize = 512;
/// What a queued write costs beside its key and value.
const JOB_OVERHEAD: usize = 256;

/// A write whose revision is fixed.
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) value: Option<Bytes>,
    pub(super) revision: Revision,
    pub(super) create_revision: Revision,
    pub(super) previous: Option<Revision>,
    pub(super) done: oneshot::Sender<()>,
}

impl Job {
    fn cost(&self) -> usize {
        JOB_OVERHEAD + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// What the committer does next.
pub(super) struct Work {
    /// Writes in order of revision.
    pub(super) jobs: Vec<Job>,
    /// Compaction that was asked for.
    pub(super) compact: Revision,
}

/// Where a key stands when all submitted writes are counted.
#[derive(Clone, Copy)]
struct Position {
    submitted: Revision,
    /// (create revision, revision) unless the last write was a deletion.
    live: Option<(Revision, Revision)>,
}

struct Inner {
    waiting: Vec<Job>,
    /// Keys with writes that are not published yet.
    positions: HashMap<Key, Position>,
    queued: usize,
    last: Revision,
    compact: Revision,
    stopped: Option<Arc<str>>,
}

/// The queue between callers and the committer.
pub(super) struct Queue {
    pub(super) room: Room,
    inner: Mutex<Inner>,
    wake: Condvar,
}

impl Queue {
    /// An empty queue; the next write gets the revision after `last`.
    pub(super) fn new(last: Revision, room: Room) -> Self {
        let inner = Inner {
            waiting: Vec::new(),
            positions: HashMap::new(),
            queued: 0,
            last,
            compact: 0,
            stopped: None,
        };
        Self { room, inner: Mutex::new(inner), wake: Condvar::new() }
    }

    /// Checks a write against all before it and queues it. The receiver ends when it is published; it ends with an
    /// error when the write is dropped, and then [`Queue::stopped`] has the reason.
    ///
    /// # Errors
    /// As [`crate::store::Engine::submit`].
    pub(super) fn submit(
        &self,
        write: Write,
        durable: &State,
    ) -> Result<(Revision, oneshot::Receiver<()>), StoreError> {
        check_size(write.key.len(), MAX_KEY)?;
        check_size(write.value.as_ref().map_or(0, Bytes::len), MAX_VALUE)?;
        let mut inner = self.inner.lock();
        if let Some(why) = &inner.stopped {
            return Err(StoreError::Failed(Arc::clone(why)));
        }
        let current = match inner.positions.get(&write.key) {
            Some(position) => position.live,
            None => durable.find(&write.key).map(|live: Live| (live.create_revision, live.revision)),
        };
        let holds = match (write.expect, current) {
            (Expect::Absent, None) => write.value.is_some(),
            (Expect::At(expected), Some((_, revision))) => expected == revision,
            (Expect::Absent, Some(_)) | (Expect::At(_), None) => false,
        };
        if !holds {
            return Err(StoreError::Conflict { current: current.map(|(_, revision)| revision) });
        }
        let revision = inner.last + 1;
        let create_revision = current.map_or(revision, |(create, _)| create);
        let (done, receiver) = oneshot::channel();
        let previous = current.map(|(_, revision)| revision);
        let job = Job { key: write.key, value: write.value, revision, create_revision, previous, done };
        if inner.queued + job.cost() > MAX_QUEUED {
            return Err(StoreError::Busy { queued: inner.queued, limit: MAX_QUEUED });
        }
        self.room.check(inner.queued + job.cost())?;
        inner.last = revision;
        inner.queued += job.cost();
        let live = job.value.is_some().then_some((create_revision, revision));
        inner.positions.insert(Key::clone(&job.key), Position { submitted: revision, live });
        inner.waiting.push(job);
        drop(inner);
        self.wake.notify_one();
        Ok((revision, receiver))
    }

    /// The last revision that was given out.
    pub(super) fn last(&self) -> Revision {
        self.inner.lock().last
    }

    /// Asks the committer to forget history before `revision`.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when nothing is written any more.
    pub(super) fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        if let Some(why) = &inner.stopped {
            return Err(StoreError::Failed(Arc::clone(why)));
        }
        inner.compact = inner.compact.max(revision);
        drop(inner);
        self.wake.notify_one();
        Ok(())
    }

    /// Waits for work: writes, a compaction beyond `compacting`, or nothing at all where the committer has work of
    /// its `own`. `None` when the queue is stopped and empty.
    pub(super) fn next(&self, compacting: Revision, own: bool) -> Option<Work> {
        let mut inner = self.inner.lock();
        while inner.waiting.is_empty() && inner.compact <= compacting && !own {
            if inner.stopped.is_some() {
                return None;
            }
            self.wake.wait(&mut inner);
        }
        if inner.waiting.is_empty() && inner.stopped.is_some() {
            return None;
        }
        let count = inner.waiting.len().min(MAX_BATCH);
        let rest = inner.waiting.split_off(count);
        let jobs = std::mem::replace(&mut inner.waiting, rest);
        Some(Work { jobs, compact: inner.compact })
    }

    /// Lets go of what is published: from now on the durable state answers for these keys.
    pub(super) fn published(&self, jobs: &[Job]) {
        let mut inner = self.inner.lock();
        for job in jobs {
            inner.queued = inner.queued.saturating_sub(job.cost());
            if inner.positions.get(&job.key).is_some_and(|position| position.submitted == job.revision) {
                inner.positions.remove(&job.key);
            }
        }
    }

    /// Refuses all further writes; those that wait are still taken by [`Queue::next`].
    pub(super) fn stop(&self, why: &str) {
        let mut inner = self.inner.lock();
        inner.stopped.get_or_insert_with(|| why.into());
        drop(inner);
        self.wake.notify_all();
    }

    /// Refuses all further writes and gives up those that wait.
    pub(super) fn fail(&self, why: &str) {
        let mut inner = self.inner.lock();
        inner.stopped = Some(why.into());
        inner.positions.clear();
        inner.queued = 0;
        let abandoned = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(abandoned);
    }

    /// Why writes are refused.
    pub(super) fn stopped(&self) -> Option<Arc<str>> {
        self.inner.lock().stopped.clone()
    }
}

fn check_size(size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::TooLarge { size, limit }) } else { Ok(()) }
}
