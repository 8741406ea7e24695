//! Connections that many watches share, over HTTP/2: a watch of its own on HTTP/1.1 would cost its buffers of HTTP and TLS, 28 KB.
//! Watches alone, and so few on a connection, that none waits for a stream (kube-apiserver gives 100) and one whose client
//! does not read holds nobody up: the window of the connection has room for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tower_service::Service as _;

use super::dialer::{BoxError, Dialer};

/// Watches on a connection.
const WATCHES: usize = 64;
/// Bytes that wait for the client of one watch.
const STREAM_WINDOW: u32 = 64 * 1024;
/// Never what limits: the library ends a connection on which frames of less than 256 bytes wait whose overhead is half of this.
/// It suffices for all watches to be stalled with events of 32 bytes, and there are none so short.
const CONNECTION_WINDOW: u32 = WATCHES as u32 * 1024 * 1024;
/// Bytes of an answer's head.
const LONGEST_HEAD: u32 = 256 * 1024;
/// A server that says nothing for this long is asked whether it is there, and has as long to say so.
const SILENCE: Duration = Duration::from_secs(30);

/// The connections to one server, with one identity or none.
#[derive(Debug)]
pub(super) struct Shared {
    dialer: Dialer,
    server: Uri,
    lines: Arc<Mutex<Vec<Line>>>,
    /// One opens a connection, and the others wait for what comes of it: when the last attempt failed, and why.
    opening: tokio::sync::Mutex<Option<(Instant, String)>>,
    /// The server does not speak HTTP/2.
    refused: AtomicBool,
}

#[derive(Debug)]
struct Line {
    sender: SendRequest<Empty<Bytes>>,
    /// One for each watch, and one more.
    seats: Arc<()>,
}

/// A watch's place on a connection; it is free again when this is dropped.
#[derive(Debug)]
pub struct Seat {
    seat: Option<Arc<()>>,
    lines: Arc<Mutex<Vec<Line>>>,
}

/// Why a watch got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SharedError {
    /// No connection.
    #[error("{0}")]
    Dial(BoxError),
    /// The connection ended.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
}

impl Line {
    fn watches(&self) -> usize {
        Arc::strong_count(&self.seats) - 1
    }
}

impl Drop for Seat {
    /// The last one on a connection closes it, if there is another.
    fn drop(&mut self) {
        self.seat = None;
        let mut lines = self.lines.lock();
        let mut spare = false;
        lines.retain(|line| {
            let idle = line.watches() == 0;
            let keep = !(line.sender.is_closed() || idle && spare);
            spare |= keep && idle;
            keep
        });
    }
}

impl Shared {
    pub(super) fn new(dialer: Dialer, authority: Authority) -> Self {
        let mut server = http::uri::Parts::default();
        (server.scheme, server.authority) = (Some(Scheme::HTTPS), Some(authority));
        server.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        Self {
            dialer,
            server: Uri::from_parts(server).unwrap_or_default(),
            lines: Arc::default(),
            opening: tokio::sync::Mutex::default(),
            refused: AtomicBool::new(false),
        }
    }

    /// Sends a watch, if it can go this way. `None`: take a connection of its own for it.
    ///
    /// # Errors
    /// [`SharedError`].
    pub(super) async fn send(
        &self,
        target: &http::uri::PathAndQuery,
        headers: &HeaderMap,
    ) -> Result<Option<(Response<Incoming>, Seat)>, SharedError> {
        let Some(request) = request(target, headers) else { return Ok(None) };
        let Some((mut sender, seat)) = self.seat().await.map_err(SharedError::Dial)? else { return Ok(None) };
        sender.ready().await?;
        Ok(Some((sender.send_request(request).await?, seat)))
    }

    async fn seat(&self) -> Result<Option<(SendRequest<Empty<Bytes>>, Seat)>, BoxError> {
        if self.refused.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(found) = self.free() {
            return Ok(Some(found));
        }
        let asked = Instant::now();
        let mut failed = self.opening.lock().await;
        if let Some(found) = self.free() {
            return Ok(Some(found));
        }
        match &*failed {
            Some((when, why)) if *when > asked => return Err(why.clone().into()),
            _ => {}
        }
        let opened = self.open().await;
        if let Err(error) = &opened {
            *failed = Some((Instant::now(), error.to_string()));
        }
        opened?;
        Ok(self.free())
    }

    async fn open(&self) -> Result<(), BoxError> {
        let stream = self.dialer.clone().call(self.server.clone()).await?;
        if !stream.connected().is_negotiated_h2() {
            self.refused.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LONGEST_HEAD)
            .keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .handshake(stream)
            .await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a shared connection ended");
            }
        });
        self.lines.lock().push(Line { sender, seats: Arc::default() });
        Ok(())
    }

    /// A seat on the first connection that has one, so that the later ones empty.
    fn free(&self) -> Option<(SendRequest<Empty<Bytes>>, Seat)> {
        let mut lines = self.lines.lock();
        lines.retain(|line| !line.sender.is_closed());
        let line = lines.iter().find(|line| line.watches() < WATCHES)?;
        let seat = Seat { seat: Some(Arc::clone(&line.seats)), lines: Arc::clone(&self.lines) };
        Some((line.sender.clone(), seat))
    }
}

/// The request as HTTP/2 has it: the host is its authority. `None` when it is none.
fn request(target: &http::uri::PathAndQuery, headers: &HeaderMap) -> Option<Request<Empty<Bytes>>> {
    let host = headers.get(http::header::HOST)?;
    let authority = Authority::from_maybe_shared(Bytes::copy_from_slice(host.as_bytes())).ok()?;
    let uri = Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query(target.clone());
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri.build().ok()?;
    request.headers_mut().clone_from(headers);
    request.headers_mut().remove(http::header::HOST);
    Some(request)
}
