//! What an engine must promise, and the types it speaks in. The embedded engine is in `store/embedded`.
//!
//! An engine is an ordered map of keys to values with one counter, the revision, as etcd's. It promises:
//!
//! **Revisions.** Every committed change has a revision of its own, higher than all before it, across restarts and
//! crashes; also when nothing is left of the newest change. Between two changes there may be gaps, and the counter may
//! move without a change of ours. A store without a change is at a revision above 0, since 0 means "any" to those who
//! read a list and watch from it. A revision that anybody has seen is never given to another change.
//!
//! **Writes.** [`Engine::submit`] checks its precondition against all writes submitted before it and fixes the revision
//! at once: indexes are kept in that order, and a group of writes costs one round to the medium. The write becomes
//! visible and acknowledged only when it is durable, in the order of submission. What was acknowledged survives the end
//! of the process and of the machine. After a crash a write that was not acknowledged is there whole or not at all, and
//! only if all before it are. A writer that goes away does not take its write back. Values of 1.5 MB and keys of 600
//! bytes are taken; where the limit is ([`StoreError::TooLarge`]), a value of just that size is taken.
//!
//! **Reads.** [`Engine::get`], [`Engine::list`] and [`Engine::revision`] see durable state only, all that was acknowledged
//! before the call, and never an older one than a call before. They and `submit` are called on asynchronous threads, all
//! but `list` and `subscribe`, which may block: so `get` answers from memory or a local file, and an engine whose data is
//! elsewhere keeps a copy of it here.
//!
//! **Sinks.** A [`ChangeSink`] sees each change of its prefix exactly once, in revision order, *before* the write is
//! acknowledged and before [`Engine::revision`] reaches it: whoever was answered finds the change in the sink, and lists
//! from memory are consistent once they have asked for the revision. It may be given any number of changes at a time.
//!
//! **History.** Lists can be made at any revision from [`Engine::compacted`] to [`Engine::revision`]; older ones fail with
//! [`StoreError::Compacted`], newer ones with [`StoreError::Future`]. `compacted` only rises, by [`Engine::compact`] or
//! because the engine (or whoever else owns its medium) keeps only so much. [`Engine::subscribe`] may give less history
//! than is kept, and says from where it is complete.
//!
//! **Failure.** When the medium fails, writes end with [`StoreError::Failed`] until a restart, and reads go on. Memory for
//! writes that wait is bounded ([`StoreError::Busy`]). Where the engine can see that there is no room it refuses a write
//! before it is begun ([`StoreError::Full`]) and takes the next when there is. A write that is refused has left nothing
//! behind.
//!
//! One process has the data at a time. Several on the same data would need more than this: a way to learn, before a
//! consistent list, what the others have acknowledged, and numbers for their writes that do not meet. An engine with one
//! writer at a time that numbers changes itself fits as it is; etcd's own revisions, known only when a transaction has
//! come back, do not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

pub mod embedded;
#[cfg(test)]
pub(crate) mod engine_suite;

/// The store's counter; what clients see as resourceVersion.
pub type Revision = u64;

/// A key: `<resource>.<group>/<namespace>/<name>`, or without a namespace for cluster-scoped resources.
pub type Key = Arc<str>;

/// A stored value with its revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Key,
    /// Revision that created the key (since its last deletion).
    pub create_revision: Revision,
    /// Revision of this value.
    pub revision: Revision,
    /// The value.
    pub value: Bytes,
}

/// One committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key that changed.
    pub key: Key,
    /// The revision of the change.
    pub revision: Revision,
    /// The new record; `None` for a deletion.
    pub current: Option<Record>,
}

/// A change that was made before a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The change.
    pub change: Change,
    /// The record before, where there was one. Of later changes a sink knows it from what it was told before.
    pub previous: Option<Record>,
}

/// What a write requires of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key is absent.
    Absent,
    /// The key is at exactly this revision.
    At(Revision),
}

/// A write of one key; a deletion where `value` is `None`.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// The precondition.
    pub expect: Expect,
    /// The new value.
    pub value: Option<Bytes>,
}

