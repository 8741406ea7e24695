//! The HTTP server: every request's way from the socket to its endpoint, in `server/chain.rs`, and what goes with it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::{Limits, Listener};
use picoshift_machinery::readiness::{Checks, Latch, Shown};
use picoshift_machinery::tls::{ServingCertificate, server_config};

use crate::audit::Audit;
use crate::authn::Authenticator;
use crate::authn::memberships::Memberships;
use crate::authz::CachedAuthorizer;

pub mod chain;
pub mod debug;
pub mod endpoints;
pub mod flow_metrics;
pub mod in_flight;
pub mod long_running;
pub mod metrics;
mod own_paths;
pub mod query;
pub mod respond;
mod response_headers;
mod seen;
pub mod version;
mod webhooks;

pub use endpoints::{Endpoint, Endpoints};
use in_flight::InFlight;
use metrics::Metrics;

/// How often the files of the serving certificate are looked at.
const CERTIFICATE_PERIOD: Duration = Duration::from_secs(10);

/// Settings of a server.
pub struct ServerConfig {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The certificate to serve.
    pub certificate: Arc<ServingCertificate>,
    /// Limits of the listener.
    pub limits: Limits,
    /// Reading requests at a time.
    pub max_in_flight: usize,
    /// Changing requests at a time.
    pub max_mutating_in_flight: usize,
    /// Watches at a time.
    pub max_watches: usize,
    /// Time that a request has, watches excepted.
    pub request_time: Duration,
}

impl ServerConfig {
    /// The usual settings.
    #[must_use]
    pub fn new(address: SocketAddr, certificate: Arc<ServingCertificate>) -> Self {
        Self {
            address,
            certificate,
            limits: Limits::default(),
            max_in_flight: 3000,
            max_mutating_in_flight: 1500,
            max_watches: 10_000,
            request_time: Duration::from_secs(60),
        }
    }
}

/// What a server is made of.
pub struct Parts {
    /// Who asks.
    pub authenticator: Authenticator,
    /// Which groups they are in.
    pub memberships: Arc<Memberships>,
    /// Who may.
    pub authorizer: Arc<CachedAuthorizer>,
    /// What answers.
    pub endpoints: Endpoints,
    /// What the probes ask.
    pub checks: Checks,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is recorded of requests, if anything.
    pub audit: Option<Arc<Audit>>,
}

/// Why a server did not come up.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server that is bound and not yet serving.
pub struct Server {
    listener: Listener,
    chain: Arc<chain::Chain>,
    certificate: Arc<ServingCertificate>,
    drain: Drain,
    accepting: Latch,
}

impl Server {
    /// Binds. `drain` ends the server when it starts.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn bind(config: ServerConfig, parts: Parts, drain: Drain) -> Result<Self, ServerError> {
        let tls = server_config(Arc::clone(&config.certificate) as _)?;
        let address = config.address;
        let listener = Listener::bind(address, tls, config.limits)
            .await
            .map_err(|source| ServerError::Bind { address, source })?;
        let accepting = parts.checks.latch("shutdown", Shown::OnlyReady, "process is shutting down");
        accepting.release();
        let in_flight = InFlight::new(
            config.max_in_flight,
            config.max_mutating_in_flight,
            config.max_watches,
            &parts.metrics,
        );
        let chain = Arc::new(chain::Chain::new(parts, in_flight, config.request_time, drain.clone()));
        Ok(Self { listener, chain, certificate: config.certificate, drain, accepting })
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until the drain has run.
    pub async fn serve(self) {
        let Self { listener, chain, certificate, drain, accepting } = self;
        let fresh = async {
            tokio::select! {
                () = certificate.keep_fresh(CERTIFICATE_PERIOD) => {}
                () = drain.wait() => accepting.close(),
            }
        };
        tokio::join!(listener.serve(chain, drain.clone()), fresh);
    }
}

/// Binds, says where, and serves until the drain has run.
///
/// # Errors
/// [`ServerError`].
pub async fn run(config: ServerConfig, parts: Parts, drain: Drain) -> Result<(), ServerError> {
    let server = Server::bind(config, parts, drain).await?;
    tracing::info!(address = %server.address(), "serving");
    server.serve().await;
    tracing::info!("drained");
    Ok(())
}

#[cfg(test)]
mod tests;
