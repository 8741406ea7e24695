//! What stands between redb and the file, for two promises that redb alone does not make:
//! - a file that is refused was not touched: while it is opened and checked, every write stays in memory
//!   ([`Medium::release`] lets them go, in order and with their syncs, once the file is found sound);
//! - reads go on after a write failed: redb refuses everything after the first error, so it is not told. From the
//!   first failed write, growth or sync on, all writes stay in memory, nothing reaches the file any more, and
//!   [`Medium::failure`] says so; whoever commits must ask it after each commit.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use redb::{BackendError, StorageBackend};

use super::overlay::Overlay;

enum Mode {
    /// Writes wait for the file to be found sound.
    Staged(Overlay, Vec<Operation>),
    /// Writes go through.
    Direct,
    /// A write failed; the text says how.
    Failed(Overlay, Arc<str>),
}

enum Operation {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

struct Inner {
    below: Box<dyn StorageBackend>,
    mode: RwLock<Mode>,
}

/// A guarded storage backend; clones are the same one.
#[derive(Clone)]
pub(super) struct Medium(Arc<Inner>);

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Medium({:?})", self.0.below)
    }
}

impl Medium {
    /// Guards a backend; its writes are staged until [`Medium::release`].
    ///
    /// # Errors
    /// What the backend says to a question for its length.
    pub(super) fn staged(below: Box<dyn StorageBackend>) -> io::Result<Self> {
        let overlay = Overlay::new(below.len()?);
        let mode = RwLock::new(Mode::Staged(overlay, Vec::new()));
        Ok(Self(Arc::new(Inner { below, mode })))
    }

    /// Writes what was staged, and from then on everything.
    ///
    /// # Errors
    /// The first failed write; the file is then as after a crash at that point.
    pub(super) fn release(&self) -> io::Result<()> {
        let mut mode = self.0.mode.write();
        if let Mode::Staged(_, operations) = &*mode {
            for operation in operations {
                match operation {
                    Operation::Write(offset, data) => self.0.below.write(*offset, data)?,
                    Operation::SetLen(length) => self.0.below.set_len(*length)?,
                    Operation::Sync => self.0.below.sync_data()?,
                }
            }
            *mode = Mode::Direct;
        }
        Ok(())
    }

    /// Why nothing is written any more; `None` while all is well.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        match &*self.0.mode.read() {
            Mode::Failed(_, why) => Some(Arc::clone(why)),
            Mode::Staged(..) | Mode::Direct => None,
        }
    }

    /// Does one changing operation as the mode wants it.
    fn change(
        &self,
        what: &str,
        record: impl FnOnce() -> Operation,
        direct: impl FnOnce(&dyn StorageBackend) -> io::Result<()>,
        in_memory: impl FnOnce(&mut Overlay, &dyn StorageBackend) -> io::Result<()>,
    ) -> io::Result<()> {
        let below = &*self.0.below;
        let failed = if matches!(&*self.0.mode.read(), Mode::Direct) {
            match direct(below) {
                Ok(()) => return Ok(()),
                Err(error) => Some(error),
            }
        } else {
            None
        };
        let mut mode = self.0.mode.write();
        // The first failure is the one that counts: its overlay has what redb believes to have written.
        if let Some(error) = failed
            && matches!(&*mode, Mode::Direct)
        {
            let why: Arc<str> = format!("{what}: {error}").into();
            tracing::error!(%why, "the store's file cannot be written; it is read-only until a restart");
            *mode = Mode::Failed(Overlay::new(below.len()?), why);
        }
        match &mut *mode {
            Mode::Staged(overlay, operations) => {
                operations.push(record());
                in_memory(overlay, below)
            }
            Mode::Failed(overlay, _) => in_memory(overlay, below),
            // Released since the look above.
            Mode::Direct => Err(io::Error::other("the mode of the medium changed under a write")),
        }
    }
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.mode.read() {
            Mode::Direct => self.0.below.len(),
            Mode::Staged(overlay, _) | Mode::Failed(overlay, _) => Ok(overlay.len()),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.mode.read() {
            Mode::Direct => self.0.below.read(offset, out),
            Mode::Staged(overlay, _) | Mode::Failed(overlay, _) => overlay.read(&*self.0.below, offset, out),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(
            "cannot resize the file",
            || Operation::SetLen(length),
            |below| below.set_len(length),
            |overlay, _| {
                overlay.set_len(length);
                Ok(())
            },
        )
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(
            "cannot sync the file",
            || Operation::Sync,
            <dyn StorageBackend>::sync_data,
            |_, _| Ok(()),
        )
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(
            "cannot write the file",
            || Operation::Write(offset, data.to_vec()),
            |below| below.write(offset, data),
            |overlay, below| overlay.write(below, offset, data),
        )
    }

    fn close(&self) -> io::Result<()> {
        self.0.below.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.below.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.below.query_lock_range(start, end)
    }
}
