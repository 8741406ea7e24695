//! The served state of one stored resource: every object encoded once, the events that watches replay, and a signal
//! that wakes them. Fed by the store, in revision order, before a write is acknowledged.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::RwLock;
use picoshift_machinery::Object;
use tokio::sync::watch;

use super::rendered::Rendered;
use super::strategy::{Stored, Strategy};
use super::tree::ItemTree;
use crate::rest::Item;
use crate::store::{Change, ChangeSink, Engine, Past, Record, Revision, StoreError};

/// Events that are kept for watches and for lists at an older revision.
const LOG_MAX: usize = 10_000;
/// Bytes of objects that the log may keep alive.
const LOG_BYTES_MAX: usize = 16 << 20;

/// Events that a watch is handed at a time.
const BATCH_MAX: usize = 256;
/// Bytes of objects that a watch is handed at a time, unless one alone is larger.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// What still fits into a batch.
pub(super) struct Room {
    count: usize,
    bytes: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { count: 0, bytes: 0 }
    }

    /// Whether one more of so many bytes fits; it is in then. The first always fits.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.count == 0 || (self.count < BATCH_MAX && self.bytes + bytes <= BATCH_BYTES_MAX);
        self.count += 1;
        self.bytes += bytes;
        fits
    }
}

/// One change as watchers may see it.
#[derive(Debug)]
pub(super) struct Event {
    /// Revision of the change.
    pub(super) revision: Revision,
    /// The object afterwards; `None` when it was deleted.
    pub(super) current: Option<Arc<Item>>,
    /// The object before; for a deletion with the revision of the deletion in it.
    pub(super) previous: Option<Arc<Item>>,
    /// Revision of the object before; 0 where there was none.
    previous_revision: Revision,
}

impl Event {
    fn weight(&self) -> usize {
        self.current.as_ref().or(self.previous.as_ref()).map_or(0, |item| item.bytes.len())
    }
}

#[derive(Default)]
struct State {
    tree: ItemTree,
    log: VecDeque<Arc<Event>>,
    log_bytes: usize,
    /// The log holds every event after this revision.
    since: Revision,
    /// The newest revision that was applied.
    applied: Revision,
    /// Changes that arrived while the first snapshot was read.
    early: Option<Vec<Change>>,
}

/// See the module.
pub struct Cache {
    strategy: Arc<dyn Strategy>,
    rendered: Arc<Rendered>,
    state: RwLock<State>,
    signal: watch::Sender<Revision>,
    engine: Arc<dyn Engine>,
}

/// A consistent state of the resource.
pub(super) struct View {
    pub(super) revision: Revision,
    pub(super) tree: ItemTree,
}

/// What a watcher finds when it looks for news.
pub(super) enum News {
    /// Events after the cursor, oldest first; the state is complete up to the revision.
    Events(Vec<Arc<Event>>, Revision),
    /// The log no longer reaches back to the cursor; the oldest revision to watch from.
    Gone(Revision),
}

impl Cache {
    /// Loads a resource from the store and stays subscribed to it.
    ///
    /// # Errors
    /// What the store says; an object that cannot be read is an error of the store.
    pub(super) fn start(
        engine: &Arc<dyn Engine>,
        strategy: Arc<dyn Strategy>,
        rendered: Arc<Rendered>,
    ) -> Result<Arc<Self>, StoreError> {
        let prefix = prefix(&*strategy);
        let cache = Arc::new(Self {
            strategy,
            rendered,
            state: RwLock::new(State { early: Some(Vec::new()), ..State::default() }),
            signal: watch::Sender::new(0),
            engine: Arc::clone(engine),
        });
        let subscription = engine.subscribe(&prefix, Arc::clone(&cache) as Arc<dyn ChangeSink>)?;
        let mut state = cache.state.write();
        // One by one, so that a record's memory is there for the next item.
        for record in subscription.snapshot.records {
            state.tree.insert(cache.render(&record)?);
        }
        state.since = subscription.since;
        state.applied = subscription.snapshot.revision;
        // What was written before the start is in the snapshot.
        cache.rendered.take(state.applied);
        let mut older = HashMap::new();
        for past in subscription.history {
            if let Some(event) = cache.event(&past, &state.tree, &mut older) {
                push(&mut state, event);
            }
        }
        for change in state.early.take().unwrap_or_default() {
            cache.apply_one(&mut state, &change);
        }
        let applied = state.applied;
        drop(state);
        cache.signal.send_replace(applied);
        Ok(cache)
    }

