//! Waiting for something that the cluster does in its own time.
//!
//! A deadline here only bounds a failure: a test never passes because time went by.

use std::future::Future;
use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

/// How long one round waits before it looks again.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until `probe` gives a value.
///
/// `probe` answers `Ok(Ok(value))` when done and `Ok(Err(reason))` while not yet; an `Err` ends the wait at once.
///
/// # Errors
/// The last reason when `seconds` are over, or the probe's own error.
pub async fn eventually<T, F, P>(what: &str, seconds: u64, mut probe: F) -> anyhow::Result<T>
where
    F: FnMut() -> P,
    P: Future<Output = anyhow::Result<Result<T, String>>>,
{
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match probe().await? {
            Ok(value) => return Ok(value),
            Err(reason) if Instant::now() >= deadline => {
                bail!("{what}: not within {seconds} s: {reason}")
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
