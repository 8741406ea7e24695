//! Options of requests, parsed and checked.

use picoshift_machinery::Object;
use picoshift_machinery::selector::{FieldSelector, LabelSelector};
use serde_json::Value;

use super::fields::Tracker;
use crate::store::Revision;

/// Options of a get.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// `resourceVersion`: at least this revision; `None` and `Some(0)` accept the newest that is known.
    pub resource_version: Option<Revision>,
}

/// How `resourceVersion` of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state at exactly that revision.
    Exact,
    /// A state not older than that revision.
    NotOlderThan,
}

/// Options of a list, a watch or a deletecollection.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Label selector; selects all by default.
    pub labels: LabelSelector,
    /// Field selector; selects all by default.
    pub fields: FieldSelector,
    /// `resourceVersion`; `None` where absent or empty.
    pub resource_version: Option<Revision>,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`; 0 for none.
    pub limit: u64,
    /// `continue`, as sent; empty for none.
    pub continue_token: String,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
}

/// Preconditions of a write, beside the resourceVersion in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid that the object must have.
    pub uid: Option<String>,
    /// The resourceVersion that the object must have.
    pub resource_version: Option<String>,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// `dryRun=All`: do everything but store it.
    pub dry_run: bool,
    /// Subresource that is written (`status`), empty for the object itself.
    pub subresource: String,
    /// Notes in `managedFields` who writes; `None` for writes of our own, which own nothing.
    pub tracker: Option<Tracker>,
}

impl WriteOptions {
    /// Sets an object's `managedFields`: `live` is what it was made of, `None` for a new one. A write that nobody is
    /// noted for leaves them as they are.
    pub fn track(&self, live: Option<&Object>, object: &mut Object) {
        match &self.tracker {
            Some(tracker) => tracker.track(live, object),
            None => {
                let kept = live.and_then(|live| live.at(&["metadata", "managedFields"])).cloned();
                object.set_metadata("managedFields", kept.unwrap_or(Value::Null));
            }
        }
    }

    /// The same write, of another object than the client's: nobody is noted for it.
    #[must_use]
    pub fn untracked(&self) -> Self {
        Self { tracker: None, ..self.clone() }
    }
}

/// `propagationPolicy` of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted afterwards by the garbage collector.
    Background,
    /// Dependents are deleted first (finalizer `foregroundDeletion`).
    Foreground,
    /// Dependents are kept (finalizer `orphan`).
    Orphan,
}

/// Options of a delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// `dryRun=All`.
    pub dry_run: bool,
    /// Preconditions.
    pub preconditions: Preconditions,
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`, or what `orphanDependents` means.
    pub propagation: Option<Propagation>,
}
