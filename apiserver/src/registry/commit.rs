//! The one way to the store: plan the computed facts, submit, tell the index, wait until durable, and touch the
//! objects whose facts changed by it.

use std::sync::Arc;

use parking_lot::Mutex;
use picoshift_machinery::{Object, Status};

use super::metadata::now;
use super::rendered::Rendered;
use super::strategy::{Planned, Stored, Strategy};
use crate::rest::Item;
use crate::store::{Engine, Expect, Key, Pending, Record, Revision, StoreError, Write};

/// Rounds of touches after one write; a touch can affect further objects.
const TOUCH_ROUNDS: usize = 16;

/// See the module.
pub(super) struct Commit {
    engine: Arc<dyn Engine>,
    strategy: Arc<dyn Strategy>,
    rendered: Arc<Rendered>,
    /// Held from planning to submission, so that facts are decided in revision order.
    order: Mutex<()>,
}

/// A record with its parsed object.
pub(super) struct Current {
    pub(super) record: Record,
    pub(super) stored: Stored,
}

/// A write to be made.
struct Intent<'a> {
    key: &'a Key,
    /// What is there now; `None` to create.
    current: Option<&'a Current>,
    /// What is to be there; `None` to delete.
    object: Option<Object>,
    /// Whether that is what is there already, with other facts.
    touch: bool,
}

/// A write that the store has taken.
struct Submitted {
    /// What is there afterwards.
    item: Option<Arc<Item>>,
    pending: Pending,
    /// Keys of objects whose facts may be different now.
    affected: Vec<Key>,
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
        rendered: Arc<Rendered>,
        prefix: &str,
    ) -> Result<Arc<Self>, StoreError> {
        let mut records = engine.list(prefix, None)?.records;
        records.sort_by_key(|record| record.create_revision);
        let commit = Arc::new(Self { engine, strategy, rendered, order: Mutex::new(()) });
        let mut keys = Vec::with_capacity(records.len());
        for record in records {
            let stored = parse(&record)?;
            let planned = Planned {
                key: &record.key,
                old: None,
                new: Some(&stored.object),
                computed: Some(&stored.computed),
                create_revision: Some(record.create_revision),
                touch: false,
            };
            commit.strategy.committed(planned, record.revision);
            keys.push(record.key);
        }
        commit.touch_all(keys).await?;
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

    /// Writes an object; ends with what clients see of it when it and its touches are durable.
    pub(super) async fn write(
        self: &Arc<Self>,
        key: &Key,
        current: Option<&Current>,
        object: Object,
    ) -> Result<Arc<Item>, CommitError> {
        let intent = Intent { key, current, object: Some(object), touch: false };
        match self.make(intent).await?.0 {
            Some(item) => Ok(item),
            None => Err(CommitError::Store(StoreError::Failed("a write left nothing".into()))),
        }
    }

    /// Deletes an object; ends when that and its touches are durable, with the revision of the deletion.
    pub(super) async fn delete(
        self: &Arc<Self>,
        key: &Key,
        current: &Current,
    ) -> Result<Revision, CommitError> {
        let intent = Intent { key, current: Some(current), object: None, touch: false };
        self.make(intent).await.map(|(_, revision)| revision)
    }

    async fn make(
        self: &Arc<Self>,
        intent: Intent<'_>,
    ) -> Result<(Option<Arc<Item>>, Revision), CommitError> {
        let Submitted { item, pending: Pending { revision, done }, affected } = self.submit(intent)?;
        if affected.is_empty() {
            done.await.map_err(CommitError::Store)?;
            return Ok((item, revision));
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
        Ok((item, revision))
    }

    /// What a write would answer, without making it.
    pub(super) fn dry_run(
        &self,
        key: &Key,
        current: Option<&Current>,
        object: Object,
        revision: Revision,
    ) -> Item {
        let intent = Intent { key, current, object: Some(object), touch: false };
        let computed = {
            let _order = self.order.lock();
            self.strategy.plan(planned(&intent), &now()).computed
        };
        self.render(&Stored { object: intent.object.unwrap_or_default(), computed }, revision)
    }

    fn render(&self, stored: &Stored, revision: Revision) -> Item {
        Item::new(self.strategy.resource(), self.strategy.present(stored), revision)
    }

    fn submit(&self, intent: Intent<'_>) -> Result<Submitted, CommitError> {
        let order = self.order.lock();
        let plan = self.strategy.plan(planned(&intent), &now());
        let Intent { key, current, object, touch } = intent;
        let stored = object.map(|object| Stored { object, computed: plan.computed });
        let value = stored.as_ref().map(encode).transpose().map_err(CommitError::Store)?;
        let expect = current.map_or(Expect::Absent, |current| Expect::At(current.record.revision));
        let pending =
            self.engine.submit(Write { key: Arc::clone(key), expect, value }).map_err(
                |error| match error {
                    StoreError::Conflict { .. } => CommitError::Conflict,
                    other => CommitError::Store(other),
                },
            )?;
        let write = Planned {
            key,
            old: current.map(|current| &current.stored),
            new: stored.as_ref().map(|stored| &stored.object),
            computed: stored
                .as_ref()
                .or(current.map(|current| &current.stored))
                .map(|stored| &stored.computed),
            create_revision: current.map(|current| current.record.create_revision),
            touch,
        };
        self.strategy.committed(write, pending.revision);
        drop(order);
        // While the disk is at work.
        let item = stored.map(|stored| Arc::new(self.render(&stored, pending.revision)));
        if let Some(item) = &item {
            self.rendered.offer(item);
        }
        Ok(Submitted { item, pending, affected: plan.affected })
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
        let object = Some(current.stored.object.clone());
        let intent = Intent { key, current: Some(&current), object, touch: true };
        {
            let _order = self.order.lock();
            if self.strategy.plan(planned(&intent), &now()).computed == current.stored.computed {
                return Ok(Touch::Unchanged);
            }
        }
        match self.submit(intent) {
            Ok(Submitted { pending, affected, .. }) => Ok(Touch::Done(pending, affected)),
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
