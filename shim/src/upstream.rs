//! Connections to the servers behind us. HTTP/1.1 and kept alive: kube-apiserver takes 100 streams on an HTTP/2 connection,
//! and a hundred watches must not hold up the rest.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use picoshift_machinery::followed::Followed;
use picoshift_machinery::tls::{self, ServingError};
use prometheus_client::metrics::counter::Counter;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::metrics::PoolMetrics;
use crate::request_body::RequestBody;

/// Time for TCP and TLS.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept: half of kube-apiserver's time, so that it never closes one that we begin to use.
const IDLE: Duration = Duration::from_secs(45);
/// Idle connections kept.
const IDLE_CONNECTIONS: usize = 256;

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

// In a box: each connection has room for 32 requests, of which it uses one.
type HttpClient = Client<Dialer, Box<RequestBody>>;

/// Connections to one server with one identity, or none. Nothing else shares them.
#[derive(Debug)]
pub struct Pool {
    authority: Authority,
    clients: Followed<HttpClient, PoolError>,
    /// Its counters.
    pub metrics: PoolMetrics,
}

/// A request on its way. Its body comes back when nobody has taken it.
#[derive(Debug)]
pub struct Outgoing {
    /// Method.
    pub method: Method,
    /// Path and query, as the client wrote them.
    pub target: PathAndQuery,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, `None` for none.
    pub body: Option<Incoming>,
    /// A body of our own.
    pub ready: Option<Bytes>,
    /// The client waits until the server wants the body.
    pub expects_continue: bool,
    /// Time until the answer must begin; `None` for ever.
    pub patience: Option<Duration>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server was not reached: it knows nothing of the request.
    #[error("{0}")]
    Unreachable(String),
    /// It went away with the request.
    #[error("{0}")]
    Broken(String),
    /// The client's own body broke off.
    #[error("the request's body broke off")]
    ClientBody,
    /// The answer did not begin in time.
    #[error("no answer in time")]
    TooSlow,
}

impl Pool {
    /// A pool; connections are opened when they are needed.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn new(server: Server, identity: Option<Identity>, metrics: PoolMetrics) -> Result<Self, PoolError> {
        let mut files = vec![server.ca_file.clone()];
        files.extend(identity.iter().flat_map(|own| [own.certificate_file.clone(), own.key_file.clone()]));
        let (authority, opened) = (server.authority.clone(), metrics.opened.clone());
        let make = move || client(&server, identity.as_ref(), &opened);
        Ok(Self { authority, clients: Followed::new("client certificate", files, make)?, metrics })
    }

    /// Looks at the files now. Requests that go on keep their connections.
    pub fn look(&self) {
        self.clients.look();
    }

    /// Looks at the files every `period`, for ever.
    pub async fn keep_fresh(&self, period: Duration) {
        self.clients.keep_fresh(period).await;
    }

    /// Sends a request. What may be repeated, because it reads and has no body, is sent once more when the connection breaks
    /// before the answer.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send(&self, outgoing: &mut Outgoing) -> Result<Response<Incoming>, SendError> {
        let repeatable = outgoing.body.is_none()
            && matches!(outgoing.method, Method::GET | Method::HEAD)
            && !outgoing.headers.contains_key(http::header::UPGRADE);
        let first = self.try_send(outgoing).await;
        let result = match first {
            Err(SendError::Broken(_)) if repeatable => {
                self.metrics.retries.inc();
                self.try_send(outgoing).await
            }
            other => other,
        };
        if result.is_err() {
            self.metrics.failures.inc();
        }
        result
    }

    async fn try_send(&self, outgoing: &mut Outgoing) -> Result<Response<Incoming>, SendError> {
        let (mut body, lender) = match (outgoing.body.take(), &outgoing.ready) {
            (None, None) => (RequestBody::none(), None),
            (None, Some(ready)) => (RequestBody::ready(ready.clone()), None),
            (Some(body), _) => {
                let (body, lender) = RequestBody::lent(body);
                (body, Some(lender))
            }
        };
        let mut asked = None;
        if outgoing.expects_continue && lender.is_some() {
            let (waiting, notify) = body.after_continue();
            (body, asked) = (waiting, Some(notify));
        }
        let mut request = self.request(outgoing, Box::new(body))?;
        if let Some(asked) = asked {
            hyper::ext::on_informational(&mut request, move |answer| {
                if answer.status() == StatusCode::CONTINUE {
                    asked.notify_one();
                }
            });
        }
        let answer = self.clients.current().request(request);
        let answered = match outgoing.patience {
            None => answer.await,
            Some(patience) => match timeout(patience, answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(SendError::TooSlow),
            },
        };
        answered.map_err(|error| {
            outgoing.body = lender.and_then(|lender| lender.take_back());
            tracing::debug!(error = %chain(&error), "upstream");
            if error.is_connect() {
                return SendError::Unreachable(chain(&error));
            }
            if of_client(&error) { SendError::ClientBody } else { SendError::Broken(chain(&error)) }
        })
    }

    fn request(
        &self,
        outgoing: &Outgoing,
        body: Box<RequestBody>,
    ) -> Result<Request<Box<RequestBody>>, SendError> {
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(self.authority.clone())
            .path_and_query(outgoing.target.clone())
            .build()
            .map_err(|error| SendError::Unreachable(error.to_string()))?;
        let mut request = Request::new(body);
        *request.method_mut() = outgoing.method.clone();
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&outgoing.headers);
        Ok(request)
    }
}

/// An error with what it comes from.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// Whether it was the client whose body could not be read.
fn of_client(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if current.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_user) {
            return true;
        }
        next = current.source();
    }
    false
}

fn client(server: &Server, identity: Option<&Identity>, opened: &Counter) -> Result<HttpClient, PoolError> {
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
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let (chain, key) = tls::read_pair(&own.certificate_file, &own.key_file)?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    let name = ServerName::try_from(server.name.clone())?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
        .enable_http1()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .set_host(false)
        .build(Dialer { https, opened: opened.clone() }))
}

/// Opens connections in time, and counts them.
#[derive(Clone, Debug)]
struct Dialer {
    https: HttpsConnector<HttpConnector>,
    opened: Counter,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

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

/// The pools of the shim.
#[derive(Clone, Debug)]
pub struct Pools {
    /// To kube-apiserver, without a certificate.
    pub plain: Arc<Pool>,
    /// To kube-apiserver, as the front proxy.
    pub fronted: Arc<Pool>,
    /// To our API server, as the front proxy.
    pub ours: Option<Arc<Pool>>,
}

impl Pools {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Pool>> {
        [&self.plain, &self.fronted].into_iter().chain(&self.ours)
    }
}
