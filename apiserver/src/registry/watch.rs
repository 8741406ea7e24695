//! One watch of a stored resource: pulls from the cache's shared log at its own pace, so that a slow client holds
//! up nobody and costs no queue. One that falls behind the log is cut off.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use picoshift_machinery::Status;
use rand::RngExt;
use tokio::time::{Instant, sleep_until};

use super::cache::{Cache, Event, News, at_revision};
use super::select::Selection;
use super::strategy::Strategy;
use crate::rest::{Item, ListOptions, Watch, WatchEvent};
use crate::store::Revision;

/// Events that one turn hands out.
const BATCH: usize = 256;
/// Time between bookmarks, give or take a quarter.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before a watch times out, as upstream's does.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// What a watch begins with.
pub(super) enum Start {
    /// All items as ADDED, then changes after the revision; with the closing bookmark where bookmarks are allowed.
    Initial(Vec<Arc<Item>>, Revision),
    /// Only changes after the revision.
    After(Revision),
}

struct Watcher {
    cache: Arc<Cache>,
    strategy: Arc<dyn Strategy>,
    selection: Selection,
    cursor: Revision,
    changed: tokio::sync::watch::Receiver<Revision>,
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
    let (first, cursor) = match start {
        Start::After(cursor) => (Vec::new(), cursor),
        Start::Initial(items, revision) => (initial(&items, revision, options.bookmarks), revision),
    };
    let end = options.timeout_seconds.and_then(|seconds| now.checked_add(Duration::from_secs(seconds)));
    // A watch too short for it has no last bookmark.
    let last = end.and_then(|end| end.checked_sub(BOOKMARK_BEFORE_END)).filter(|last| *last > now);
    let watcher = Watcher {
        cache,
        strategy,
        selection,
        cursor,
        changed,
        next_bookmark: options.bookmarks.then(|| now + period()),
        last_bookmark: last.filter(|_| options.bookmarks),
        over: false,
    };
    let rest = stream::unfold(watcher, |mut watcher| async move {
        let events = watcher.next().await?;
        Some((events, watcher))
    });
    stream::iter(first).chain(rest).boxed()
}

/// The initial events in batches, so that not the whole list is encoded at once for each new watcher; then the
/// bookmark that ends them.
fn initial(items: &[Arc<Item>], revision: Revision, bookmarks: bool) -> Vec<Vec<WatchEvent>> {
    let mut batches: Vec<Vec<WatchEvent>> = items
        .chunks(BATCH)
        .map(|batch| batch.iter().map(|item| WatchEvent::Added(Arc::clone(item))).collect())
        .collect();
    if bookmarks {
        let end = WatchEvent::Bookmark { revision, initial_events_end: true };
        match batches.last_mut() {
            Some(batch) => batch.push(end),
            None => batches.push(vec![end]),
        }
    }
    batches
}

/// A watch that says why it cannot be, and ends: so upstream answers a revision that the store has not reached.
pub(super) fn refused(status: Status) -> Watch {
    stream::iter([vec![WatchEvent::Error(status)]]).boxed()
}

fn period() -> Duration {
    BOOKMARK_PERIOD.mul_f64(rand::rng().random_range(0.75..1.25))
}

impl Watcher {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            if self.over {
                return None;
            }
            // Marked as seen before the look, so that a change after the look wakes.
            self.changed.borrow_and_update();
            match self.cache.news(self.cursor, BATCH) {
                News::Gone(oldest) => {
                    self.over = true;
                    return Some(vec![WatchEvent::Error(too_old(self.cursor, oldest))]);
                }
                News::Events(events, reached) => {
                    self.cursor = reached;
                    let seen: Vec<WatchEvent> = events.iter().filter_map(|event| self.see(event)).collect();
                    if !seen.is_empty() {
                        return Some(seen);
                    }
                    if !events.is_empty() {
                        continue;
                    }
                }
            }
            if let Some(bookmark) = self.wait().await {
                return Some(vec![bookmark]);
            }
        }
    }

    /// Waits for a change (`None`) or for the time of a bookmark.
    async fn wait(&mut self) -> Option<WatchEvent> {
        let due = [self.next_bookmark, self.last_bookmark].into_iter().flatten().min();
        let Some(due) = due else {
            if self.changed.changed().await.is_err() {
                self.over = true;
            }
            return None;
        };
        tokio::select! {
            changed = self.changed.changed() => {
                if changed.is_err() {
                    self.over = true;
                }
                None
            }
            () = sleep_until(due) => {
                if self.last_bookmark == Some(due) {
                    self.last_bookmark = None;
                }
                self.next_bookmark = Some(Instant::now() + period());
                // All up to the store's revision is in the log; what is past the cursor comes first.
                let revision = self.cache.revision();
                match self.cache.news(self.cursor, 1) {
                    // A watch from a revision that is not there yet has nothing to confirm.
                    News::Events(events, _) if events.is_empty() && self.cursor <= revision => {
                        self.cursor = revision;
                        Some(WatchEvent::Bookmark { revision: self.cursor, initial_events_end: false })
                    }
                    _ => None,
                }
            }
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
