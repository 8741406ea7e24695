//! The body of an answer: our own, or one that is passed on as it comes, until its token is revoked or the server drains.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use picoshift_machinery::body;
use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::revocation::Use;
use crate::upstream::{Answer, Seat};

/// The body of every answer.
pub enum AnswerBody {
    /// Made here.
    Own(body::Body),
    /// Passed on.
    Relayed(Box<Relayed>),
}

/// A body that is passed on, and what it holds until its end.
pub struct Relayed {
    inner: Incoming,
    cut: Option<Cut>,
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _using: Option<Use>,
    _counted: Counted,
    _seat: Option<Seat>,
}

/// What cuts a stream beside the revocation of its token.
pub type Cut = Pin<Box<WaitForCancellationFutureOwned>>;

/// One of a gauge, until it is dropped.
pub struct Counted(Gauge);

impl Counted {
    /// Counts one more.
    #[must_use]
    pub fn in_gauge(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Relayed {
    /// Passes `inner` on until `cut` is given, or the token in `using` is revoked.
    #[must_use]
    pub fn answer(
        answer: Answer,
        cut: Option<Cut>,
        using: Option<Use>,
        counted: Counted,
    ) -> Response<AnswerBody> {
        let revoked = using.as_ref().map(|using| Box::pin(using.revoked()));
        let Answer { response, seat } = answer;
        response.map(|inner| {
            AnswerBody::Relayed(Box::new(Self {
                inner,
                cut,
                revoked,
                _using: using,
                _counted: counted,
                _seat: seat,
            }))
        })
    }
}

/// Why a stream ended too early. The client sees that something is missing.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The server behind us broke off.
    #[error("upstream: {0}")]
    Upstream(#[from] hyper::Error),
    /// The token is revoked, or we end.
    #[error("the stream was ended")]
    Cut,
}

impl From<body::Body> for AnswerBody {
    fn from(own: body::Body) -> Self {
        Self::Own(own)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = RelayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        match &mut *self {
            Self::Own(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Relayed(relayed) => {
                let is_given = |cut: &mut Cut, cx: &mut Context<'_>| cut.as_mut().poll(cx).is_ready();
                if relayed.cut.as_mut().is_some_and(|cut| is_given(cut, cx))
                    || relayed.revoked.as_mut().is_some_and(|cut| is_given(cut, cx))
                {
                    return Poll::Ready(Some(Err(RelayError::Cut)));
                }
                Pin::new(&mut relayed.inner).poll_frame(cx).map(|frame| frame.map(|frame| Ok(frame?)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Relayed(relayed) => relayed.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Relayed(relayed) => relayed.inner.size_hint(),
        }
    }
}
