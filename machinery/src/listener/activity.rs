//! Whether anything goes on on an HTTP/2 connection, so that one on which nothing does can be ended. A connection whose
//! client never says a word after the TLS handshake counts as such.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

/// Counts the requests of a connection, from their headers to the end of their answers.
#[derive(Clone)]
pub(super) struct Activity(Arc<watch::Sender<usize>>);

/// One request that is going on.
pub(super) struct Request(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// A request begins.
    pub(super) fn begin(&self) -> Request {
        self.0.send_modify(|running| *running += 1);
        Request(self.clone())
    }

    /// Ends when nothing has gone on for `time`.
    pub(super) async fn idle(&self, time: Duration) {
        let mut running = self.0.subscribe();
        loop {
            let busy = *running.borrow_and_update() > 0;
            let changed = running.changed();
            if busy {
                let _ = changed.await;
            } else if timeout(time, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.0.send_modify(|running| *running -= 1);
    }
}

impl Request {
    /// Goes on until the answer is sent or given up.
    pub(super) fn until_sent<B>(self, response: Response<B>) -> Response<Held<B>> {
        response.map(|inner| Held { inner, _request: self })
    }
}

/// The body of an answer, with its request.
pub(super) struct Held<B> {
    inner: B,
    _request: Request,
}

impl<B: hyper::body::Body + Unpin> hyper::body::Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
