//! The one thread that writes: takes all that waits as one commit, then tells the sinks, then publishes, then
//! acknowledges. History that is over the limits is forgotten in small steps, within the same commits where there are
//! writes.

use std::any::Any;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::history::History;
use super::queue::Job;
use super::{Options, Shared};
use crate::store::{Change, Revision};

/// Changes to forget in one commit, at least.
const SWEEP_STEP: usize = 256;

/// The writing thread's own state.
pub(super) struct Committer {
    shared: Arc<Shared>,
    options: Options,
    history: History,
    /// Up to where history is to be forgotten.
    goal: Revision,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, options: Options, history: History) -> Self {
        let goal = history.swept();
        Self { shared, options, history, goal }
    }

    /// Works until the queue is stopped and empty, or the medium fails.
    pub(super) fn run(mut self) {
        self.aim(0);
        loop {
            let own_work = self.goal > self.history.swept();
            let Some(work) = self.shared.queue.next(self.goal, own_work) else { break };
            self.aim(work.compact);
            // redb may panic where a page was altered under it; sinks are foreign code.
            let round = catch_unwind(AssertUnwindSafe(|| self.round(&work.jobs)));
            let round = round.unwrap_or_else(|panic| Err(format!("panic: {}", panic_text(&*panic))));
            if let Err(why) = round {
                tracing::error!(%why, "the store failed; it is read-only until a restart");
                self.shared.queue.fail(&why);
                self.shared.progress.send_replace(Revision::MAX);
                break;
            }
            let published = self.history.newest();
            self.aim(0);
            for job in work.jobs {
                // Nobody may be waiting any more.
                let _ = job.done.send(());
            }
            self.shared.progress.send_replace(published);
        }
    }

    /// Moves the goal of compaction.
    fn aim(&mut self, asked: Revision) {
        let excess = self.history.excess(self.options.keep_changes, self.options.keep_bytes);
        self.goal = self.goal.max(asked.min(self.history.newest())).max(excess);
        self.shared.compacted.fetch_max(self.goal, Ordering::AcqRel);
    }

    /// One commit and its publication.
    fn round(&mut self, jobs: &[Job]) -> Result<(), String> {
        let sweep = self.next_sweep(jobs.len());
        let changes = self.shared.disk.commit(jobs, sweep.as_ref()).map_err(|error| error.to_string())?;
        self.publish(&changes)?;
        self.shared.queue.published(jobs);
        if let Some(sweep) = sweep {
            self.history.sweep(*sweep.end());
        }
        Ok(())
    }

    /// The next changes to forget; at least as fast as new ones come.
    fn next_sweep(&self, writes: usize) -> Option<RangeInclusive<Revision>> {
        let swept = self.history.swept();
        let step = SWEEP_STEP.max(writes * 2) as Revision;
        (self.goal > swept).then(|| swept + 1..=self.goal.min(swept + step))
    }

    /// Sinks first, then readers.
    fn publish(&mut self, changes: &[Change]) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let sinks = self.shared.sinks.lock();
        let mut panicked = None;
        for (prefix, sink) in sinks.iter() {
            let deliver = || {
                if changes.iter().all(|change| change.key.starts_with(&**prefix)) {
                    sink.apply(changes);
                    return;
                }
                let of_prefix = |change: &&Change| change.key.starts_with(&**prefix);
                let matching: Vec<Change> = changes.iter().filter(of_prefix).cloned().collect();
                if !matching.is_empty() {
                    sink.apply(&matching);
                }
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(deliver)) {
                panicked = Some(format!("a watcher of {prefix:?} panicked: {}", panic_text(&*panic)));
            }
        }
        self.shared.state.apply(changes, &mut self.history);
        // A sink that missed a change must not go on as if it had not.
        panicked.map_or(Ok(()), Err)
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
