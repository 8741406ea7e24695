//! The accept loop: TCP, TLS, then HTTP/1.1 or HTTP/2, with limits, and a graceful end.
//!
//! In: connections. Out: calls of a [`Service`], each with the state that the service made for the connection.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::activity::Activity;
use self::framing::Inspected;
use self::stall::Stalling;
use crate::body::Body;
use crate::drain::Drain;
use crate::peer::{Peer, PeerCertificate};
use crate::plain;

mod activity;
mod framing;
mod stall;

/// Limits of a listener. `Default` gives the ones to use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; more wait in the kernel's queue.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// HTTP/1: time until the headers of a request are there, counted from the end of the one before. It ends idle
    /// connections too, so it is longer than the 90 s for which common clients keep theirs: they close first.
    pub headers: Duration,
    /// HTTP/1: header lines of a request. The aggregator sends one per group.
    pub header_lines: usize,
    /// Bytes of a request's headers.
    pub header_list: u32,
    /// HTTP/2: requests at a time on one connection. A watch holds one for minutes. As many may be reset before they
    /// have begun: a front proxy passes on what its clients do, and all of them pay when its connection is ended.
    pub streams: u32,
    /// HTTP/2: bytes of a request's body that are taken before somebody reads them. A connection takes as many for each
    /// of its requests, so that bodies nobody reads yet hold up no other.
    pub body_window: u32,
    /// The end of a connection whose client takes nothing of what is written to it for this long.
    pub write: Duration,
    /// HTTP/2: the end of a connection on which nothing has gone on for this long, as upstream's. HTTP/1 has
    /// [`Limits::headers`].
    pub idle: Duration,
    /// HTTP/2: a ping after this long without a frame.
    pub ping_after: Duration,
    /// HTTP/2: the end of a connection whose ping is not answered for this long.
    pub ping_timeout: Duration,
    /// Time that requests have to finish once the drain has started.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(120),
            header_lines: 1000,
            header_list: 256 * 1024,
            streams: 1000,
            body_window: 64 * 1024,
            write: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            ping_after: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
            drain: Duration::from_secs(20),
        }
    }
}

impl Limits {
    /// Bytes of bodies that one connection takes before somebody reads them.
    fn connection_window(&self) -> u32 {
        // The most that the protocol knows.
        const MOST: u32 = i32::MAX as u32;
        self.body_window.saturating_mul(self.streams).min(MOST)
    }
}

/// What the body of an answer can be. One that fails ends the stream, or the connection, uncleanly: the client sees that
/// something is missing.
pub trait AnswerBody:
    hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
    + From<Body>
    + Send
    + Unpin
    + 'static
{
}

impl<B> AnswerBody for B where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + From<Body>
        + Send
        + Unpin
        + 'static
{
}

/// A connection's place among those that are counted, in the extensions of its HTTP/1 requests: who takes a connection over
/// (an upgrade) holds it until the end.
#[derive(Clone, Debug)]
pub struct Place(#[expect(dead_code, reason = "held, not read")] Arc<OwnedSemaphorePermit>);

/// What answers the requests of a listener.
pub trait Service<B: AnswerBody = Body>: Send + Sync + 'static {
    /// What the service knows about one connection.
    type Connection: Send + Sync + 'static;

    /// A connection is there.
    fn connected(&self, peer: Peer) -> Self::Connection;

    /// Answers one request.
    fn call(
        self: Arc<Self>,
        connection: Arc<Self::Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<B>> + Send;
}

/// A bound TLS listener.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    limits: Limits,
}

impl Listener {
    /// Binds; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn bind(address: SocketAddr, tls: Arc<ServerConfig>, limits: Limits) -> io::Result<Self> {
        let tcp = TcpListener::bind(address).await?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address, acceptor: TlsAcceptor::from(tls), limits })
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `drain` starts; then stops accepting, tells clients to go away, lets requests finish within
    /// [`Limits::drain`], cuts the rest and returns.
    pub async fn serve<B: AnswerBody, S: Service<B>>(self, service: Arc<S>, drain: Drain) {
        let Self { tcp, acceptor, limits, .. } = self;
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let permits = Arc::new(Semaphore::new(limits.connections));
        {
            let mut draining = pin!(drain.wait());
            loop {
                let (stream, address, permit) = tokio::select! {
                    biased;
                    () = &mut draining => break,
                    accepted = accept(&tcp, &permits) => match accepted {
                        Some(accepted) => accepted,
                        None => break,
                    },
                };
                let connection =
                    Accepted { address, limits, drain: drain.clone(), place: Place(Arc::new(permit)) };
                let (acceptor, service, cut) = (acceptor.clone(), Arc::clone(&service), cut.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = connection.serve(stream, acceptor, service) => {}
                        () = cut.cancelled() => {}
                    }
                });
            }
        }
        drop(tcp);
        connections.close();
        if timeout(limits.drain, connections.wait()).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "cutting connections that did not finish in time"
            );
            cut.cancel();
            connections.wait().await;
        }
    }
}

