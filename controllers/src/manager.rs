//! Keeps the controllers running side by side: each in a task of its own, started anew with a pause when it ends by
//! itself or panics, and all of them only while this process leads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::readiness::{Checks, Shown};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::leader::{Elector, Leases};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::ready::Readiness;

/// Between two starts of a controller that fails.
const RESTART: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60), attempts: u32::MAX };
/// A controller that ran for this long has no earlier failures any more.
const STABLE: Duration = Duration::from_secs(300);
/// How long work that is under way may take once the process is to end.
pub const FINISH_WITHIN: Duration = Duration::from_secs(10);
/// What a controller misses between two starts.
const CONTROLLER: &str = "controller";

/// Why a controller ended.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a controller is given for one run.
#[derive(Clone)]
pub struct Run {
    /// From now on nothing new is begun, and the run ends when what is under way is done.
    pub stop: Drain,
    /// Where it says what it waits for.
    pub ready: Readiness,
    /// Where it counts.
    pub metrics: ControllerMetrics,
}

/// One controller.
#[async_trait]
pub trait Controller: Send + Sync + 'static {
    /// Its name in probes, counters and the log.
    fn name(&self) -> &'static str;

    /// Works until `run.stop`. Nothing that it remembers outlives the run; it may be cut at any await.
    ///
    /// # Errors
    /// What it cannot go on with; it is started anew after a pause.
    async fn run(&self, run: Run) -> Result<(), Failure>;
}

struct Supervised {
    controller: Arc<dyn Controller>,
    ready: Readiness,
    metrics: ControllerMetrics,
}

/// All controllers of the process.
pub struct Manager {
    supervised: Vec<Arc<Supervised>>,
}

impl Manager {
    /// Gives every controller its counters and a check of its own, `controller/NAME`, which passes while it is not to run.
    #[must_use]
    pub fn new(controllers: Vec<Arc<dyn Controller>>, checks: &Checks, metrics: &Metrics) -> Self {
        let supervised = controllers.into_iter().map(|controller| {
            let ready = Readiness::new();
            let asked = ready.clone();
            checks.add(format!("controller/{}", controller.name()), Shown::NotLive, move || asked.check());
            let metrics = metrics.of(controller.name());
            Arc::new(Supervised { controller, ready, metrics })
        });
        Self { supervised: supervised.collect() }
    }

    /// Leads whenever it can, and has the controllers work while it does; returns when `drain` has run.
    pub async fn run<L: Leases>(&self, elector: &Elector<L>, metrics: &Metrics, drain: &Drain) {
        while let Some(mut held) = elector.acquire(drain).await {
            metrics.leading.set(1);
            let still_held = tokio::select! {
                () = self.work(drain) => true,
                // Another may lead by now: whatever is under way is cut.
                () = elector.hold(&mut held) => false,
            };
            metrics.leading.set(0);
            if still_held {
                elector.release(held).await;
                return;
            }
        }
    }

    /// Has the controllers work until `drain`; what is under way then has [`FINISH_WITHIN`]. Dropping the future cuts all.
    pub async fn work(&self, drain: &Drain) {
        let mut tasks = JoinSet::new();
        let stop = Drain::new();
        for supervised in &self.supervised {
            let (supervised, stop) = (Arc::clone(supervised), stop.clone());
            tasks.spawn(async move { supervised.run(stop).await });
        }
        let _idle = Idle(&self.supervised);
        drain.wait().await;
        stop.start();
        let finished = async { while tasks.join_next().await.is_some() {} };
        if timeout(FINISH_WITHIN, finished).await.is_err() {
            tracing::warn!(controllers = tasks.len(), "cutting controllers that did not finish in time");
            tasks.shutdown().await;
        }
    }
}

/// When it is dropped, no controller is to run any more, and so nothing is missing.
struct Idle<'a>(&'a [Arc<Supervised>]);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        for supervised in self.0 {
            supervised.ready.clear();
        }
    }
}

impl Supervised {
    async fn run(&self, stop: Drain) {
        let name = self.controller.name();
        let mut failures = 0_u32;
        loop {
            self.ready.clear();
            let began = Instant::now();
            tracing::info!(controller = name, "starting");
            let run = Run { stop: stop.clone(), ready: self.ready.clone(), metrics: self.metrics.clone() };
            let ended = AssertUnwindSafe(self.controller.run(run)).catch_unwind().await;
            if stop.started() {
                return;
            }
            let why = match ended {
                Ok(Ok(())) => "it ended by itself".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => format!("it panicked: {}", message(&*panic)),
            };
            failures = if began.elapsed() >= STABLE { 1 } else { failures.saturating_add(1) };
            let pause = RESTART.pause(failures).unwrap_or(RESTART.longest);
            tracing::error!(controller = name, why, again_in = ?pause, "a controller has failed");
            self.metrics.restarts.inc();
            self.ready.clear();
            self.ready.missing(CONTROLLER, why);
            tokio::select! {
                () = stop.wait() => return,
                () = sleep(pause) => {}
            }
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "it said nothing",
    }
}

#[cfg(test)]
mod tests;