    /// The item of a namespace and name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Item>> {
        self.state.read().tree.get(namespace, name).cloned()
    }

    /// The newest state, and a revision that it is complete up to.
    pub(super) fn newest(&self) -> View {
        // Read before the tree: all up to the store's revision has reached this sink.
        let revision = self.engine.revision();
        let state = self.state.read();
        View { revision: revision.max(state.applied), tree: state.tree.clone() }
    }

    /// The state at an older revision; `None` when that is no longer known.
    pub(super) fn at(&self, revision: Revision) -> Option<View> {
        let state = self.state.read();
        if revision < state.since {
            return None;
        }
        let mut tree = state.tree.clone();
        let undo: Vec<Arc<Event>> =
            state.log.iter().rev().take_while(|event| event.revision > revision).cloned().collect();
        drop(state);
        for event in undo {
            match (&event.previous, &event.current) {
                (Some(previous), Some(_)) => tree.insert(Arc::clone(previous)),
                (Some(previous), None) => {
                    tree.insert(Arc::new(at_revision(&self.strategy, previous, event.previous_revision)));
                }
                (None, Some(current)) => tree.remove(&current.namespace, &current.name),
                (None, None) => {}
            }
        }
        Some(View { revision, tree })
    }

    /// The state at a revision that the log no longer reaches, from the store; `None` when the store has forgotten it
    /// too. Blocks while it reads. Of one namespace where one is given.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn stored_at(&self, revision: Revision, namespace: &str) -> Result<Option<View>, StoreError> {
        let mut prefix = prefix(&*self.strategy);
        if !namespace.is_empty() {
            prefix = format!("{prefix}{namespace}/");
        }
        let snapshot = match self.engine.list(&prefix, Some(revision)) {
            Err(StoreError::Compacted { .. }) => return Ok(None),
            listed => listed?,
        };
        let mut tree = ItemTree::default();
        for record in snapshot.records {
            tree.insert(self.render(&record)?);
        }
        Ok(Some(View { revision, tree }))
    }

    /// What happened after `cursor`: at most [`BATCH_MAX`] events, and where there are several, at most
    /// [`BATCH_BYTES_MAX`] of objects. So a watch that nobody reads holds little, however large the objects are.
    pub(super) fn news(&self, cursor: Revision) -> News {
        let complete = self.engine.revision();
        let state = self.state.read();
        if cursor < state.since {
            return News::Gone(state.since);
        }
        let first = state.log.partition_point(|event| event.revision <= cursor);
        let mut room = Room::new();
        let fitting = state.log.range(first..).take_while(|event| room.takes(event.weight()));
        let events: Vec<Arc<Event>> = fitting.cloned().collect();
        let reached = match events.last() {
            Some(last) if first + events.len() < state.log.len() => last.revision,
            _ => complete.max(state.applied),
        };
        News::Events(events, reached.max(cursor))
    }

    /// Wakes when something changed.
    pub(super) fn changed(&self) -> watch::Receiver<Revision> {
        self.signal.subscribe()
    }

    /// The newest revision of the store.
    pub(super) fn revision(&self) -> Revision {
        self.engine.revision()
    }

    fn render(&self, record: &Record) -> Result<Arc<Item>, StoreError> {
        let stored: Stored = serde_json::from_slice(&record.value)
            .map_err(|error| StoreError::Failed(format!("{} cannot be read: {error}", record.key).into()))?;
        let object = self.strategy.present(&stored);
        Ok(Arc::new(Item::new(self.strategy.resource(), object, record.revision)))
    }

    /// The event of a change that was made before the start. Its items are those of the tree, or of the event before,
    /// as they are for changes that are seen as they come: each is in memory once.
    fn event(
        &self,
        Past { change, previous }: &Past,
        tree: &ItemTree,
        older: &mut HashMap<Revision, Arc<Item>>,
    ) -> Option<Event> {
        let mut item_of = |record: &Record| {
            let (namespace, name) = split_key(&record.key);
            let newest = tree.get(namespace, name).filter(|item| item.revision == record.revision);
            if let Some(known) = newest.or_else(|| older.get(&record.revision)) {
                return Some(Arc::clone(known));
            }
            let item = self.render(record).ok()?;
            older.insert(record.revision, Arc::clone(&item));
            Some(item)
        };
        let current = change.current.as_ref().and_then(&mut item_of);
        let previous = previous.as_ref().and_then(&mut item_of);
        self.pair(change, current, previous)
    }

    /// How many items writers have made that are not taken in.
    #[cfg(test)]
    pub(super) fn items_that_wait(&self) -> usize {
        self.rendered.len()
    }

    /// How many items the log holds that are not in the tree.
    #[cfg(test)]
    pub(super) fn items_of_the_log_alone(&self) -> usize {
        let state = self.state.read();
        let newest = |item: &Arc<Item>| state.tree.get(&item.namespace, &item.name);
        let alone = |item: &&Arc<Item>| !newest(item).is_some_and(|newest| Arc::ptr_eq(newest, item));
        state.log.iter().flat_map(|event| event.current.iter()).filter(alone).count()
    }

    fn pair(
        &self,
        change: &Change,
        current: Option<Arc<Item>>,
        previous: Option<Arc<Item>>,
    ) -> Option<Event> {
        let previous_revision = previous.as_ref().map_or(0, |item| item.revision);
        let previous = match (&current, previous) {
            (None, Some(item)) => Some(Arc::new(at_revision(&self.strategy, &item, change.revision))),
            (_, previous) => previous,
        };
        if current.is_none() && previous.is_none() {
            return None;
        }
        Some(Event { revision: change.revision, current, previous, previous_revision })
    }

    fn apply_one(&self, state: &mut State, change: &Change) {
        if change.revision <= state.applied {
            return;
        }
        let (namespace, name) = split_key(&change.key);
        let previous = state.tree.get(namespace, name).cloned();
        let rendered = self.rendered.take(change.revision);
        let current = match &change.current {
            None => None,
            Some(record) if rendered.is_some() => {
                debug_assert_eq!(
                    rendered.as_ref().map(|item| &item.bytes),
                    self.render(record).ok().as_ref().map(|item| &item.bytes),
                    "what is stored reads back as it was written"
                );
                rendered
            }
            Some(record) => match self.render(record) {
                Ok(item) => Some(item),
                Err(error) => {
                    tracing::error!(%error, key = %change.key, "a stored object cannot be served");
                    None
                }
            },
        };
        match &current {
            Some(item) => state.tree.insert(Arc::clone(item)),
            None => state.tree.remove(namespace, name),
        }
        state.applied = change.revision;
        if let Some(event) = self.pair(change, current, previous) {
            push(state, event);
        }
    }
}

