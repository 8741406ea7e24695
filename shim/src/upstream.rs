//! Connections to the servers behind us. HTTP/1.1 and kept alive, one request at a time on each, so that nobody waits for another;
//! watches, which wait anyway, share some over HTTP/2 (`shared`).

mod dialer;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use picoshift_machinery::followed::Followed;
use tokio::time::timeout;

use self::dialer::{Dialer, Offer};
pub use self::dialer::{Identity, PoolError, Server};
pub use self::shared::Seat;
use self::shared::{Shared, SharedError};
use crate::metrics::PoolMetrics;
use crate::request_body::RequestBody;

/// How long an idle connection is kept: half of kube-apiserver's time, so that it never closes one that we begin to use.
const IDLE: Duration = Duration::from_secs(45);
/// Idle connections kept.
const IDLE_CONNECTIONS: usize = 256;

// In a box: each connection has room for 32 requests, of which it uses one.
type HttpClient = Client<Dialer, Box<RequestBody>>;

#[derive(Debug)]
struct Clients {
    single: HttpClient,
    shared: Shared,
}

/// Connections to one server with one identity, or none. Nothing else shares them.
#[derive(Debug)]
pub struct Pool {
    authority: Authority,
    clients: Followed<Clients, PoolError>,
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
    /// It is a watch and may share a connection.
    pub shares: bool,
}

/// An answer that begins.
#[derive(Debug)]
pub struct Answer {
    /// Head and body.
    pub response: Response<Incoming>,
    /// Its place on a shared connection, to be kept until the body has ended.
    pub seat: Option<Seat>,
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
        let (authority, counters) = (server.authority.clone(), metrics.clone());
        let make = move || clients(&server, identity.as_ref(), &counters);
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
    pub async fn send(&self, outgoing: &mut Outgoing) -> Result<Answer, SendError> {
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

    async fn try_send(&self, outgoing: &mut Outgoing) -> Result<Answer, SendError> {
        let clients = self.clients.current();
        if outgoing.shares
            && let Some((response, seat)) = clients.shared.send(&outgoing.target, &outgoing.headers).await?
        {
            return Ok(Answer { response, seat: Some(seat) });
        }
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
        let answer = clients.single.request(request);
        let answered = match outgoing.patience {
            None => answer.await,
            Some(patience) => match timeout(patience, answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(SendError::TooSlow),
            },
        };
        answered.map(|response| Answer { response, seat: None }).map_err(|error| {
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

impl From<SharedError> for SendError {
    fn from(error: SharedError) -> Self {
        tracing::debug!(error = %chain(&error), "upstream, shared");
        match error {
            SharedError::Dial(error) => Self::Unreachable(chain(&*error)),
            SharedError::Broken(error) => Self::Broken(chain(&error)),
        }
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

fn clients(
    server: &Server,
    identity: Option<&Identity>,
    metrics: &PoolMetrics,
) -> Result<Clients, PoolError> {
    let dialer = |offer| Dialer::new(server, identity, &metrics.opened, offer);
    let single = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .set_host(false)
        .build(dialer(Offer::Http1)?);
    Ok(Clients { single, shared: Shared::new(dialer(Offer::Http2)?, server.authority.clone()) })
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
