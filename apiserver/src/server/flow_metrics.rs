//! What is counted about requests that wait for their turn, under the names of kube-apiserver's flow control.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::in_flight::Refused;

/// A room of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Level {
    priority_level: &'static str,
}

impl Level {
    /// Reads.
    pub const READ_ONLY: Self = Self { priority_level: "readOnly" };
    /// Changes.
    pub const MUTATING: Self = Self { priority_level: "mutating" };
    /// What stays open.
    pub const LONG_RUNNING: Self = Self { priority_level: "longRunning" };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Turned {
    priority_level: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waited {
    priority_level: &'static str,
    execute: &'static str,
}

type Waits = Family<Waited, Histogram, fn() -> Histogram>;

/// The counters of all rooms.
pub struct FlowFamilies {
    queued: Family<Level, Gauge>,
    refused: Family<Turned, Counter>,
    waits: Waits,
}

/// The counters of one room.
pub struct FlowMetrics {
    level: Level,
    queued: Gauge,
    refused: Family<Turned, Counter>,
    waits: Waits,
}

impl FlowFamilies {
    /// Registers the counters.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let families = Self {
            queued: Family::default(),
            refused: Family::default(),
            waits: Family::new_with_constructor(waits),
        };
        registry.register(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Requests that wait for their turn",
            families.queued.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_rejected_requests",
            "Requests turned away with 429, by the reason",
            families.refused.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_request_wait_duration_seconds",
            "Time that requests waited for their turn, for those that had to",
            families.waits.clone(),
        );
        families
    }

    /// The counters of a room.
    #[must_use]
    pub fn of(&self, level: Level) -> FlowMetrics {
        FlowMetrics {
            level,
            queued: self.queued.get_or_create_owned(&level),
            refused: self.refused.clone(),
            waits: self.waits.clone(),
        }
    }
}

impl FlowMetrics {
    /// So many wait now.
    pub(super) fn waiting(&self, count: usize) {
        self.queued.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A request is turned away.
    pub(super) fn refused(&self, why: Refused) {
        let reason = match why {
            Refused::NoPlace => "concurrency-limit",
            Refused::QueueFull => "queue-full",
            Refused::TimedOut => "time-out",
        };
        let labels = Turned { priority_level: self.level.priority_level, reason };
        self.refused.get_or_create(&labels).inc();
    }

    /// A request waited, and got its turn or did not.
    pub(super) fn waited(&self, execute: bool, time: Duration) {
        let execute = if execute { "true" } else { "false" };
        let labels = Waited { priority_level: self.level.priority_level, execute };
        self.waits.get_or_create(&labels).observe(time.as_secs_f64());
    }
}

fn waits() -> Histogram {
    Histogram::new([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0])
}
