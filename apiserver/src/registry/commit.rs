//! The one way to the store: plan the computed facts, submit, tell the index, wait until durable, and touch the
//! objects whose facts changed by it.

use std::sync::Arc;

use parking_lot::Mutex;
use picoshift_machinery::{Object, Status};

use super::metadata::now;
use super::strategy::{Planned, Stored, Strategy};
use crate::rest::Item;
use crate::store::{Engine, Expect, Key, Pending, Record, Revision, StoreError, Write};

/// Rounds of touches after one write; a touch can affect further objects.
const TOUCH_ROUNDS: usize = 16;

/// See the module.
pub(super) struct Commit {
    engine: Arc<dyn Engine>,
    strategy: Arc<dyn Strategy>,
    /// Held from planning to submission, so that facts are decided in revision order.
    order: Mutex<()>,
}

/// A record with its parsed object.
pub(super) struct Current {
    pub(super) record: Record,
    pub(super) stored: Stored,
}

/// A write to be made.
pub(super) struct Intent<'a> {
    pub(super) key: &'a Key,
    /// What is there now; `None` to create.
    pub(super) current: Option<&'a Current>,
    /// What is to be there; `None` to delete.
    pub(super) object: Option<Object>,
    /// Whether that is what is there already, with other facts.
    pub(super) touch: bool,
}

impl<'a> Intent<'a> {
    /// Creates, changes or deletes an object.
    pub(super) fn new(key: &'a Key, current: Option<&'a Current>, object: Option<Object>) -> Self {
        Self { key, current, object, touch: false }
    }

    /// Brings the facts of an object up to date.
    fn touch(key: &'a Key, current: &'a Current) -> Self {
        let object = Some(current.stored.object.clone());
        Self { key, current: Some(current), object, touch: true }
    }
}

/// A write that was made: what is there afterwards (for a deletion: what was there) and its revision.
pub(super) struct Written {
    pub(super) stored: Stored,
    pub(super) revision: Revision,
}

/// Why a commit did not happen.
pub(super) enum CommitError {
    /// Another write came first.
    Conflict,
    /// The store's error.
    Store(StoreError),
}

impl Commit {
    /// Loads the strategy's index from the store and touches what is no longer as its facts say: after a restart
    /// with another ingress domain, or a crash between a write and its touches.
    pub(super) async fn start(
        engine: Arc<dyn Engine>,
        strategy: Arc<dyn Strategy>,
        prefix: &str,
    ) -> Result<Arc<Self>, StoreError> {
        let mut records = engine.list(prefix, None)?.records;
        records.sort_by_key(|record| record.create_revision);
        let commit = Arc::new(Self { engine, strategy, order: Mutex::new(()) });
        for record in &records {
            let stored = parse(record)?;
            let planned = Planned {
                key: &record.key,
                old: None,
                new: Some(&stored.object),
                computed: Some(&stored.computed),
                create_revision: Some(record.create_revision),
                touch: false,
            };
            commit.strategy.committed(planned, record.revision);
        }
        commit.touch_all(records.into_iter().map(|record| record.key).collect()).await?;
        Ok(commit)
    }

    /// Reads a key from the store.
    pub(super) fn read(&self, key: &Key) -> Result<Option<Current>, StoreError> {
        let Some(record) = self.engine.get(key)? else { return Ok(None) };
        let stored = parse(&record)?;
        Ok(Some(Current { record, stored }))
    }

    /// Waits until all submitted writes are visible: before a retry after a conflict.
    pub(super) async fn settled(&self) {
        self.engine.settled().await;
    }

    /// Makes a write; ends when it and its touches are durable.
    pub(super) async fn write(self: &Arc<Self>, intent: Intent<'_>) -> Result<Written, CommitError> {
        let (stored, pending, affected) = self.submit(&intent)?;
        let revision = pending.revision;
        let done = pending.done;
        if affected.is_empty() {
            done.await.map_err(CommitError::Store)?;
            return Ok(Written { stored, revision });
        }
        // In a task of its own: a client that goes away must not keep the others from being touched.
        let commit = Arc::clone(self);
        let finish = tokio::spawn(async move {
            done.await?;
            commit.touch_all(affected).await
        });
        match finish.await {
            Ok(result) => result.map_err(CommitError::Store)?,
            Err(error) => return Err(CommitError::Store(StoreError::Failed(error.to_string().into()))),
        }
        Ok(Written { stored, revision })
    }

