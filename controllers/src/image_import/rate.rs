//! So many per minute, with a burst.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// A limit that many wait at. It keeps one number: when the next one would be due without any burst.
#[derive(Debug)]
pub struct RateLimit {
    /// Between two.
    every: Duration,
    /// How far ahead of that they may come.
    ahead: Duration,
    next: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// `per_minute`, of which `burst` may come at once.
    #[must_use]
    pub fn new(per_minute: u32, burst: u32) -> Self {
        let every = Duration::from_secs(60) / per_minute.max(1);
        Self { every, ahead: every.saturating_mul(burst.saturating_sub(1)), next: Mutex::new(None) }
    }

    /// Waits for a turn. Dropping the future gives the turn away.
    pub async fn turn(&self) {
        let at = {
            let mut next = self.next.lock();
            let now = Instant::now();
            let due = next.map_or(now, |next| next.max(now));
            *next = Some(due + self.every);
            due.checked_sub(self.ahead)
        };
        if let Some(at) = at {
            sleep_until(at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_then_one_by_one() {
        tokio::time::advance(Duration::from_secs(3600)).await;
        let limit = RateLimit::new(30, 3);
        let start = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..5 {
            limit.turn().await;
            turns.push(start.elapsed().as_secs());
        }
        assert_eq!(turns, [0, 0, 0, 2, 4]);
        sleep_until(Instant::now() + Duration::from_secs(60)).await;
        let start = Instant::now();
        for _ in 0..3 {
            limit.turn().await;
        }
        assert_eq!(start.elapsed().as_secs(), 0, "who waits may burst again");
    }
}
