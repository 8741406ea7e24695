//! The body of every response.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Frame;

/// A response body: ready bytes or a stream. A stream that fails ends the connection.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body without bytes.
#[must_use]
pub fn empty() -> Body {
    Empty::new().boxed_unsync()
}

/// A body of ready bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body of pieces that are made as they are sent.
pub fn stream(pieces: impl futures::Stream<Item = Bytes> + Send + 'static) -> Body {
    use futures::StreamExt;
    StreamBody::new(pieces.map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}
