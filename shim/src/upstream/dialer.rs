//! How a server behind us is reached and known, and who we say we are.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use picoshift_machinery::tls::{self, ServingError};
use prometheus_client::metrics::counter::Counter;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time for TCP and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// How often the system asks whether an idle peer is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Why there is no client of a server.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Its authorities cannot be read.
    #[error("cannot read authorities from {}: {message}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Our certificate cannot be read.
    #[error(transparent)]
    Certificate(#[from] ServingError),
    /// Certificate and key are of no use.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The name is none.
    #[error("the server's name: {0}")]
    Name(#[from] InvalidDnsNameError),
}

/// Where a server is and how to know it.
#[derive(Clone, Debug)]
pub struct Server {
    /// Host and port.
    pub authority: Authority,
    /// The name in its certificate.
    pub name: String,
    /// File with its authorities.
    pub ca_file: PathBuf,
}

/// Files of a client certificate and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate_file: PathBuf,
    /// The key.
    pub key_file: PathBuf,
}

/// Which protocols are offered to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Http1,
    Http2,
}

/// Opens connections in time, and counts them.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    https: HttpsConnector<HttpConnector>,
    opened: Counter,
}

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Dialer {
    /// Reads the files.
    ///
    /// # Errors
    /// [`PoolError`].
    pub(super) fn new(
        server: &Server,
        identity: Option<&Identity>,
        opened: &Counter,
        offer: Offer,
    ) -> Result<Self, PoolError> {
        let name = ServerName::try_from(server.name.clone())?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config(server, identity)?)
            .https_only()
            .with_server_name_resolver(FixedServerNameResolver::new(name));
        let https = match offer {
            Offer::Http1 => builder.enable_http1().wrap_connector(tcp),
            Offer::Http2 => builder.enable_http2().wrap_connector(tcp),
        };
        Ok(Self { https, opened: opened.clone() })
    }
}

fn tls_config(server: &Server, identity: Option<&Identity>) -> Result<ClientConfig, PoolError> {
    let bad = |message: String| PoolError::Authorities { path: server.ca_file.clone(), message };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&server.ca_file).map_err(|e| bad(e.to_string()))? {
        roots.add(certificate.map_err(|e| bad(e.to_string()))?)?;
    }
    if roots.is_empty() {
        return Err(bad("no certificate in it".to_owned()));
    }
    let builder = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(own) => {
            let (chain, key) = tls::read_pair(&own.certificate_file, &own.key_file)?;
            Ok(builder.with_client_auth_cert(chain, key)?)
        }
    }
}

impl tower_service::Service<Uri> for Dialer {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (dial, opened) = (self.https.call(uri), self.opened.clone());
        Box::pin(async move {
            let stream = timeout(CONNECT, dial).await.map_err(|_| "i/o timeout")??;
            opened.inc();
            Ok(stream)
        })
    }
}