/// The next connection; `None` never comes in practice (the semaphore is not closed).
async fn accept(
    tcp: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    let mut pause = Duration::from_millis(5);
    loop {
        match tcp.accept().await {
            Ok((stream, address)) => return Some((stream, address, permit)),
            Err(error) if is_the_peers(&error) => {}
            // Out of file descriptors or memory: wait for connections to end instead of spinning.
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Serves one HTTP/1 connection that needs no handshake, within the usual limits and until it ends: what a listener does with
/// bytes of strangers, for who has the bytes already.
///
/// # Errors
/// Why it ended before its time.
pub async fn serve_stream<B: AnswerBody, S: Service<B>>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    address: SocketAddr,
    service: Arc<S>,
) -> hyper::Result<()> {
    let Ok(permit) = Arc::new(Semaphore::new(1)).try_acquire_owned() else { return Ok(()) };
    let place = Place(Arc::new(permit));
    let state = Arc::new(service.connected(Peer { address, certificate: None }));
    let connection = Accepted { address, limits: Limits::default(), drain: Drain::new(), place };
    connection.serve_http1(stream, service, state).await
}

struct Accepted {
    address: SocketAddr,
    limits: Limits,
    drain: Drain,
    place: Place,
}

impl Accepted {
    async fn serve<B: AnswerBody, S: Service<B>>(
        self,
        stream: TcpStream,
        acceptor: TlsAcceptor,
        service: Arc<S>,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        // What is over, or is not the protocol, shall hold no memory while the connection lasts: hence the boxes.
        let handshake = Box::pin(timeout(self.limits.handshake, acceptor.accept(stream)));
        let stream = tokio::select! {
            done = handshake => match done {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    tracing::debug!(peer = %self.address, %error, "TLS handshake");
                    return;
                }
                Err(_) => {
                    tracing::debug!(peer = %self.address, "TLS handshake took too long");
                    return;
                }
            },
            () = self.drain.wait() => return,
        };
        let (_, tls) = stream.get_ref();
        let is_http2 = tls.alpn_protocol() == Some(b"h2");
        let certificate = tls.peer_certificates().map(<[_]>::to_vec).and_then(PeerCertificate::new);
        let connection = Arc::new(service.connected(Peer { address: self.address, certificate }));
        let stream = Stalling::new(stream, self.limits.write);
        let result = if is_http2 {
            Box::pin(self.serve_http2(stream, service, connection)).await
        } else {
            Box::pin(self.serve_http1(stream, service, connection)).await
        };
        if let Err(error) = result {
            tracing::debug!(peer = %self.address, %error, "connection ended");
        }
    }

    async fn serve_http2<B: AnswerBody, S: Service<B>>(
        &self,
        stream: Stalling<TlsStream<TcpStream>>,
        service: Arc<S>,
        state: Arc<S::Connection>,
    ) -> hyper::Result<()> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams)
            .max_pending_accept_reset_streams(usize::try_from(self.limits.streams).ok())
            .initial_stream_window_size(self.limits.body_window)
            .initial_connection_window_size(self.limits.connection_window())
            .max_header_list_size(self.limits.header_list)
            .keep_alive_interval(self.limits.ping_after)
            .keep_alive_timeout(self.limits.ping_timeout);
        let activity = Activity::new();
        let begins = activity.clone();
        let answer = service_fn(move |request| {
            let (service, state) = (Arc::clone(&service), Arc::clone(&state));
            let running = begins.begin();
            async move { Ok::<_, Infallible>(running.until_sent(service.call(state, request).await)) }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
        tokio::select! {
            result = connection.as_mut() => return result,
            () = self.drain.wait() => connection.as_mut().graceful_shutdown(),
            () = activity.idle(self.limits.idle) => connection.as_mut().graceful_shutdown(),
        }
        // A client that does not even begin, or end, the protocol is not waited for.
        tokio::select! {
            result = connection.as_mut() => result,
            () = activity.idle(self.limits.idle.min(self.limits.ping_timeout)) => Ok(()),
        }
    }

    async fn serve_http1<B: AnswerBody, S: Service<B>>(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        service: Arc<S>,
        state: Arc<S::Connection>,
    ) -> hyper::Result<()> {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_headers(self.limits.header_lines)
            .max_header_size(usize::try_from(self.limits.header_list).unwrap_or(usize::MAX));
        let (stream, verdict) = Inspected::new(stream);
        let place = self.place.clone();
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let (service, state) = (Arc::clone(&service), Arc::clone(&state));
            let refused = verdict.refuses_next();
            if !refused && request.headers().contains_key(UPGRADE) {
                request.extensions_mut().insert(place.clone());
            }
            async move {
                if refused {
                    return Ok::<_, Infallible>(bad_request().map(B::from));
                }
                Ok(service.call(state, request).await)
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), answer).with_upgrades();
        let mut connection = pin!(connection);
        tokio::select! {
            result = connection.as_mut() => return result,
            () = self.drain.wait() => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }
}

/// 400 for a request that has no single meaning, in the words of Go's server, which ends the connection.
fn bad_request() -> Response<Body> {
    let mut response = plain::text(StatusCode::BAD_REQUEST, "400 Bad Request");
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests;
