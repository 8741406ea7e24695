//! [`Visibility`]: the shared index of who sees which projects, with waiting for revisions.
//!
//! In: changes from the feed. Out: lists, replays, and a wake-up for every watcher at each change.

pub(crate) mod grants;
pub(crate) mod index;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod selection;
pub(crate) mod subjects;

#[cfg(test)]
mod tests;

use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard};
use picoshift_machinery::{Status, UserInfo};
use tokio::sync::watch;

pub(crate) use index::{Index, Source};
pub(crate) use selection::Selection;
pub(crate) use subjects::Viewer;

use crate::store::Revision;

/// The index, shared.
#[derive(Debug)]
pub(crate) struct Visibility {
    index: RwLock<Index>,
    changes: watch::Sender<u64>,
    patience: Duration,
}

impl Visibility {
    /// An empty index that keeps about `capacity` changes; `patience` bounds every wait for a revision.
    #[must_use]
    pub(crate) fn new(capacity: usize, patience: Duration) -> Self {
        Self { index: RwLock::new(Index::new(capacity)), changes: watch::Sender::new(0), patience }
    }

    /// The index, to read; never held over an await.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }

    /// Changes the index and wakes who waits.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Index)) {
        change(&mut self.index.write());
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A receiver that is woken after each change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether lists can be answered.
    ///
    /// # Errors
    /// 503 until namespaces and RBAC were listed.
    pub(crate) fn ready(&self) -> Result<(), Status> {
        if self.read().is_synced() {
            return Ok(());
        }
        let mut status = Status::unavailable("projects are not ready: waiting for namespaces and RBAC");
        status.details.get_or_insert_default().retry_after_seconds = 1;
        Err(status)
    }

    /// The viewer that a user is, by the groups that came with the request; those of Group objects are followed here.
    #[must_use]
    pub(crate) fn viewer(&self, user: &UserInfo) -> Viewer {
        self.read().viewer(user)
    }

    /// Waits, for a bounded time, until sources have shown revisions. Whether they have.
    pub(crate) async fn wait_seen(&self, wanted: &[(Source, Revision)]) -> bool {
        self.wait(|index| wanted.iter().all(|(source, r)| index.seen(*source) >= Some(*r))).await
    }

    /// Waits, for a bounded time, until the clock shows a revision that a client asked for.
    ///
    /// # Errors
    /// 504 as kube-apiserver says it, when the revision does not come.
    pub(crate) async fn wait_clock(&self, revision: Revision) -> Result<(), Status> {
        if self.wait(|index| index.clock() >= revision).await {
            return Ok(());
        }
        let current = self.read().clock();
        let text = format!("Too large resource version: {revision}, current: {current}");
        Err(Status::timeout(text, 1).with_cause("ResourceVersionTooLarge", "Too large resource version", ""))
    }

    /// Ends when every source was listed.
    pub(crate) async fn wait_synced(&self) {
        self.until(Index::is_synced).await;
    }

    async fn wait(&self, reached: impl Fn(&Index) -> bool) -> bool {
        tokio::time::timeout(self.patience, self.until(reached)).await.is_ok()
    }

    async fn until(&self, reached: impl Fn(&Index) -> bool) {
        let mut changes = self.subscribe();
        loop {
            changes.borrow_and_update();
            // The sender lives as long as `self`, so a wait for it does not fail.
            if reached(&self.read()) || changes.changed().await.is_err() {
                return;
            }
        }
    }
}
