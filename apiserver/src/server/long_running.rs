//! Requests that may last longer than others. The body of a watch: ends cleanly when the server drains, and keeps the
//! request's place until it is sent.

use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use picoshift_machinery::body::Body;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::request_info::RequestInfo;
use prometheus_client::metrics::counter::Counter;

use super::in_flight::Place;
use crate::audit::Record;
use crate::groups::image;

/// Time of an import, from its first byte to its answer; the import itself has a shorter one.
pub(super) const IMPORT_TIME: Duration = Duration::from_secs(20 * 60);

/// Whether a request waits for registries: the usual time is not for it.
pub(super) fn is_import(info: &RequestInfo) -> bool {
    info.is_resource
        && info.verb == "create"
        && info.group == image::GROUP
        && info.resource == image::IMAGE_STREAM_IMPORTS.plural
}

type Drained = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a watch keeps until it is over.
#[derive(Default)]
pub(super) struct Held {
    pub(super) _place: Option<Place>,
    pub(super) _record: Option<Arc<Record>>,
}

struct UntilDrained {
    inner: Body,
    drained: Drained,
    ended: bool,
    panics: Counter,
    _held: Held,
}

impl http_body::Body for UntilDrained {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Frames are whole events, so the end between two frames is a clean one.
        if self.ended || self.drained.as_mut().poll(cx).is_ready() {
            self.ended = true;
            return Poll::Ready(None);
        }
        let inner = Pin::new(&mut self.inner);
        // The head is out, so the client can only be shown an end that is not clean: the panic goes on, and ends this
        // stream, or this connection where it carries no other.
        catch_unwind(AssertUnwindSafe(|| inner.poll_frame(cx))).unwrap_or_else(|panic| {
            self.panics.inc();
            tracing::error!("a watch made its handler panic");
            resume_unwind(panic)
        })
    }
}

/// `body` until the drain starts; a panic in it is counted.
pub(super) fn until_drained(body: Body, drain: &Drain, held: Held, panics: Counter) -> Body {
    let drained = Box::pin(drain.wait());
    UntilDrained { inner: body, drained, ended: false, panics, _held: held }.boxed_unsync()
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};

    use super::*;

    #[test]
    fn only_the_creation_of_an_import_may_take_long() {
        let imports = "/apis/image.openshift.io/v1/namespaces/demo/imagestreamimports";
        let long = |method: http::Method, path: &str| {
            is_import(&RequestInfo::parse(&method, path, false, None).unwrap())
        };
        assert!(long(http::Method::POST, imports));
        assert!(!long(http::Method::GET, imports));
        assert!(!long(http::Method::POST, &imports.replace("imports", "mappings")));
        assert!(!long(http::Method::POST, &imports.replace("image.openshift.io", "other.io")));
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_drain() {
        let drain = Drain::new();
        let endless = stream::iter([Bytes::from("event")]).chain(stream::pending());
        let mut body = until_drained(
            picoshift_machinery::body::stream(endless),
            &drain,
            Held::default(),
            Counter::default(),
        );
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "event");
        let (end, ()) = tokio::join!(body.frame(), async { drain.start() });
        assert!(end.is_none());
        assert!(body.frame().await.is_none());
    }
}
