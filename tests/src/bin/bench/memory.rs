//! Memory of our server: at rest, and with ten thousand objects.

use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use http::Method;
use http::header::ACCEPT_ENCODING;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::Http;

use crate::cases::{Encoding, Way};
use crate::cpu::our_memory;
use crate::image_streams::IMAGE_STREAMS;
use crate::measure::{Bench, accepted};
use crate::report::Record;
use crate::routes::ROUTES;
use crate::subject::{Peer, Subject};
use crate::users;
use crate::watch::{Audience, WATCHERS};

/// Names of the cases.
pub(crate) const AT_REST: &str = "memory-at-rest";
pub(crate) const OF_ROUTES: &str = "memory-10000-routes-100-watchers";
pub(crate) const OF_STREAMS: &str = "memory-10000-imagestreams-10000-users";

const MANY: usize = 10_000;

/// Time after the start in which kube-apiserver reads the OpenAPI documents and the controllers begin to watch.
const SETTLE: Duration = Duration::from_secs(30);

/// Before anybody but the control plane's own parts has asked for anything.
pub(crate) async fn at_rest(plane: &ControlPlane) -> anyhow::Result<Record> {
    tokio::time::sleep(SETTLE).await;
    Ok(Record::memory(AT_REST, our_memory(&plane.home)?))
}

/// After all cases of Routes, with 10,000 more and while 100 clients watch them.
pub(crate) async fn of_routes(bench: &mut Bench) -> anyhow::Result<Record> {
    fill_and_list(bench, &ROUTES).await?;
    let _audience = Audience::gather(bench, &ROUTES, Peer::Ours, Way::Direct, MANY, WATCHERS).await?;
    Ok(Record::memory(OF_ROUTES, bench.memory()?))
}

/// With 10,000 ImageStreams and as many Users; started anew before it lists them, since a run of all cases leaves behind
/// what ten thousand writes a second take.
pub(crate) async fn of_image_streams(bench: &mut Bench, plane: &ControlPlane) -> anyhow::Result<Record> {
    bench.fixtures.ours(&IMAGE_STREAMS, MANY).await?;
    users::fill(bench, MANY).await?;
    bench.restart_ours(plane).await?;
    list_many(bench, &IMAGE_STREAMS).await?;
    list(bench.admin.direct()?, users::PATH, MANY).await?;
    Ok(Record::memory(OF_STREAMS, bench.memory()?))
}

async fn fill_and_list(bench: &mut Bench, subject: &Subject) -> anyhow::Result<()> {
    bench.fixtures.ours(subject, MANY).await?;
    list_many(bench, subject).await
}

async fn list_many(bench: &Bench, subject: &Subject) -> anyhow::Result<()> {
    list(bench.admin.direct()?, &subject.path(Peer::Ours, &subject.filled(MANY)), MANY).await
}

/// Lists leave their encodings in memory, plain and compressed.
async fn list(reader: &Http, path: &str, count: usize) -> anyhow::Result<()> {
    for encoding in [Encoding::Identity, Encoding::Gzip] {
        let mut request = reader.request(Method::GET, path, None, Bytes::new())?;
        request.headers_mut().insert(ACCEPT_ENCODING, accepted(encoding));
        let answer = reader.send(request).await?;
        ensure!(answer.status == 200, "the list answered {}", answer.status);
        if encoding == Encoding::Identity {
            let listed = answer.json()?["items"].as_array().map_or(0, Vec::len);
            ensure!(listed >= count, "{listed} are listed at {path}, not {count}");
        }
    }
    Ok(())
}
