//! How many requests run at a time, and whose turn it is when too many want to.
//!
//! Reads, changes and what stays open have a room each. Nobody may hold more than `SHARE` times the places that are
//! left, so one user never takes a whole room and a newcomer finds a place at once, however long the others' requests
//! take. Who finds none waits in a queue of his own. A place that becomes free goes to the user who holds the fewest,
//! among equals to the one who was served longest ago. A queue and the time in it are bounded.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::flow_metrics::{FlowMetrics, Level};
use super::metrics::{Metrics, RequestKind};

/// How many times the free places one user may hold: three quarters of a room that nobody else uses.
const SHARE: usize = 3;
/// Requests of one user that wait: upstream deals a flow six queues of fifty.
const WAITING_PER_USER: usize = 300;
/// Requests that wait for a room: upstream has 128 queues of fifty.
const WAITING: usize = 6400;

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    ReadOnly,
    /// Changes.
    Mutating,
    /// Stays open: a watch, an import. It has a room, but no queue: there is no telling when a place becomes free.
    LongRunning,
}

/// Why a request is turned away; the names are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no place, and no waiting for one.
    NoPlace,
    /// Too many wait already.
    QueueFull,
    /// It waited as long as it may.
    TimedOut,
}

/// Users by the hash of their name: two that share one share a queue, and no more harm is done.
type Flow = u64;

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What one user has in a room.
#[derive(Default)]
struct User {
    running: usize,
    /// When he was served last; among waiting users who hold the same, the smallest is next.
    served: u64,
    waiting: VecDeque<(u64, oneshot::Sender<Place>)>,
}

#[derive(Default)]
struct State {
    taken: usize,
    waiting: usize,
    clock: u64,
    users: HashMap<Flow, User>,
    /// Users who wait: what they hold, when they were served, who they are.
    next: BTreeSet<(usize, u64, Flow)>,
}

struct Room {
    state: Mutex<State>,
    size: usize,
    queues: bool,
    gauge: Gauge,
    flow: FlowMetrics,
}

/// Rooms for the kinds of requests.
pub struct InFlight {
    read_only: Arc<Room>,
    mutating: Arc<Room>,
    long_running: Arc<Room>,
}

/// A place in a room; it is free again when this is dropped.
pub struct Place {
    room: Option<Arc<Room>>,
    flow: Flow,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            room.leave(self.flow);
        }
    }
}

/// A request that waits; it leaves the queue when this is dropped.
struct Waiting<'a> {
    room: &'a Room,
    flow: Flow,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.room.state.lock();
        state.change(self.flow, |user| user.waiting.retain(|(id, _)| *id != self.id));
        self.room.flow.waiting(state.waiting);
    }
}

impl State {
    /// Changes a user and keeps the order, and the count of those who wait, as they must be.
    fn change<T>(&mut self, flow: Flow, change: impl FnOnce(&mut User) -> T) -> T {
        let user = self.users.entry(flow).or_default();
        if !user.waiting.is_empty() {
            self.next.remove(&(user.running, user.served, flow));
        }
        let before = user.waiting.len();
        let result = change(user);
        let after = user.waiting.len();
        self.waiting = self.waiting + after - before;
        if after > 0 {
            self.next.insert((user.running, user.served, flow));
        } else if user.running == 0 {
            self.users.remove(&flow);
        }
        result
    }

    /// Whether a user who holds `running` places of `size` may take one more.
    fn fits(&self, running: usize, size: usize) -> bool {
        let free = size.saturating_sub(self.taken);
        free > 0 && running <= free.saturating_mul(SHARE)
    }

    /// A user takes a place.
    fn take(&mut self, flow: Flow) {
        self.taken += 1;
        self.clock += 1;
        let now = self.clock;
        self.change(flow, |user| {
            user.running += 1;
            user.served = now;
        });
    }
}

