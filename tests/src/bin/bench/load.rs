//! A closed loop of requests: so many workers, each with a connection of its own, each waiting for its answer.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::future::try_join_all;
use http::Request;
use http_body_util::Full;
use picoshift_tests::http::Http;

use crate::cpu::Servers;

/// What a round of requests took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    /// Time of each request, or of each delivery to a watcher.
    pub(crate) latencies: Vec<Duration>,
    /// How long the round lasted.
    pub(crate) elapsed: Duration,
    /// CPU of all server processes during it.
    pub(crate) cpu: Duration,
}

impl Round {
    /// Adds another round of the same.
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
        self.cpu += other.cpu;
    }

    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        count(&self.latencies) / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// CPU per request in milliseconds.
    pub(crate) fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1000.0 / count(&self.latencies).max(1.0)
    }

    /// The time that `share` of the requests stayed below, in milliseconds.
    pub(crate) fn percentile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let rank = (count(&sorted) * share).ceil().max(1.0);
        // Lossless: ranks are whole numbers far below 2^52.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank within the list")]
        let index = (rank as usize - 1).min(sorted.len().saturating_sub(1));
        sorted.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
fn count(latencies: &[Duration]) -> f64 {
    latencies.len() as f64
}

/// Measures what happens while `work` runs; it gives the latencies.
pub(crate) async fn measured<F>(servers: &Servers, work: F) -> anyhow::Result<Round>
where
    F: Future<Output = anyhow::Result<Vec<Duration>>>,
{
    let (cpu, start) = (servers.cpu()?, Instant::now());
    let latencies = work.await?;
    Ok(Round { latencies, elapsed: start.elapsed(), cpu: servers.cpu()?.saturating_sub(cpu) })
}

/// Sends requests by `clients` for `seconds`; `make` gives a client's request number N.
pub(crate) async fn closed_loop<M>(
    clients: &[Http],
    length: Duration,
    make: M,
) -> anyhow::Result<Vec<Duration>>
where
    M: Fn(&Http, usize) -> anyhow::Result<Request<Full<bytes::Bytes>>> + Sync,
{
    let end = Instant::now() + length;
    let workers = clients.iter().enumerate().map(|(worker, client)| {
        let make = &make;
        async move {
            let (mut latencies, mut number) = (Vec::new(), worker);
            while Instant::now() < end {
                let start = Instant::now();
                let answer = client.send(make(client, number)?).await?;
                ensure!(answer.status.is_success(), "answered {}: {}", answer.status, answer.text());
                latencies.push(start.elapsed());
                number += clients.len();
            }
            anyhow::Ok(latencies)
        }
    });
    Ok(try_join_all(workers).await?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(times: impl IntoIterator<Item = u64>) -> Round {
        let latencies = times.into_iter().map(Duration::from_millis).collect();
        Round { latencies, elapsed: Duration::from_secs(2), cpu: Duration::from_millis(500) }
    }

    #[test]
    fn rates_and_percentiles() {
        let mut round = round((1..=100).rev());
        assert!((round.rate() - 50.0).abs() < 1e-9);
        assert!((round.cpu_ms() - 5.0).abs() < 1e-9);
        assert!((round.percentile_ms(0.5) - 50.0).abs() < 1e-9);
        assert!((round.percentile_ms(0.99) - 99.0).abs() < 1e-9);
        round.add(self::round([1000]));
        assert!((round.percentile_ms(1.0) - 1000.0).abs() < 1e-9);
        assert!((round.elapsed.as_secs_f64() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_is_no_number_out_of_nowhere() {
        assert!(Round::default().percentile_ms(0.99).abs() < 1e-9);
        assert!(Round::default().cpu_ms().abs() < 1e-9);
    }
}
