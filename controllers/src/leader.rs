//! Leader election by a Lease: of several processes one works, and another takes over when it ends or falls silent.
//!
//! Nobody's clock is believed. Whether a holder has fallen silent is measured from when its last renewal was *seen*, on
//! this machine's monotonic clock; times in the Lease are for people. A leader that cannot renew stops working before
//! anybody else may begin: [`Timing::renew_deadline`] is shorter than [`Timing::lease`] and counts from before the last
//! renewal was sent. Every write names the resourceVersion that was seen, so of two candidates one wins.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;
use picoshift_machinery::drain::Drain;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub mod lease;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A holder that has not renewed for this long has lost it.
    pub lease: Duration,
    /// A leader that could not renew for this long stops; less than `lease`.
    pub renew_deadline: Duration,
    /// The pause between two renewals, and after a failed write.
    pub retry: Duration,
}

/// Why a Lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else has written it.
    #[error("somebody else has written the Lease")]
    Conflict,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Where the Lease is kept.
#[async_trait]
pub trait Leases: Send + Sync {
    /// The Lease as it is, and as it becomes; `None` while there is none. Ends never.
    fn watch(&self) -> BoxStream<'static, Option<Lease>>;
    /// The Lease as it is.
    async fn get(&self) -> Result<Option<Lease>, LeaseError>;
    /// Creates it; a Conflict when there is one.
    async fn create(&self, lease: &Lease) -> Result<Lease, LeaseError>;
    /// Replaces the one with the resourceVersion of `lease`; a Conflict when it has another.
    async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError>;
}

/// One candidate.
pub struct Elector<L> {
    leases: L,
    identity: String,
    timing: Timing,
    /// The time for people.
    clock: fn() -> Timestamp,
}

/// The lease, while it is ours.
#[derive(Debug)]
pub struct Held {
    lease: Lease,
    /// When the last renewal that went well was begun.
    renewed: Instant,
}

impl<L: Leases> Elector<L> {
    /// A candidate; `identity` is nobody else's.
    #[must_use]
    pub fn new(leases: L, identity: String, timing: Timing, clock: fn() -> Timestamp) -> Self {
        Self { leases, identity, timing, clock }
    }

    /// Waits until this candidate leads; `None` when `stop` came first.
    pub async fn acquire(&self, stop: &Drain) -> Option<Held> {
        tokio::select! {
            biased;
            () = stop.wait() => None,
            held = self.campaign() => Some(held),
        }
    }

    async fn campaign(&self) -> Held {
        let mut changes = self.leases.watch();
        let mut current = None;
        // Until the Lease has been seen there is nothing to try.
        let mut free_at: Option<Instant> = None;
        let mut said = None;
        loop {
            let due = async {
                match free_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(lease) = changes.next() => {
                    let holder = lease.as_ref().and_then(holder).map(ToOwned::to_owned);
                    free_at = Some(Instant::now() + self.patience(lease.as_ref()));
                    current = lease;
                    if holder != said {
                        tracing::info!(holder = holder.as_deref().unwrap_or("nobody"), "the lease is held");
                        said = holder;
                    }
                }
                () = due => match self.take(current.as_ref()).await {
                    Ok(held) => return held,
                    // The watch will tell what somebody else wrote; if it is slow, the pause keeps us from asking again at once.
                    Err(LeaseError::Conflict) => free_at = Some(Instant::now() + self.timing.retry),
                    Err(LeaseError::Failed(error)) => {
                        tracing::warn!(%error, "cannot take the lease");
                        free_at = Some(Instant::now() + self.timing.retry);
                    }
                },
            }
        }
    }

    /// How long whoever holds the lease may stay silent from now on.
    fn patience(&self, lease: Option<&Lease>) -> Duration {
        let Some(lease) = lease else { return Duration::ZERO };
        match holder(lease) {
            None => Duration::ZERO,
            Some(name) if name == self.identity => Duration::ZERO,
            Some(_) => {
                let said = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
                let said = said.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
                said.unwrap_or(self.timing.lease)
            }
        }
    }

    async fn take(&self, current: Option<&Lease>) -> Result<Held, LeaseError> {
        let begun = Instant::now();
        let now = MicroTime((self.clock)());
        let before = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let same = before.holder_identity.as_deref() == Some(self.identity.as_str());
        let transitions = before.lease_transitions.unwrap_or(0);
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.timing.lease.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: before.acquire_time.clone().filter(|_| same).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: match current {
                Some(_) if !same => Some(transitions.saturating_add(1)),
                _ => Some(transitions),
            },
            ..before
        };
        let lease = Lease { spec: Some(spec), ..current.cloned().unwrap_or_default() };
        let lease = match current {
            Some(_) => self.leases.replace(&lease).await?,
            None => self.leases.create(&lease).await?,
        };
        tracing::info!(identity = self.identity, "leading");
        Ok(Held { lease, renewed: begun })
    }

    /// Renews the lease again and again; returns when it is lost.
    pub async fn hold(&self, held: &mut Held) {
        loop {
            let deadline = held.renewed + self.timing.renew_deadline;
            if timeout_at(deadline, sleep(self.timing.retry)).await.is_err() {
                break;
            }
            match timeout_at(deadline, self.renew(held)).await {
                Ok(Ok(())) => {}
                Ok(Err(LeaseError::Conflict)) => {
                    tracing::error!("the lease has another holder");
                    return;
                }
                Ok(Err(LeaseError::Failed(error))) => tracing::warn!(%error, "cannot renew the lease"),
                Err(_) => break,
            }
        }
        tracing::error!("the lease could not be renewed in time");
    }

    /// A Conflict says that somebody else holds it; one that somebody only wrote to is renewed all the same.
    async fn renew(&self, held: &mut Held) -> Result<(), LeaseError> {
        let begun = Instant::now();
        if let Some(spec) = &mut held.lease.spec {
            spec.renew_time = Some(MicroTime((self.clock)()));
        }
        match self.leases.replace(&held.lease).await {
            Ok(lease) => {
                *held = Held { lease, renewed: begun };
                Ok(())
            }
            Err(LeaseError::Conflict) => {
                let Some(lease) = self.leases.get().await? else { return Err(LeaseError::Conflict) };
                if holder(&lease) != Some(self.identity.as_str()) {
                    return Err(LeaseError::Conflict);
                }
                // The next turn writes it; this one has not.
                held.lease = lease;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the lease back, so that others need not wait. A failure costs only their patience.
    pub async fn release(&self, mut held: Held) {
        if let Some(spec) = &mut held.lease.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime((self.clock)()));
        }
        match timeout_at(Instant::now() + self.timing.retry, self.leases.replace(&held.lease)).await {
            Ok(Ok(_)) => tracing::info!("the lease is given back"),
            Ok(Err(error)) => tracing::warn!(%error, "cannot give the lease back"),
            Err(_) => tracing::warn!("cannot give the lease back in time"),
        }
    }
}

impl Held {
    /// The resourceVersion of the Lease as last written.
    #[must_use]
    pub fn resource_version(&self) -> Option<String> {
        self.lease.resource_version()
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
