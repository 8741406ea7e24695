//! What a watcher sees of the log: the same function for watchers that follow it and for those that come back.
//!
//! A watcher keeps only its position. The state at that position is found by undoing, from the present, the entries
//! after it, for the namespaces that they touch; then they are done again one by one, and what changes for the viewer
//! becomes an event. The groups that Group objects give to the viewer are undone and done again in the same way: what a
//! group gains counts only while the viewer is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::Index;
use super::log::{Change, Entry, Position, TooOld};
use super::selection::Selection;
use super::subjects::{Subject, Viewer};
use crate::rest::{Item, WatchEvent};
use crate::store::Revision;

/// Events for one watcher, and where it stands after them.
#[derive(Debug)]
pub(crate) struct Pull {
    /// The events, in order.
    pub(crate) events: Vec<WatchEvent>,
    /// The position behind them.
    pub(crate) position: Position,
    /// The revision up to which all has been sent.
    pub(crate) revision: Revision,
}

/// A namespace as the viewer stands to it.
struct Standing {
    /// Subjects of the viewer that see it by name.
    by_name: i64,
    item: Option<Arc<Item>>,
}

/// The state of what the replayed entries touch.
struct State<'a> {
    viewer: &'a Viewer,
    /// The groups that Group objects give to the viewer.
    joined: BTreeSet<Subject>,
    /// Subjects of the viewer that see all.
    all: i64,
    touched: BTreeMap<Arc<str>, Standing>,
}

impl Index {
    /// The events of a viewer from a position to the present. With `bookmarks`, a change of sight is followed by one.
    ///
    /// # Errors
    /// [`TooOld`] when the log does not reach back to the position.
    pub(crate) fn pull(
        &self,
        viewer: &Viewer,
        selection: &Selection,
        position: Position,
        bookmarks: bool,
    ) -> Result<Pull, TooOld> {
        // Every group that the viewer was in at any time in between.
        let mut groups: BTreeSet<Subject> = self.joined(viewer).cloned().collect();
        groups
            .extend(self.log().from(position)?.filter_map(|e| movement(viewer, &e.change)).map(|m| m.group));
        let entries: Vec<&Entry> =
            self.log().from(position)?.filter(|e| concerns(viewer, &groups, &e.change)).collect();
        let mut state = State::present(self, viewer, &entries);
        for entry in entries.iter().rev() {
            state.undo(&entry.change);
        }
        let mut events = Vec::new();
        let mut owed = false;
        for (at, entry) in entries.iter().enumerate() {
            let before = events.len();
            state.redo(&entry.change, selection, &mut events);
            owed |= !matches!(entry.change, Change::Namespace { .. }) && events.len() > before;
            let same_event =
                entries.get(at + 1).is_some_and(|next| next.advanced && next.effective == entry.effective);
            if owed && !same_event && bookmarks {
                events.push(WatchEvent::Bookmark { revision: entry.effective, initial_events_end: false });
                owed = false;
            }
        }
        Ok(Pull { events, position: self.log().end(), revision: self.clock() })
    }
}

/// The viewer's joining or leaving of a group.
struct Movement {
    group: Subject,
    joined: bool,
}

/// The movement of a viewer in a change; `None` where there is none, or where the viewer has the group anyway.
fn movement(viewer: &Viewer, change: &Change) -> Option<Movement> {
    let (Change::Members { change, .. }, Some(user)) = (change, &viewer.member) else { return None };
    let joined = change.joined.contains(user);
    let group = Subject::Group(Arc::clone(&change.group));
    ((joined || change.left.contains(user)) && !viewer.is(&group)).then_some(Movement { group, joined })
}

fn concerns(viewer: &Viewer, groups: &BTreeSet<Subject>, change: &Change) -> bool {
    match change {
        Change::Namespace { name, .. } => viewer.limit.allows(name),
        Change::Members { .. } => movement(viewer, change).is_some(),
        Change::Grant { subject, namespace, .. } => {
            (viewer.is(subject) || groups.contains(subject))
                && namespace.as_ref().is_none_or(|n| viewer.limit.allows(n))
        }
    }
}

impl<'a> State<'a> {
    fn present(index: &Index, viewer: &'a Viewer, entries: &[&Entry]) -> Self {
        let all = i64::try_from(index.sees_all(viewer)).unwrap_or(i64::MAX);
        let joined = index.joined(viewer).cloned().collect();
        let mut state = Self { viewer, joined, all, touched: BTreeMap::new() };
        let mut everything = false;
        for entry in entries {
            match &entry.change {
                Change::Namespace { name, .. } | Change::Grant { namespace: Some(name), .. } => {
                    state.touch(index, name);
                }
                Change::Grant { namespace: None, .. } => everything = true,
                Change::Members { all, names, .. } => {
                    everything |= all;
                    let names = names.iter().filter(|name| viewer.limit.allows(name));
                    names.for_each(|name| state.touch(index, name));
                }
            }
        }
        if everything {
            for (name, _) in index.projects().filter(|(n, _)| viewer.limit.allows(n)) {
                state.touch(index, name);
            }
        }
        state
    }

