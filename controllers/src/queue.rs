//! A controller's queue: each key once, at the time at which it is due, and never twice at the same time.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::hash::Hash;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use picoshift_machinery::drain::Drain;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::metrics::ControllerMetrics;

/// How work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be.
    Done,
    /// It is as it should be until then.
    Until(Instant),
    /// It failed, and may go well later.
    Retry,
}

/// Keys that wait. Nothing in it survives its controller: a controller that starts reads all objects anew.
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: Backoff,
    metrics: ControllerMetrics,
}

struct State<K> {
    order: BTreeMap<(Instant, u64), K>,
    waiting: HashMap<K, Place>,
    /// Keys that are worked on → when they became due once more meanwhile.
    running: HashMap<K, Option<Instant>>,
    failures: HashMap<K, u32>,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Place {
    at: (Instant, u64),
    /// The pause after a failure: news do not shorten it.
    paused: bool,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue; `backoff` is for keys that fail.
    #[must_use]
    pub fn new(backoff: Backoff, metrics: ControllerMetrics) -> Self {
        metrics.depth.set(0);
        let state = State {
            order: BTreeMap::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            failures: HashMap::new(),
            sequence: 0,
        };
        Self { state: Mutex::new(state), changed: Notify::new(), backoff, metrics }
    }

    /// `key` is due now, unless it pauses after a failure.
    pub fn add(&self, key: K) {
        let now = Instant::now();
        self.change(|state| {
            if let Some(again) = state.running.get_mut(&key) {
                *again = Some(now);
                return;
            }
            match state.waiting.get(&key) {
                Some(place) if place.paused || place.at.0 <= now => {}
                _ => state.place(key, now, false),
            }
        });
    }

    /// `key` is due at `at`, unless it is in the queue anyway.
    pub fn schedule(&self, key: K, at: Instant) {
        self.change(|state| {
            if !state.running.contains_key(&key) && !state.waiting.contains_key(&key) {
                state.place(key, at, false);
            }
        });
    }

    /// A key that waits is due at `at` instead.
    pub fn put_off(&self, key: &K, at: Instant) {
        self.change(|state| {
            if state.waiting.contains_key(key) {
                state.place(key.clone(), at, false);
            }
        });
    }

    /// Earlier failures of `key` say nothing any more: it does not pause.
    pub fn forgive(&self, key: &K) {
        self.change(|state| {
            state.failures.remove(key);
            if state.waiting.get(key).is_some_and(|place| place.paused) {
                state.take(key);
            }
        });
    }

    /// `key` is of no interest any more.
    pub fn remove(&self, key: &K) {
        self.change(|state| {
            state.failures.remove(key);
            state.take(key);
            if let Some(again) = state.running.get_mut(key) {
                *again = None;
            }
        });
    }

    /// Works on keys as they become due, `parallel` at a time, until `stop`; then those under way are finished.
    pub async fn work<F>(&self, parallel: usize, stop: &Drain, reconcile: impl Fn(K) -> F)
    where
        F: Future<Output = Outcome>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            let key = tokio::select! {
                biased;
                () = stop.wait() => break,
                Some(()) = running.next(), if !running.is_empty() => continue,
                key = self.next(), if running.len() < parallel => key,
            };
            let work = reconcile(key.clone());
            running.push(async move {
                let outcome = work.await;
                self.done(key, outcome);
            });
        }
        while running.next().await.is_some() {}
    }

    /// The next key that is due. Dropping the future loses none.
    async fn next(&self) -> K {
        loop {
            // Before the look, so that what is added after it is not missed.
            let changed = self.changed.notified();
            let due = match self.first_due() {
                Ok(key) => return key,
                Err(due) => due,
            };
            match due {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Takes the first key that is due, or says when one will be.
    fn first_due(&self) -> Result<K, Option<Instant>> {
        let mut state = self.state.lock();
        let Some((&(at, _), key)) = state.order.first_key_value() else { return Err(None) };
        if at > Instant::now() {
            return Err(Some(at));
        }
        let key = key.clone();
        state.take(&key);
        state.running.insert(key.clone(), None);
        self.count(&state);
        Ok(key)
    }

    fn done(&self, key: K, outcome: Outcome) {
        self.metrics.reconciles.inc();
        self.change(|state| {
            let again = state.running.remove(&key).flatten();
            match outcome {
                Outcome::Retry => {
                    self.metrics.errors.inc();
                    let failures = state.failures.entry(key.clone()).or_default();
                    *failures = failures.saturating_add(1);
                    match (self.backoff.pause(*failures), again) {
                        (Some(pause), _) => state.place(key, Instant::now() + pause, true),
                        // What came during the last try is one try more, as what comes after it.
                        (None, Some(at)) => state.place(key, at, false),
                        (None, None) => {}
                    }
                    return;
                }
                Outcome::Done | Outcome::Until(_) => state.failures.remove(&key),
            };
            let until = if let Outcome::Until(at) = outcome { Some(at) } else { None };
            if let Some(at) = [again, until].into_iter().flatten().min() {
                state.place(key, at, false);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State<K>)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.count(&state);
        drop(state);
        self.changed.notify_one();
    }

    fn count(&self, state: &State<K>) {
        self.metrics.depth.set(i64::try_from(state.waiting.len()).unwrap_or(i64::MAX));
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn place(&mut self, key: K, at: Instant, paused: bool) {
        self.take(&key);
        self.sequence += 1;
        let at = (at, self.sequence);
        self.order.insert(at, key.clone());
        self.waiting.insert(key, Place { at, paused });
    }

    fn take(&mut self, key: &K) {
        if let Some(place) = self.waiting.remove(key) {
            self.order.remove(&place.at);
        }
    }
}

#[cfg(test)]
mod tests;
