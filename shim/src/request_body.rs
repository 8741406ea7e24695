//! The body of a forwarded request: passed on as it comes, and given back when nobody has taken it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a client that waits for "100 Continue" lets the server think, as Go's clients do.
const PATIENCE: Duration = Duration::from_secs(1);

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of a request on its way.
#[derive(Default)]
pub struct RequestBody {
    own: Option<Incoming>,
    lent: Option<Arc<Mutex<Option<Incoming>>>>,
    bytes: Option<Bytes>,
    wait: Option<Waiting>,
    hint: SizeHint,
}

/// Gets a body back that was lent.
#[derive(Clone, Debug)]
pub struct Lender(Arc<Mutex<Option<Incoming>>>);

impl Lender {
    /// The body, if nobody began to read it.
    pub fn take_back(&self) -> Option<Incoming> {
        self.0.lock().take()
    }
}

impl RequestBody {
    /// No body.
    #[must_use]
    pub fn none() -> Self {
        Self { hint: SizeHint::with_exact(0), ..Self::default() }
    }

    /// Ready bytes.
    #[must_use]
    pub fn ready(bytes: Bytes) -> Self {
        Self { hint: SizeHint::with_exact(bytes.len() as u64), bytes: Some(bytes), ..Self::default() }
    }

    /// The body of a client's request, and the way to get it back.
    #[must_use]
    pub fn lent(body: Incoming) -> (Self, Lender) {
        let hint = body.size_hint();
        let lent = Arc::new(Mutex::new(Some(body)));
        (Self { lent: Some(Arc::clone(&lent)), hint, ..Self::default() }, Lender(lent))
    }

    /// Waits until the server asks for the body (the answered [`Notify`]), or for a second.
    #[must_use]
    pub fn after_continue(mut self) -> (Self, Arc<Notify>) {
        let asked = Arc::new(Notify::new());
        let notified = Arc::clone(&asked);
        self.wait = Some(Box::pin(async move {
            let _ = tokio::time::timeout(PATIENCE, notified.notified()).await;
        }));
        (self, asked)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(wait) = &mut self.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            self.wait = None;
        }
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Some(lent) = self.lent.take() {
            self.own = lent.lock().take();
        }
        match &mut self.own {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.own {
            Some(body) => body.is_end_stream(),
            None => self.lent.is_none() && self.bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.own {
            Some(body) => body.size_hint(),
            None if self.is_end_stream() => SizeHint::with_exact(0),
            None => self.hint,
        }
    }
}