/// Why the store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The precondition does not hold; `current` is the key's revision with all submitted writes counted
    /// (`None`: absent). It may not be durable yet: wait for [`Engine::settled`] before a retry.
    #[error("precondition failed: the key is at {current:?}")]
    Conflict {
        /// Revision of the key.
        current: Option<Revision>,
    },
    /// The revision is older than the history that is kept.
    #[error("revision {requested} is compacted, the oldest is {oldest}")]
    Compacted {
        /// The revision asked for.
        requested: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision is newer than the newest durable one: wait for it before reading there.
    #[error("revision {requested} is not there yet, the newest is {current}")]
    Future {
        /// The revision asked for.
        requested: Revision,
        /// The newest revision that can be read.
        current: Revision,
    },
    /// More writes wait for the medium than the engine holds in memory; nothing of this one was kept. Try again later.
    #[error("{queued} bytes of writes are waiting, the limit is {limit}")]
    Busy {
        /// Bytes that wait.
        queued: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The disk is as good as full; nothing of this write was kept, and others are taken when there is room again.
    #[error("the disk is full: {free} bytes are free, {needed} are needed")]
    Full {
        /// Bytes that are free.
        free: u64,
        /// Bytes that have to be, for this write and those that wait.
        needed: u64,
    },
    /// The value or key is over the engine's limit.
    #[error("the value has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The medium failed; nothing more is written until a restart, reads go on.
    #[error("storage failed: {0}")]
    Failed(Arc<str>),
}

/// A submitted write: its revision is fixed; the future ends when it is durable and every sink has seen it.
pub struct Pending {
    /// The revision that the write has (or would have had, if it fails).
    pub revision: Revision,
    /// Ends with the record, or with what the storage said.
    pub done: Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>,
}

/// Receives changes. Called on the engine's commit path: short, no blocking, no calls back into `submit` or
/// `subscribe`. It may be called before `subscribe` has returned to whoever made the subscription.
pub trait ChangeSink: Send + Sync {
    /// Changes in revision order, all of the sink's prefix.
    fn apply(&self, changes: &[Change]);
}

/// A listing at one revision.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The revision of the listing.
    pub revision: Revision,
    /// Records in key order.
    pub records: Vec<Record>,
}

/// A storage engine; see the module's promises.
pub trait Engine: Send + Sync {
    /// Submits a write. Revisions follow the order of calls.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] at once when the precondition fails, counting writes that are not durable yet.
    /// A deletion that expects the key to be absent is always a conflict. [`StoreError::TooLarge`],
    /// [`StoreError::Busy`], [`StoreError::Full`], [`StoreError::Failed`].
    fn submit(&self, write: Write) -> Result<Pending, StoreError>;

    /// Ends when all that was submitted before the call is durable and visible (or failed).
    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The durable record of a key.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    fn get(&self, key: &str) -> Result<Option<Record>, StoreError>;

    /// All records whose key starts with `prefix`, at `at` or at the newest durable revision.
    ///
    /// # Errors
    /// [`StoreError::Compacted`], [`StoreError::Future`], [`StoreError::Failed`].
    fn list(&self, prefix: &str, at: Option<Revision>) -> Result<Snapshot, StoreError>;

    /// Subscribes a sink to a prefix: returns the records at some revision R together with the kept history up to R
    /// (oldest first); the sink gets every change after R, none twice and none lost.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    fn subscribe(&self, prefix: &str, sink: Arc<dyn ChangeSink>) -> Result<Subscription, StoreError>;

    /// The newest durable revision that every sink has seen.
    fn revision(&self) -> Revision;

    /// The oldest revision at which lists can still be made.
    fn compacted(&self) -> Revision;

    /// Forgets history before `revision`, at most up to the newest durable revision.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    fn compact(&self, revision: Revision) -> Result<(), StoreError>;
}

/// What [`Engine::subscribe`] returns.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The state at the revision from which the sink continues.
    pub snapshot: Snapshot,
    /// The changes that are still kept, oldest first, up to the snapshot's revision.
    pub history: Vec<Past>,
    /// Oldest revision from which `history` is complete: a watch from a revision lower than this is too old.
    pub since: Revision,
}
