//! The bounded log of what became visible or invisible, in the order in which it became effective here.
//!
//! Five watches feed the index, and nothing says how far each of them lags behind the others. The clock is the newest
//! revision that any of them has shown; an entry is effective at the clock's reading when it was applied. The entries
//! of the event that moved the clock to R are `advanced`: whoever read the state at R has them. Entries that came
//! after it while the clock stood at R are not: whoever read at R may lack them, so they are replayed.

use std::collections::VecDeque;
use std::sync::Arc;

use super::subjects::Subject;
use crate::authn::memberships::MembersChange;
use crate::rest::Item;
use crate::store::Revision;

/// A position in the log; counts entries since the start.
pub(crate) type Position = u64;

/// What changed.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A namespace.
    Namespace {
        /// Its name.
        name: Arc<str>,
        /// The project before; `None` where it is new.
        old: Option<Arc<Item>>,
        /// The project now; `None` where it is gone.
        new: Option<Arc<Item>>,
        /// The last state with the revision of the deletion, where that is known.
        gone: Option<Arc<Item>>,
    },
    /// Who is in a group.
    Members {
        /// Who joined and who left.
        change: Arc<MembersChange>,
        /// Whether the group saw all namespaces at that time.
        all: bool,
        /// The namespaces that it saw by name at that time.
        names: Vec<Arc<str>>,
    },
    /// What a subject may see.
    Grant {
        /// The subject.
        subject: Subject,
        /// The namespace; `None` for all namespaces.
        namespace: Option<Arc<str>>,
        /// Whether it was gained, else lost.
        gained: bool,
    },
}

/// One change and when it became effective.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The clock's reading with the change applied.
    pub(crate) effective: Revision,
    /// Whether the event of the change moved the clock to that reading.
    pub(crate) advanced: bool,
    /// The change.
    pub(crate) change: Change,
}

impl Entry {
    /// Whether somebody who read the state at `revision` may lack this entry.
    fn is_news_at(&self, revision: Revision) -> bool {
        is_news(self.effective, self.advanced, revision)
    }
}

fn is_news(effective: Revision, advanced: bool, revision: Revision) -> bool {
    effective > revision || (effective == revision && !advanced)
}

/// A revision or position before what the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("older than the log, which starts at {oldest}")]
pub(crate) struct TooOld {
    /// The oldest revision that can be replayed from, as far as it is known.
    pub(crate) oldest: Revision,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// Position of the first kept entry.
    start: Position,
    clock: Revision,
    advanced: bool,
    /// `effective` and `advanced` of the newest entry that is not kept.
    dropped: (Revision, bool),
    capacity: usize,
    recording: bool,
}

impl Log {
    /// An empty log that keeps about `capacity` entries.
    #[must_use]
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            start: 0,
            clock: 0,
            advanced: true,
            dropped: (0, true),
            capacity,
            recording: false,
        }
    }

    /// Starts recording: the state is whole, and nothing before is known.
    pub(crate) fn record(&mut self) {
        self.recording = true;
        self.dropped = (self.clock, true);
    }

    /// Begins an event that happened at `revision` (0 where it has none) and forgets what is over the capacity.
    pub(crate) fn begin(&mut self, revision: Revision) {
        self.advanced = revision > self.clock;
        self.clock = self.clock.max(revision);
        self.trim();
    }

    /// Adds a change of the event that was begun last.
    pub(crate) fn push(&mut self, change: Change) {
        if self.recording {
            self.entries.push_back(Entry { effective: self.clock, advanced: self.advanced, change });
        }
    }

    /// Entries at the clock's reading stay: else a client that reads the newest state could not go on from it.
    fn trim(&mut self) {
        while self.entries.len() > self.capacity {
            let Some(front) = self.entries.front() else { return };
            if front.effective >= self.clock {
                return;
            }
            self.dropped = (front.effective, front.advanced);
            self.entries.pop_front();
            self.start += 1;
        }
    }

    /// The newest revision that any watch has shown.
    #[must_use]
    pub(crate) fn clock(&self) -> Revision {
        self.clock
    }

    /// The position behind the newest entry.
    #[must_use]
    pub(crate) fn end(&self) -> Position {
        self.start + self.entries.len() as u64
    }

    /// The position of the first entry that somebody who read the state at `revision` may lack.
    ///
    /// # Errors
    /// [`TooOld`] when such an entry is not kept any more.
    pub(crate) fn position(&self, revision: Revision) -> Result<Position, TooOld> {
        let (effective, advanced) = self.dropped;
        if is_news(effective, advanced, revision) {
            return Err(TooOld { oldest: effective });
        }
        let index = self.entries.partition_point(|e| !e.is_news_at(revision));
        Ok(self.start + index as u64)
    }

    /// The entries from a position on.
    ///
    /// # Errors
    /// [`TooOld`].
    pub(crate) fn from(&self, position: Position) -> Result<impl DoubleEndedIterator<Item = &Entry>, TooOld> {
        let index = position.checked_sub(self.start).ok_or(TooOld { oldest: self.dropped.0 })?;
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(self.entries.len());
        Ok(self.entries.range(index..))
    }
}
