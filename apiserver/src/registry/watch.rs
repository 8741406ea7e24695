//! One watch of a stored resource: pulls from the cache's shared log at its own pace, so that a slow client holds
//! up nobody and costs no queue. One that falls behind the log is cut off.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use picoshift_machinery::Status;
use rand::RngExt;
use tokio::time::Instant;

use super::cache::{Cache, Event, News, Room, View, at_revision};
use super::select::Selection;
use super::strategy::Strategy;
use crate::rest::{Item, ListOptions, Watch, WatchEvent};
use crate::store::Revision;

/// Longest time between bookmarks; the shortest is three quarters of it, so that watches do not all wake together.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before a watch times out, as upstream's does.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// What a watch begins with.
pub(super) enum Start {
    /// All items of a state as ADDED, then changes after it; with the closing bookmark where bookmarks are allowed.
    Initial(View),
    /// Only changes after the revision.
    After(Revision),
}

/// The state that a watch is still telling. It shares its items with the cache, and holds no list of its own.
struct Initial {
    view: View,
    /// Namespace and name of the item with which to go on.
    from: Option<(Box<str>, Box<str>)>,
}

struct Watcher {
    cache: Arc<Cache>,
    strategy: Arc<dyn Strategy>,
    selection: Selection,
    initial: Option<Initial>,
    cursor: Revision,
    changed: tokio::sync::watch::Receiver<Revision>,
    bookmarks: bool,
    next_bookmark: Option<Instant>,
    last_bookmark: Option<Instant>,
    over: bool,
}

/// Opens a watch.
pub(super) fn open(
    cache: Arc<Cache>,
    strategy: Arc<dyn Strategy>,
    selection: Selection,
    start: Start,
    options: &ListOptions,
) -> Watch {
    let now = Instant::now();
    let changed = cache.changed();
    let (initial, cursor) = match start {
        Start::After(cursor) => (None, cursor),
        Start::Initial(view) => {
            let cursor = view.revision;
            (Some(Initial { view, from: None }), cursor)
        }
    };
    let end = options.timeout_seconds.and_then(|seconds| now.checked_add(Duration::from_secs(seconds)));
    // A watch too short for it has no last bookmark.
    let last = end.and_then(|end| end.checked_sub(BOOKMARK_BEFORE_END)).filter(|last| *last > now);
    let watcher = Watcher {
        cache,
        strategy,
        selection,
        initial,
        cursor,
        changed,
        bookmarks: options.bookmarks,
        next_bookmark: options.bookmarks.then(|| now + period()),
        last_bookmark: last.filter(|_| options.bookmarks),
        over: false,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let events = watcher.next().await?;
        Some((events, watcher))
    });
    events.boxed()
}

/// A watch that says why it cannot be, and ends: so upstream answers a revision that the store has not reached.
pub(super) fn refused(status: Status) -> Watch {
    stream::iter([vec![WatchEvent::Error(status)]]).boxed()
}

fn period() -> Duration {
    BOOKMARK_PERIOD.mul_f64(rand::rng().random_range(0.75..1.0))
}

impl Watcher {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            if self.over {
                return None;
            }
            if let Some(initial) = self.initial.take() {
                let told = self.tell(initial);
                if told.is_empty() {
                    continue;
                }
                return Some(told);
            }
            // Marked as seen before the look, so that a change after the look wakes.
            self.changed.borrow_and_update();
            let (events, reached) = match self.cache.news(self.cursor) {
                News::Events(events, reached) => (events, reached),
                News::Gone(oldest) => {
                    self.over = true;
                    return Some(vec![WatchEvent::Error(too_old(self.cursor, oldest))]);
                }
            };
            self.cursor = reached;
            let mut seen: Vec<WatchEvent> = events.iter().filter_map(|event| self.see(event)).collect();
            seen.extend(self.bookmark());
            if !seen.is_empty() {
                return Some(seen);
            }
            if events.is_empty() {
                self.wait().await;
            }
        }
    }

    /// The next of the initial events, a batch, so that not the whole list is encoded at once for each new watcher;
    /// after the last of them, the bookmark that says so.
    fn tell(&mut self, initial: Initial) -> Vec<WatchEvent> {
        let Initial { view, from } = initial;
        let from = from.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        let mut room = Room::new();
        let mut within = self.selection.within(&view.tree, from).peekable();
        let mut told = Vec::new();
        while let Some(item) =
            within.next_if(|item| !self.selection.matches(item) || room.takes(item.bytes.len()))
        {
            if self.selection.matches(item) {
                told.push(WatchEvent::Added(Arc::clone(item)));
            }
        }
        if let Some(next) = within.peek() {
            let from = Some((next.namespace.clone(), next.name.clone()));
            drop(within);
            self.initial = Some(Initial { view, from });
        } else if self.bookmarks {
            told.push(WatchEvent::Bookmark { revision: view.revision, initial_events_end: true });
        }
        told
    }

    /// A bookmark, when its time has come. It confirms what has been told, however much is still to be told.
    fn bookmark(&mut self) -> Option<WatchEvent> {
        let now = Instant::now();
        let due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if !due(self.next_bookmark) && !due(self.last_bookmark) {
            return None;
        }
        self.last_bookmark = self.last_bookmark.filter(|last| *last > now);
        self.next_bookmark = Some(now + period());
        // A watch from a revision that is not there yet has nothing to confirm.
        let confirmed = self.cursor <= self.cache.revision();
        confirmed.then_some(WatchEvent::Bookmark { revision: self.cursor, initial_events_end: false })
    }

    /// Waits for a change or for the time of a bookmark.
    async fn wait(&mut self) {
        let due = [self.next_bookmark, self.last_bookmark].into_iter().flatten().min();
        let changed = self.changed.changed();
        let changed = match due {
            None => changed.await,
            Some(due) => tokio::time::timeout_at(due, changed).await.unwrap_or(Ok(())),
        };
        if changed.is_err() {
            self.over = true;
        }
    }

    /// An event as this watcher's selection sees it.
    fn see(&self, event: &Event) -> Option<WatchEvent> {
        let matching = |item: &&Arc<Item>| self.selection.matches(item);
        let current = event.current.as_ref().filter(matching);
        let previous = event.previous.as_ref().filter(matching);
        match (current, previous) {
            (Some(item), None) => Some(WatchEvent::Added(Arc::clone(item))),
            (Some(item), Some(_)) => Some(WatchEvent::Modified(Arc::clone(item))),
            (None, Some(item)) => {
                Some(WatchEvent::Deleted(Arc::new(at_revision(&self.strategy, item, event.revision))))
            }
            (None, None) => None,
        }
    }
}

/// 410 for a revision that the log no longer reaches.
pub(super) fn too_old(requested: Revision, oldest: Revision) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}
