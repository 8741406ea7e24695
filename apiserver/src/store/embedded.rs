//! The embedded engine: one file, no set-up, crash-safe.
//!
//! redb, because it is pure Rust with a stable file format, has ACID commits that cost one fsync (data and commit slots
//! carry checksums, so a torn commit is recognised and the one before it is used), reads that do not wait for writes,
//! and a replaceable backend, on which power loss and full disks are tested. Its own figures for single durable writes
//! are the best of the pure Rust stores.
//!
//! A write's way: [`Engine::submit`] checks it and fixes its revision under one short lock (`queue`); a thread commits
//! all that waits in one transaction (`committer`, `disk`), hands the changes to the sinks, publishes the new state
//! (`state`) and ends the writers' futures. Values live in the file and in redb's small cache; memory holds only where
//! each key stands. `record` is the bytes of a change, `history` decides what is forgotten, `read` makes states and
//! histories out of records, `open` checks a file before anything is written to it, `file` makes and locks it, and
//! `medium` (on an `overlay`) stands between redb and the file.
//!
//! Limits: 1,024 bytes of key, 1.5 MiB of value ([`StoreError::TooLarge`]), 32 MiB of writes that wait
//! ([`StoreError::Busy`]), and a few MiB of the disk that stay free ([`StoreError::Full`]). History is kept for [`Options::keep_changes`] changes, less where it takes more than
//! [`Options::keep_bytes`].
//!
//! What redb does that may surprise: the file grows by doubling; after an I/O error it refuses even reads (`medium`
//! lifts that); and a last commit that rots between a crash and the next start cannot be told from one that power loss
//! tore, so the one before it is used, as with the tail of any write-ahead log. After a clean stop any altered byte
//! that matters is refused.

mod committer;
mod disk;
mod file;
mod history;
mod medium;
mod open;
mod overlay;
mod queue;
mod read;
mod record;
mod room;
mod state;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use redb::StorageBackend;
use tokio::sync::watch;

use self::committer::Committer;
use self::disk::Disk;
use self::queue::Queue;
use self::room::Room;
use self::state::State;
use super::{ChangeSink, Engine, Pending, Record, Revision, Snapshot, StoreError, Subscription, Write};

/// How the engine uses memory and disk.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// redb's cache in bytes.
    pub cache_bytes: usize,
    /// Changes to keep for old lists; of them subscribers get the newest `SUBSCRIBED_MAX`.
    pub keep_changes: usize,
    /// Bytes of superseded records to keep at most, whatever their number.
    pub keep_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 4 << 20, keep_changes: 100_000, keep_bytes: 64 << 20 }
    }
}

/// A store that was not opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the store {}: {why}", path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub why: Refusal,
}

/// Why a store was not opened. Its file is as it was, but for [`Refusal::Io`], after which it is as after a crash.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Another process has it open.
    #[error("another process has it open")]
    Locked,
    /// It is not what this program wrote.
    #[error(
        "it is damaged or not a store ({0}); it was left as it is, restore it from a copy or move it away"
    )]
    Damaged(String),
    /// A newer program wrote it.
    #[error("it has format {found}, this program knows formats up to {supported}; it was left as it is")]
    Newer {
        /// Its format.
        found: u64,
        /// The newest format that is known here.
        supported: u64,
    },
    /// The file or its directory cannot be read or written.
    #[error("{0}")]
    Io(io::Error),
}

/// A prefix and who is told of its changes.
type Subscriber = (Box<str>, Arc<dyn ChangeSink>);

/// What callers and the committer share.
struct Shared {
    disk: Disk,
    queue: Queue,
    state: State,
    sinks: Mutex<Vec<Subscriber>>,
    compacted: AtomicU64,
    /// Newest published revision; [`Revision::MAX`] after a failure.
    progress: watch::Sender<Revision>,
}

