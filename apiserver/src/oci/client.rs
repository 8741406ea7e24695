//! The client: what is trusted, how much of it there may be, and the two pools of connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::dial::{self, Dialer};

/// How much a registry may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time to open a connection.
    pub connect: Duration,
    /// Time of one request, from the first byte sent to the last one read.
    pub request: Duration,
    /// Bytes of a manifest.
    pub manifest: usize,
    /// Bytes of a configuration.
    pub config: usize,
    /// Bytes of one page of tags.
    pub tags: usize,
    /// Bytes of all pages of tags together.
    pub all_tags: usize,
    /// Pages of tags.
    pub tag_pages: usize,
    /// Requests that run at a time, over all registries.
    pub requests: usize,
    /// Requests of one registry that run at a time.
    pub requests_of_host: usize,
    /// Times that a request is tried again after a failure that may pass.
    pub retries: u32,
    /// Wait before the first retry; each further one waits twice as long.
    pub backoff: Duration,
    /// The longest wait that a registry may ask for by `Retry-After`; one that asks for more is given up.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            manifest: 4 << 20,
            config: 8 << 20,
            tags: 4 << 20,
            all_tags: 8 << 20,
            tag_pages: 100,
            requests: 32,
            requests_of_host: 4,
            retries: 2,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
        }
    }
}

/// Certificates that registries are believed by.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Whether the system's are among them.
    pub system: bool,
    /// Further ones.
    pub extra: Vec<CertificateDer<'static>>,
}

pub(super) type Connections = Pool<HttpsConnector<Dialer>, Empty<Bytes>>;

/// Hosts whose room is kept while nobody asks them.
const MAX_HOSTS: usize = 1_000;

/// The right to send one request, given back when this is dropped.
pub(super) struct Place<'a> {
    _of_host: OwnedSemaphorePermit,
    _of_all: SemaphorePermit<'a>,
}

/// A client of all registries; it keeps connections, and nothing of those who ask.
pub struct Client {
    pub(super) limits: Limits,
    room: Semaphore,
    /// The room of each registry that is asked, and of some that were.
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
    verified: Connections,
    unverified: Connections,
}

impl Client {
    /// A client.
    ///
    /// # Errors
    /// When TLS cannot be set up: a certificate that cannot be read.
    pub fn new(trust: &Trust, limits: Limits) -> Result<Arc<Self>, rustls::Error> {
        let mut roots = RootCertStore::empty();
        if trust.system {
            let found = rustls_native_certs::load_native_certs();
            for error in found.errors {
                tracing::warn!(%error, "a trusted certificate of the system cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
        }
        for certificate in &trust.extra {
            roots.add(certificate.clone())?;
        }
        let verified = pool(dial::verified(roots)?, limits.connect);
        let unverified = pool(dial::unverified()?, limits.connect);
        let room = Semaphore::new(limits.requests);
        Ok(Arc::new(Self { limits, room, hosts: Mutex::default(), verified, unverified }))
    }

    /// A place for one request to `host`, as soon as there is one. A registry that is slow keeps those waiting who want
    /// something of it, and nobody else.
    pub(super) async fn place(&self, host: &str) -> Option<Place<'_>> {
        let own = {
            let mut hosts = self.hosts.lock();
            if hosts.len() >= MAX_HOSTS {
                hosts.retain(|_, room| Arc::strong_count(room) > 1);
            }
            let new = || Arc::new(Semaphore::new(self.limits.requests_of_host));
            Arc::clone(hosts.entry(host.to_owned()).or_insert_with(new))
        };
        let of_host = own.acquire_owned().await.ok()?;
        Some(Place { _of_host: of_host, _of_all: self.room.acquire().await.ok()? })
    }

    /// The connections for requests of this kind: an unverified one never serves a request that wants a verified one.
    pub(super) fn connections(&self, insecure: bool) -> &Connections {
        if insecure { &self.unverified } else { &self.verified }
    }
}

fn pool(tls: rustls::ClientConfig, connect: Duration) -> Connections {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(Dialer { time: connect });
    Pool::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(15))
        .pool_max_idle_per_host(4)
        .build(connector)
}
