//! One watch of projects: pulls from the shared log when the index changes, and sends bookmarks.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use picoshift_machinery::Status;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::visibility::log::{Position, TooOld};
use super::visibility::{Index, Selection, Viewer, Visibility};
use crate::rest::{ListOptions, Watch, WatchEvent};
use crate::store::Revision;

/// A watch that runs.
struct Watcher {
    visibility: Arc<Visibility>,
    changes: Receiver<u64>,
    viewer: Viewer,
    selection: Selection,
    position: Position,
    bookmarks: bool,
    ticks: Interval,
    /// Events to send first.
    first: Vec<WatchEvent>,
    over: bool,
}

/// Starts a watch: from the newest state without a replay where `resourceVersion` is unset, with all that is visible
/// first where it is 0 or initial events are asked for, else from the revision. A revision that the log does not
/// reach ends the watch with 410.
pub(crate) fn start(
    visibility: Arc<Visibility>,
    viewer: Viewer,
    options: &ListOptions,
    bookmark_interval: Duration,
) -> Watch {
    // Subscribed before the state is read: no change falls in between.
    let changes = visibility.subscribe();
    let selection = Selection::of(options);
    let beginning = begin(&visibility.read(), &viewer, &selection, options);
    let (position, first, over) = match beginning {
        Ok((position, first)) => (position, first, false),
        Err(status) => (0, vec![WatchEvent::Error(status)], true),
    };
    let mut ticks = interval_at(Instant::now() + bookmark_interval, bookmark_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let bookmarks = options.bookmarks;
    let watcher = Watcher { visibility, changes, viewer, selection, position, bookmarks, ticks, first, over };
    stream::unfold(watcher, Watcher::next).boxed()
}

fn begin(
    index: &Index,
    viewer: &Viewer,
    selection: &Selection,
    options: &ListOptions,
) -> Result<(Position, Vec<WatchEvent>), Status> {
    let initial = options.send_initial_events.unwrap_or(options.resource_version == Some(0));
    if !initial {
        let position = match options.resource_version.filter(|r| *r > 0) {
            Some(revision) => index.log().position(revision).map_err(|e| too_old(revision, e))?,
            None => index.log().end(),
        };
        return Ok((position, Vec::new()));
    }
    let mut events: Vec<WatchEvent> = index
        .visible(viewer)
        .into_iter()
        .filter(|item| selection.matches(item))
        .map(WatchEvent::Added)
        .collect();
    if options.send_initial_events == Some(true) && options.bookmarks {
        events.push(WatchEvent::Bookmark { revision: index.clock(), initial_events_end: true });
    }
    Ok((index.log().end(), events))
}

fn too_old(revision: Revision, error: TooOld) -> Status {
    Status::expired(format!("too old resource version: {revision} ({})", error.oldest))
}

impl Watcher {
    async fn next(mut self) -> Option<(Vec<WatchEvent>, Self)> {
        if !self.first.is_empty() {
            return Some((std::mem::take(&mut self.first), self));
        }
        if self.over {
            return None;
        }
        loop {
            self.changes.borrow_and_update();
            let (events, _) = self.pull();
            if !events.is_empty() {
                return Some((events, self));
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                _ = self.ticks.tick(), if self.bookmarks => {
                    let (mut events, revision) = self.pull();
                    if !self.over {
                        events.push(WatchEvent::Bookmark { revision, initial_events_end: false });
                    }
                    return Some((events, self));
                }
            }
        }
    }

    /// What is new, and the revision that is reached with it.
    fn pull(&mut self) -> (Vec<WatchEvent>, Revision) {
        let index = self.visibility.read();
        match index.pull(&self.viewer, &self.selection, self.position, self.bookmarks) {
            Ok(pull) => {
                self.position = pull.position;
                (pull.events, pull.revision)
            }
            Err(error) => {
                self.over = true;
                // The watcher was too slow; what it has seen last is not known, the log's start is.
                (vec![WatchEvent::Error(too_old(error.oldest, error))], error.oldest)
            }
        }
    }
}

#[cfg(test)]
mod tests;
