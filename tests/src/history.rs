//! A record of what writers were told, what watchers saw and what lists showed, and the check whether one store could
//! have said all of it: nothing acknowledged is lost, nothing is seen that was refused, revisions never go back, and
//! every watcher has seen everything once.
//!
//! Times are counts of one clock of the recorder's, taken before a request is sent and after its answer is there.

use std::collections::{BTreeMap, BTreeSet};

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged; with the revision where the answer has one (a deletion's has none).
    Done(Option<u64>),
    /// Refused: it has not happened and will not.
    Refused,
    /// Nobody knows: the connection broke.
    Unknown,
}

/// A write.
#[derive(Debug, Clone)]
pub struct Write {
    /// The object.
    pub key: String,
    /// What it says afterwards; no two writes say the same. `None` for a deletion.
    pub value: Option<u64>,
    /// When it was sent.
    pub sent: u64,
    /// When its end was known.
    pub ended: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What a watcher saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its type.
    pub kind: Kind,
    /// The object.
    pub key: String,
    /// The revision that it shows.
    pub revision: u64,
    /// What the object says.
    pub value: u64,
}

/// A list.
#[derive(Debug, Clone)]
pub struct List {
    /// When it was asked for.
    pub sent: u64,
    /// When it was there.
    pub ended: u64,
    /// The revision that it shows.
    pub revision: u64,
    /// Objects with their revision and what they say.
    pub items: BTreeMap<String, (u64, u64)>,
}

/// All that was recorded. Every watcher began before the first write and ended after the last.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The writes, in any order.
    pub writes: Vec<Write>,
    /// What each watcher saw, over all its connections.
    pub watchers: Vec<Vec<Event>>,
    /// The lists, in any order.
    pub lists: Vec<List>,
}

/// What is wrong with a history; empty when nothing is.
#[must_use]
pub fn violations(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let Some(events) = history.watchers.first() else { return vec!["nobody watched".to_owned()] };
    for (index, other) in history.watchers.iter().enumerate() {
        if !other.is_sorted_by(|one, next| one.revision < next.revision) {
            found.push(format!("watcher {index} saw a revision twice, or one go back"));
        }
        if let Some(at) = (0..events.len().max(other.len())).find(|at| events.get(*at) != other.get(*at)) {
            let (one, two) = (events.get(at), other.get(at));
            found.push(format!("watcher {index} saw {two:?} where the first saw {one:?}"));
        }
    }
    check_events(events, &mut found);
    check_writes(history, events, &mut found);
    check_lists(history, events, &mut found);
    check_time(history, &mut found);
    found
}

/// Objects come once, change while they are there, and go once.
fn check_events(events: &[Event], found: &mut Vec<String>) {
    let mut there: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        let before = there.get(event.key.as_str()).copied();
        let possible = match event.kind {
            Kind::Added => before.is_none(),
            Kind::Modified => before.is_some_and(|before| before != event.value),
            Kind::Deleted => before == Some(event.value),
        };
        if !possible {
            found.push(format!("{event:?} while the object said {before:?}"));
        }
        match event.kind {
            Kind::Deleted => there.remove(event.key.as_str()),
            Kind::Added | Kind::Modified => there.insert(&event.key, event.value),
        };
    }
}

/// What was acknowledged has happened once, as acknowledged; what was refused has not; and nothing else has.
fn check_writes(history: &History, events: &[Event], found: &mut Vec<String>) {
    let mut said: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind != Kind::Deleted) {
        said.entry(event.value).or_default().push(event);
    }
    let mut written = BTreeSet::new();
    for write in &history.writes {
        let Some(value) = write.value else { continue };
        written.insert(value);
        let seen = said.get(&value).map(Vec::as_slice).unwrap_or_default();
        let fits = match write.outcome {
            Outcome::Done(revision) => {
                let same = |event: &Event| event.key == write.key && Some(event.revision) == revision;
                matches!(seen, [event] if same(event))
            }
            Outcome::Refused => seen.is_empty(),
            Outcome::Unknown => seen.len() <= 1,
        };
        if !fits {
            found.push(format!("{write:?} was seen as {seen:?}"));
        }
    }
    for (value, seen) in &said {
        if !written.contains(value) {
            found.push(format!("nobody wrote {seen:?}"));
        }
    }
    check_deletions(history, events, found);
}

/// For each object there are as many deletions as were acknowledged, and at most as many more as nobody knows of.
fn check_deletions(history: &History, events: &[Event], found: &mut Vec<String>) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == Kind::Deleted) {
        *seen.entry(event.key.as_str()).or_default() += 1;
    }
    let mut asked: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for write in history.writes.iter().filter(|write| write.value.is_none()) {
        let (done, unknown) = asked.entry(&write.key).or_default();
        match write.outcome {
            Outcome::Done(_) => *done += 1,
            Outcome::Unknown => *unknown += 1,
            Outcome::Refused => {}
        }
    }
    let keys: BTreeSet<&str> = seen.keys().chain(asked.keys()).copied().collect();
    for key in keys {
        let count = seen.get(key).copied().unwrap_or_default();
        let (done, unknown) = asked.get(key).copied().unwrap_or_default();
        if !(done..=done + unknown).contains(&count) {
            found.push(format!("{key} was deleted {count} times; {done} acknowledged, {unknown} unknown"));
        }
    }
}

/// A list is the state at its revision.
fn check_lists(history: &History, events: &[Event], found: &mut Vec<String>) {
    let mut lists: Vec<&List> = history.lists.iter().collect();
    lists.sort_by_key(|list| list.revision);
    let mut state: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut next = events.iter().peekable();
    for list in lists {
        while let Some(event) = next.next_if(|event| event.revision <= list.revision) {
            match event.kind {
                Kind::Deleted => state.remove(event.key.as_str()),
                Kind::Added | Kind::Modified => state.insert(&event.key, (event.revision, event.value)),
            };
        }
        let shown: BTreeMap<&str, (u64, u64)> =
            list.items.iter().map(|(key, item)| (key.as_str(), *item)).collect();
        if shown != state {
            found.push(format!("the list at {} shows {shown:?}, it was {state:?}", list.revision));
        }
    }
}

/// Whatever is asked for after an answer is at least as new as the answer.
fn check_time(history: &History, found: &mut Vec<String>) {
    // (when it was sent, when it ended, revision, whether equal is new enough)
    let mut spans: Vec<(u64, u64, u64, bool)> =
        history.lists.iter().map(|list| (list.sent, list.ended, list.revision, true)).collect();
    for write in &history.writes {
        if let Outcome::Done(Some(revision)) = write.outcome {
            spans.push((write.sent, write.ended, revision, false));
        }
    }
    let mut ends: Vec<(u64, u64)> = spans.iter().map(|(_, ended, revision, _)| (*ended, *revision)).collect();
    ends.sort_unstable();
    spans.sort_unstable();
    let (mut newest, mut next) = (0, ends.into_iter().peekable());
    for (sent, _, revision, equal) in spans {
        while let Some((_, ended)) = next.next_if(|(ended, _)| *ended < sent) {
            newest = newest.max(ended);
        }
        if revision < newest || (revision == newest && !equal) {
            found.push(format!("an answer is of {revision} after {newest} had been answered"));
        }
    }
}

#[cfg(test)]
mod tests;
