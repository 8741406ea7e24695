//! Fan-out: one change after the other, each told to a hundred watchers.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use picoshift_tests::http::{Http, patch};
use serde_json::json;
use tokio::sync::mpsc;

use crate::cpu::our_memory;
use crate::fixtures::{filled, route_name};
use crate::load::{Round, measured};
use crate::measure::{Bench, ROUNDS, Way};
use crate::peer::Peer;
use crate::report::Record;

/// How many watch.
pub(crate) const WATCHERS: usize = 100;
/// Connections that they share; kube-apiserver takes 100 streams on one.
const CONNECTIONS: usize = 10;
/// The namespace that they watch has so many Routes.
const ROUTES: usize = 100;
/// How long a change may take to reach everybody before the run is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// Watchers of one peer, and what they tell.
pub(crate) struct Audience {
    told: mpsc::UnboundedReceiver<Instant>,
    tasks: tokio::task::JoinSet<()>,
    writer: Http,
    // A connection lives as long as its client.
    _connections: Vec<Http>,
}

impl Audience {
    /// Opens the watches, from now on, in a namespace with `routes` Routes.
    pub(crate) async fn gather(bench: &Bench, peer: Peer, way: Way, routes: usize) -> anyhow::Result<Self> {
        let connections = bench.clients(peer, way, CONNECTIONS)?;
        let writer = bench.clients(peer, way, 1)?.pop().context("no client")?;
        let path = peer.routes(&filled(routes));
        let list = writer.get(&format!("{path}?limit=1")).await?.ok()?;
        let from = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let path = format!("{path}?watch=true&timeoutSeconds=3600&resourceVersion={from}");
        let (tell, told) = mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for watcher in 0..WATCHERS {
            let client = &connections[watcher % CONNECTIONS];
            let response =
                client.stream(client.request(Method::GET, &path, None, bytes::Bytes::new())?).await?;
            ensure!(response.status() == 200, "watch answered {}", response.status());
            tasks.spawn(read(response.into_body(), tell.clone()));
        }
        Ok(Self { told, tasks, writer, _connections: connections })
    }

    /// Changes one Route and waits until everybody knows; the times from sending the change to each delivery.
    async fn tell(&mut self, peer: Peer, change: usize) -> anyhow::Result<Vec<Duration>> {
        let path = format!("{}/{}", peer.routes(&filled(ROUTES)), route_name(change % ROUTES));
        let body = json!({"spec": {"path": format!("/change-{change}")}});
        let start = Instant::now();
        self.writer.patch(&path, patch::MERGE, &body).await?.expect_code(200)?;
        let mut latencies = Vec::with_capacity(WATCHERS);
        while latencies.len() < WATCHERS {
            let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
            let told = told.context("a watcher was not told")?.context("all watches ended")?;
            latencies.push(told.duration_since(start));
        }
        Ok(latencies)
    }

    /// Tells change after change for `length`.
    async fn listen(&mut self, peer: Peer, length: Duration, from: usize) -> anyhow::Result<Vec<Duration>> {
        let end = Instant::now() + length;
        let mut latencies = Vec::new();
        let mut change = from;
        while Instant::now() < end {
            latencies.extend(self.tell(peer, change).await?);
            change += 1;
        }
        Ok(latencies)
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

/// Tells the time of every event: each is one line.
async fn read(mut body: Incoming, tell: mpsc::UnboundedSender<Instant>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        for _ in data.iter().filter(|byte| **byte == b'\n') {
            if tell.send(Instant::now()).is_err() {
                return;
            }
        }
    }
}

/// Measures both peers in turns. Rates and CPU are per delivery: a change told to 100 watchers counts 100.
pub(crate) async fn compare(bench: &Bench, case: String, way: Way) -> anyhow::Result<Record> {
    let mut rounds = [Round::default(), Round::default()];
    for number in 0..ROUNDS {
        for (index, peer) in [Peer::Ours, Peer::Crd].into_iter().enumerate() {
            let mut audience = Audience::gather(bench, peer, way, ROUTES).await?;
            // Numbers of changes never repeat: one that changes nothing tells nobody.
            let from = (number + 1) * 1_000_000 + usize::from(way == Way::Aggregated) * 500_000;
            audience.tell(peer, from).await?;
            let listening = audience.listen(peer, bench.length, from + 1);
            rounds[index].add(measured(&bench.servers, listening).await?);
        }
    }
    let [ours, crd] = rounds;
    Ok(Record::compare(case, &ours, &crd, our_memory(&bench.home)?))
}