/// The engine; see the module.
pub struct Embedded {
    shared: Arc<Shared>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    /// Opens the store in the file `path`, or makes it (mode 0600; a missing directory with mode 0700). Reads the whole
    /// file: call it off the asynchronous threads.
    ///
    /// # Errors
    /// [`OpenError`] with the file's name.
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>, OpenError> {
        let opened = file::backend(path)
            .and_then(|backend| Self::open_with(backend, options, Room::Of(File::open(path)?)));
        opened.map_err(|why| OpenError { path: path.to_owned(), why })
    }

    /// Opens the store on any medium that was initialized.
    #[cfg(test)]
    fn open_on(backend: Box<dyn StorageBackend>, options: Options) -> Result<Arc<Self>, Refusal> {
        Self::open_with(backend, options, Room::Endless)
    }

    fn open_with(
        backend: Box<dyn StorageBackend>,
        options: Options,
        room: Room,
    ) -> Result<Arc<Self>, Refusal> {
        let open::Loaded { disk, keys, history } = open::load(backend, options.cache_bytes)?;
        let shared = Arc::new(Shared {
            disk,
            queue: Queue::new(keys.revision, room),
            sinks: Mutex::default(),
            compacted: AtomicU64::new(history.swept()),
            progress: watch::Sender::new(keys.revision),
            state: State::new(keys),
        });
        let committer = Committer::new(Arc::clone(&shared), options, history);
        let thread = std::thread::Builder::new().name("store".into()).spawn(|| committer.run())?;
        Ok(Arc::new(Self { shared, committer: Mutex::new(Some(thread)) }))
    }

    /// Why nothing is written any more: the medium failed, or the store was shut down. For the readiness probe.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.shared.queue.stopped()
    }

    /// Writes what was submitted, refuses what comes later, and closes the file, after which reads fail too. Blocks for
    /// as long as that takes. Dropping the engine does the same.
    ///
    /// # Errors
    /// [`StoreError::Failed`] when not everything could be written.
    pub fn shutdown(&self) -> Result<(), StoreError> {
        let failed = |why: String| StoreError::Failed(why.into());
        self.shared.queue.stop("the store is closed");
        let Some(thread) = self.committer.lock().take() else { return Ok(()) };
        thread.join().map_err(|_| failed("the committer panicked".into()))?;
        let unwritten = self.shared.disk.medium.failure();
        self.shared.disk.close().map_err(|error| failed(error.to_string()))?;
        match unwritten.or_else(|| self.shared.disk.medium.failure()) {
            None => Ok(()),
            Some(why) => Err(StoreError::Failed(why)),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Err(error) = self.shutdown() {
            tracing::error!(%error, "the store was not closed cleanly");
        }
    }
}

impl Engine for Embedded {
    fn submit(&self, write: Write) -> Result<Pending, StoreError> {
        let (revision, receiver) = self.shared.queue.submit(write, &self.shared.state)?;
        let shared = Arc::clone(&self.shared);
        let done = Box::pin(async move {
            receiver.await.map_err(|_| {
                let why = shared.queue.stopped();
                StoreError::Failed(why.unwrap_or_else(|| "the write was given up".into()))
            })
        });
        Ok(Pending { revision, done })
    }

    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let target = self.shared.queue.last();
        let mut progress = self.shared.progress.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`.
            let _ = progress.wait_for(|revision| *revision >= target).await;
        })
    }

    fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.shared.get(key)
    }

    fn list(&self, prefix: &str, at: Option<Revision>) -> Result<Snapshot, StoreError> {
        self.shared.list(prefix, at)
    }

    fn subscribe(&self, prefix: &str, sink: Arc<dyn ChangeSink>) -> Result<Subscription, StoreError> {
        self.shared.subscribe(prefix, &sink)
    }

    fn revision(&self) -> Revision {
        self.shared.state.read().revision
    }

    fn compacted(&self) -> Revision {
        self.shared.compacted.load(Ordering::Acquire)
    }

    fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let revision = revision.min(self.revision());
        self.shared.queue.compact(revision)?;
        self.shared.compacted.fetch_max(revision, Ordering::AcqRel);
        Ok(())
    }
}
