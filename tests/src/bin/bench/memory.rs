//! Memory of our server: at rest, and with 10,000 Routes and 100 watchers.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use picoshift_tests::ControlPlane;

use crate::cpu::our_memory;
use crate::fixtures;
use crate::measure::{Bench, Way};
use crate::peer::Peer;
use crate::report::Record;
use crate::watch::Audience;

const ROUTES: usize = 10_000;

/// Time after the start in which kube-apiserver reads the OpenAPI documents and the controllers begin to watch.
const SETTLE: Duration = Duration::from_secs(30);

/// Before anybody but the control plane's own parts has asked for anything.
pub(crate) async fn at_rest(plane: &ControlPlane) -> anyhow::Result<Record> {
    tokio::time::sleep(SETTLE).await;
    Ok(Record::memory("memory-at-rest", our_memory(&plane.home)?))
}

/// After all other cases, with 10,000 more Routes and while 100 clients watch them.
pub(crate) async fn loaded(plane: &ControlPlane, bench: &Bench) -> anyhow::Result<Record> {
    let namespace = fixtures::filled(ROUTES);
    fixtures::new_namespace(&bench.admin, &namespace).await?;
    fixtures::create(&bench.admin, Peer::Ours, &namespace, ROUTES).await?;
    // Lists leave their encodings in memory, plain and compressed.
    let reader = bench.clients(Peer::Ours, Way::Direct, 1)?.pop().context("no client")?;
    for encoding in ["identity", "gzip"] {
        let path = Peer::Ours.routes(&namespace);
        let mut request = reader.request(Method::GET, &path, None, Bytes::new())?;
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        ensure!(reader.send(request).await?.status == 200, "the list failed");
    }
    let _audience = Audience::gather(bench, Peer::Ours, Way::Direct, ROUTES).await?;
    Ok(Record::memory("memory-10000-routes-100-watchers", our_memory(&plane.home)?))
}