    /// What a write would answer, without making it.
    pub(super) fn dry_run(&self, intent: &Intent<'_>, revision: Revision) -> Item {
        let _order = self.order.lock();
        let stored = self.plan(intent).0;
        Item::new(self.strategy.resource(), self.strategy.present(&stored), revision)
    }

    fn plan(&self, intent: &Intent<'_>) -> (Stored, Vec<Key>) {
        let old = intent.current.map(|current| &current.stored);
        let plan = self.strategy.plan(planned(intent), &now());
        let stored = match (&intent.object, old) {
            (Some(object), _) => Stored { object: object.clone(), computed: plan.computed },
            (None, Some(old)) => old.clone(),
            (None, None) => Stored::default(),
        };
        (stored, plan.affected)
    }

    fn submit(&self, intent: &Intent<'_>) -> Result<(Stored, Pending, Vec<Key>), CommitError> {
        let _order = self.order.lock();
        let (stored, affected) = self.plan(intent);
        let value = match &intent.object {
            Some(_) => Some(encode(&stored).map_err(CommitError::Store)?),
            None => None,
        };
        let expect = intent.current.map_or(Expect::Absent, |current| Expect::At(current.record.revision));
        let pending =
            self.engine.submit(Write { key: Arc::clone(intent.key), expect, value }).map_err(|error| {
                match error {
                    StoreError::Conflict { .. } => CommitError::Conflict,
                    other => CommitError::Store(other),
                }
            })?;
        let write = Planned { computed: Some(&stored.computed), ..planned(intent) };
        self.strategy.committed(write, pending.revision);
        Ok((stored, pending, affected))
    }

    async fn touch_all(&self, keys: Vec<Key>) -> Result<(), StoreError> {
        let mut keys = keys;
        for _ in 0..TOUCH_ROUNDS {
            if keys.is_empty() {
                return Ok(());
            }
            let mut waiting = Vec::new();
            let mut next = Vec::new();
            for key in keys {
                match self.touch(&key)? {
                    Touch::Unchanged => {}
                    Touch::Again => next.push(key),
                    Touch::Done(pending, affected) => {
                        waiting.push(pending.done);
                        next.extend(affected);
                    }
                }
            }
            for done in waiting {
                done.await?;
            }
            if !next.is_empty() {
                self.settled().await;
            }
            keys = next;
        }
        tracing::error!(left = keys.len(), "objects kept changing each other's computed parts");
        Ok(())
    }

    /// Stores new facts for an object whose computed part changed; nothing when they are stored already.
    fn touch(&self, key: &Key) -> Result<Touch, StoreError> {
        let Some(current) = self.read(key)? else { return Ok(Touch::Unchanged) };
        let intent = Intent::touch(key, &current);
        {
            let _order = self.order.lock();
            if self.plan(&intent).0.computed == current.stored.computed {
                return Ok(Touch::Unchanged);
            }
        }
        match self.submit(&intent) {
            Ok((_, pending, affected)) => Ok(Touch::Done(pending, affected)),
            Err(CommitError::Conflict) => Ok(Touch::Again),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}

enum Touch {
    Again,
    Done(Pending, Vec<Key>),
    Unchanged,
}

fn planned<'a>(intent: &'a Intent<'_>) -> Planned<'a> {
    Planned {
        key: intent.key,
        old: intent.current.map(|current| &current.stored),
        new: intent.object.as_ref(),
        computed: None,
        create_revision: intent.current.map(|current| current.record.create_revision),
        touch: intent.touch,
    }
}

fn parse(record: &Record) -> Result<Stored, StoreError> {
    serde_json::from_slice(&record.value)
        .map_err(|error| StoreError::Failed(format!("{} cannot be read: {error}", record.key).into()))
}

fn encode(stored: &Stored) -> Result<bytes::Bytes, StoreError> {
    serde_json::to_vec(stored)
        .map(bytes::Bytes::from)
        .map_err(|error| StoreError::Failed(format!("cannot encode: {error}").into()))
}

/// What a client sees of the store's errors.
pub(super) fn store_status(error: &StoreError) -> Status {
    match error {
        StoreError::TooLarge { size, limit } => Status::failure(
            http::StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}, the object has {size} bytes"),
        ),
        StoreError::Busy { .. } => {
            let mut status = Status::failure(
                http::StatusCode::TOO_MANY_REQUESTS,
                "TooManyRequests",
                "the store has more to write than it can hold, please try again later",
            );
            status.details.get_or_insert_default().retry_after_seconds = 1;
            status
        }
        other => {
            tracing::error!(error = %other, "the store refused a request");
            Status::internal(other)
        }
    }
}
