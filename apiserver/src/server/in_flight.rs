//! How many requests run at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;

use super::metrics::{Metrics, RequestKind};

/// What a request counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    ReadOnly,
    /// Changes.
    Mutating,
    /// Stays open: a watch, an import.
    LongRunning,
}

struct Room {
    taken: AtomicUsize,
    size: usize,
    gauge: Gauge,
}

/// Rooms for the kinds of requests.
pub struct InFlight {
    read_only: Arc<Room>,
    mutating: Arc<Room>,
    long_running: Arc<Room>,
}

/// A place in a room; it is free again when this is dropped.
pub struct Place {
    room: Arc<Room>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(1, Ordering::AcqRel);
        self.room.gauge.dec();
    }
}

impl InFlight {
    /// Rooms of these sizes.
    #[must_use]
    pub fn new(read_only: usize, mutating: usize, long_running: usize, metrics: &Metrics) -> Self {
        let room = |size, gauge| Arc::new(Room { taken: AtomicUsize::new(0), size, gauge });
        Self {
            read_only: room(read_only, metrics.in_flight(RequestKind::READ_ONLY)),
            mutating: room(mutating, metrics.in_flight(RequestKind::MUTATING)),
            long_running: room(long_running, metrics.long_running.clone()),
        }
    }

    /// Takes a place; `None` when the room is full, unless the request `must` get one.
    #[must_use]
    pub fn enter(&self, kind: Kind, must: bool) -> Option<Place> {
        let room = match kind {
            Kind::ReadOnly => &self.read_only,
            Kind::Mutating => &self.mutating,
            Kind::LongRunning => &self.long_running,
        };
        if room.taken.fetch_add(1, Ordering::AcqRel) >= room.size && !must {
            room.taken.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        room.gauge.inc();
        Some(Place { room: Arc::clone(room) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_room_takes_only_those_who_must() {
        let metrics = Metrics::new();
        let rooms = InFlight::new(1, 0, 1, &metrics);
        let first = rooms.enter(Kind::ReadOnly, false);
        assert!(first.is_some());
        assert!(rooms.enter(Kind::ReadOnly, false).is_none());
        assert!(rooms.enter(Kind::Mutating, false).is_none());
        let must = rooms.enter(Kind::ReadOnly, true);
        assert!(must.is_some());
        assert_eq!(metrics.in_flight(RequestKind::READ_ONLY).get(), 2);
        drop((first, must));
        assert_eq!(metrics.in_flight(RequestKind::READ_ONLY).get(), 0);
        assert!(rooms.enter(Kind::ReadOnly, false).is_some());
    }
}