    fn touch(&mut self, index: &Index, name: &Arc<str>) {
        if !self.touched.contains_key(name) {
            let by_name = i64::try_from(index.sees_by_name(self.viewer, name)).unwrap_or(i64::MAX);
            self.touched.insert(name.clone(), Standing { by_name, item: index.project(name).cloned() });
        }
    }

    fn undo(&mut self, change: &Change) {
        match change {
            Change::Namespace { name, old, .. } => {
                if let Some(standing) = self.touched.get_mut(name) {
                    standing.item.clone_from(old);
                }
            }
            Change::Members { all, names, .. } => {
                if let Some(Movement { group, joined }) = movement(self.viewer, change) {
                    self.change_group(group, !joined, *all, names);
                }
            }
            Change::Grant { subject, namespace, gained } => {
                if self.counts(subject) {
                    self.shift(namespace.as_ref(), !gained);
                }
            }
        }
    }

    fn counts(&self, subject: &Subject) -> bool {
        self.viewer.is(subject) || self.joined.contains(subject)
    }

    /// The viewer joins or leaves a group, with what the group sees.
    fn change_group(&mut self, group: Subject, joined: bool, all: bool, names: &[Arc<str>]) {
        if joined {
            self.joined.insert(group);
        } else {
            self.joined.remove(&group);
        }
        if all {
            self.shift(None, joined);
        }
        names.iter().for_each(|name| self.shift(Some(name), joined));
    }

    fn shift(&mut self, namespace: Option<&Arc<str>>, gained: bool) {
        let step = if gained { 1 } else { -1 };
        match namespace {
            None => self.all += step,
            Some(name) => {
                if let Some(standing) = self.touched.get_mut(name) {
                    standing.by_name += step;
                }
            }
        }
    }

    fn redo(&mut self, change: &Change, selection: &Selection, events: &mut Vec<WatchEvent>) {
        match change {
            Change::Namespace { name, new, gone, .. } => {
                let all = self.all > 0;
                let Some(standing) = self.touched.get_mut(name) else { return };
                let old = std::mem::replace(&mut standing.item, new.clone());
                if all || standing.by_name > 0 {
                    events.extend(selection.event(old.as_ref(), new.as_ref(), gone.as_ref()));
                }
            }
            Change::Members { all, names, .. } => {
                let Some(Movement { group, joined }) = movement(self.viewer, change) else { return };
                let before = self.seen();
                self.change_group(group, joined, *all, names);
                let after = self.seen();
                let changed = before.symmetric_difference(&after).filter_map(|name| self.touched.get(name));
                events.extend(changed.filter_map(|standing| standing.sight(joined, selection)));
            }
            Change::Grant { subject, namespace, gained } if self.counts(subject) => {
                let all = self.all > 0;
                let name = namespace.as_ref();
                let seen = |s: &Standing, all: bool| all || s.by_name > 0;
                let before = name.and_then(|n| self.touched.get(n)).is_some_and(|s| seen(s, all));
                self.shift(name, *gained);
                let now_all = self.all > 0;
                match name.and_then(|n| self.touched.get(n)) {
                    Some(standing) if seen(standing, now_all) != before => {
                        events.extend(standing.sight(*gained, selection));
                    }
                    Some(_) => {}
                    None if all != now_all => {
                        let others = self.touched.values().filter(|s| s.by_name <= 0);
                        events.extend(others.filter_map(|s| s.sight(*gained, selection)));
                    }
                    None => {}
                }
            }
            Change::Grant { .. } => {}
        }
    }

    /// The touched namespaces that the viewer sees.
    fn seen(&self) -> BTreeSet<Arc<str>> {
        let all = self.all > 0;
        let seen = self.touched.iter().filter(|(_, standing)| all || standing.by_name > 0);
        seen.map(|(name, _)| Arc::clone(name)).collect()
    }
}

impl Standing {
    /// The event of gaining or losing sight.
    fn sight(&self, gained: bool, selection: &Selection) -> Option<WatchEvent> {
        match gained {
            true => selection.event(None, self.item.as_ref(), None),
            false => selection.event(self.item.as_ref(), None, None),
        }
    }
}
