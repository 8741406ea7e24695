//! How long to wait before something is tried again.

use std::time::Duration;

/// Pauses that double with every failure in a row.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// After so many failures in a row nothing is tried again by itself.
    pub attempts: u32,
}

impl Backoff {
    /// The pause after so many failures in a row; `None` when there is to be no further try.
    #[must_use]
    pub fn pause(&self, failures: u32) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(doubled).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_then_there_are_no_more() {
        let seconds = Duration::from_secs;
        let backoff = Backoff { first: seconds(1), longest: seconds(5), attempts: 5 };
        let pauses: Vec<_> = (1..=5).map(|failures| backoff.pause(failures)).collect();
        assert_eq!(pauses, [Some(seconds(1)), Some(seconds(2)), Some(seconds(4)), Some(seconds(5)), None]);
        let endless = Backoff { attempts: u32::MAX, ..backoff };
        assert_eq!(endless.pause(1_000_000), Some(seconds(5)));
    }
}