impl Room {
    /// A place at once, or a place in the queue.
    fn try_enter(
        self: &Arc<Self>,
        flow: Flow,
        must: bool,
    ) -> Result<Result<Place, (u64, oneshot::Receiver<Place>)>, Refused> {
        let mut state = self.state.lock();
        let (running, waiting) =
            state.users.get(&flow).map_or((0, 0), |user| (user.running, user.waiting.len()));
        if must || (waiting == 0 && state.fits(running, self.size)) {
            state.take(flow);
            self.gauge.inc();
            return Ok(Ok(self.place(flow)));
        }
        if !self.queues {
            return Err(Refused::NoPlace);
        }
        if waiting >= WAITING_PER_USER || state.waiting >= WAITING {
            return Err(Refused::QueueFull);
        }
        state.clock += 1;
        let id = state.clock;
        let (sender, receiver) = oneshot::channel();
        state.change(flow, |user| user.waiting.push_back((id, sender)));
        self.flow.waiting(state.waiting);
        Ok(Err((id, receiver)))
    }

    fn place(self: &Arc<Self>, flow: Flow) -> Place {
        Place { room: Some(Arc::clone(self)), flow }
    }

    async fn enter(self: &Arc<Self>, flow: Flow, must: bool, patience: Duration) -> Result<Place, Refused> {
        let (id, receiver) = match self.try_enter(flow, must)? {
            Ok(place) => return Ok(place),
            Err(queued) => queued,
        };
        let since = Instant::now();
        let waiting = Waiting { room: self, flow, id };
        let result = timeout(patience, receiver).await;
        drop(waiting);
        self.flow.waited(result.is_ok(), since.elapsed());
        match result {
            Ok(Ok(place)) => Ok(place),
            // The sender is dropped with its room only.
            Ok(Err(_)) => Err(Refused::NoPlace),
            Err(_) => Err(Refused::TimedOut),
        }
    }

    /// Frees a place and gives what is free to who is next.
    fn leave(self: &Arc<Self>, flow: Flow) {
        self.gauge.dec();
        {
            let mut state = self.state.lock();
            state.taken -= 1;
            state.change(flow, |user| user.running -= 1);
        }
        while let Some((flow, sender)) = self.grant() {
            // Given away outside the lock: the place of a request that has gone meanwhile comes back at once.
            if let Err(mut unwanted) = sender.send(self.place(flow)) {
                unwanted.room = None;
                self.gauge.dec();
                let mut state = self.state.lock();
                state.taken -= 1;
                state.change(flow, |user| user.running -= 1);
            }
        }
    }

    fn grant(&self) -> Option<(Flow, oneshot::Sender<Place>)> {
        let mut state = self.state.lock();
        let &(running, _, flow) = state.next.first()?;
        if !state.fits(running, self.size) {
            return None;
        }
        let (_, sender) = state.change(flow, |user| user.waiting.pop_front())?;
        state.take(flow);
        self.gauge.inc();
        self.flow.waiting(state.waiting);
        Some((flow, sender))
    }
}

impl InFlight {
    /// Rooms of these sizes.
    #[must_use]
    pub fn new(read_only: usize, mutating: usize, long_running: usize, metrics: &Metrics) -> Self {
        let room = |size, gauge, level| {
            Arc::new(Room {
                state: Mutex::default(),
                size,
                queues: level != Level::LONG_RUNNING,
                gauge,
                flow: metrics.flow(level),
            })
        };
        Self {
            read_only: room(read_only, metrics.in_flight(RequestKind::READ_ONLY), Level::READ_ONLY),
            mutating: room(mutating, metrics.in_flight(RequestKind::MUTATING), Level::MUTATING),
            long_running: room(long_running, metrics.long_running.clone(), Level::LONG_RUNNING),
        }
    }

    /// Takes a place for a user, waiting for it for at most `patience`. A request that `must` get one gets it at once.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn enter(
        &self,
        kind: Kind,
        user: &str,
        must: bool,
        patience: Duration,
    ) -> Result<Place, Refused> {
        let room = match kind {
            Kind::ReadOnly => &self.read_only,
            Kind::Mutating => &self.mutating,
            Kind::LongRunning => &self.long_running,
        };
        let entered = room.enter(HASHER.hash_one(user), must, patience).await;
        if let Err(why) = entered {
            room.flow.refused(why);
            return Err(why);
        }
        entered
    }
}

#[cfg(test)]
mod tests;