impl ChangeSink for Cache {
    fn apply(&self, changes: &[Change]) {
        let mut state = self.state.write();
        if let Some(early) = &mut state.early {
            early.extend_from_slice(changes);
            return;
        }
        for change in changes {
            self.apply_one(&mut state, change);
        }
        let applied = state.applied;
        drop(state);
        self.signal.send_replace(applied);
    }
}

fn push(state: &mut State, event: Event) {
    state.log_bytes += event.weight();
    state.log.push_back(Arc::new(event));
    while state.log.len() > LOG_MAX || state.log_bytes > LOG_BYTES_MAX {
        let Some(oldest) = state.log.pop_front() else { break };
        state.log_bytes -= oldest.weight();
        state.since = oldest.revision;
    }
}

/// The item with another `resourceVersion`: a deletion is seen at the revision of the deletion.
pub(super) fn at_revision(strategy: &Arc<dyn Strategy>, item: &Item, revision: Revision) -> Item {
    if item.revision == revision {
        return item.clone();
    }
    let object = item.object().unwrap_or_else(|_| Object::default());
    Item::new(strategy.resource(), object, revision)
}

/// The prefix of a resource's keys: `routes.route.openshift.io/`.
pub(super) fn prefix(strategy: &dyn Strategy) -> String {
    let resource = strategy.resource();
    format!("{}.{}/", resource.plural, resource.gvk.group)
}

/// Namespace (empty for cluster scope) and name of a key.
pub(super) fn split_key(key: &str) -> (&str, &str) {
    let rest = key.split_once('/').map_or("", |(_, rest)| rest);
    rest.split_once('/').unwrap_or(("", rest))
}
