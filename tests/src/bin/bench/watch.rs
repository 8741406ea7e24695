//! Fan-out: one change after the other, each told to a hundred watchers, or to a thousand.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use picoshift_tests::http::Http;
use tokio::sync::mpsc;

use crate::cases::Way;
use crate::load::{Round, measured};
use crate::measure::Bench;
use crate::report::Record;
use crate::subject::{Peer, Subject};

/// How many watch.
pub(crate) const WATCHERS: usize = 100;
/// How many watch our server alone.
pub(crate) const MANY: usize = 1000;
/// Watchers on one connection; kube-apiserver takes 100.
const ON_A_CONNECTION: usize = 10;
/// The namespace that they watch has so many objects.
const OBJECTS: usize = 100;
/// Rounds per peer.
const ROUNDS: usize = 3;
/// How long a change may take to reach everybody before the run is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// Watchers of one peer, and what they tell.
pub(crate) struct Audience {
    watchers: usize,
    told: mpsc::UnboundedReceiver<Instant>,
    tasks: tokio::task::JoinSet<()>,
    writer: Http,
    // A connection lives as long as its client.
    _connections: Vec<Http>,
}

impl Audience {
    /// Opens the watches, from now on, in the namespace with `count` objects.
    pub(crate) async fn gather(
        bench: &Bench,
        subject: &Subject,
        peer: Peer,
        way: Way,
        count: usize,
        watchers: usize,
    ) -> anyhow::Result<Self> {
        let connections = bench.clients(peer, way, watchers / ON_A_CONNECTION)?;
        let writer = bench.clients(peer, way, 1)?.pop().context("no client")?;
        let path = subject.path(peer, &subject.filled(count));
        let list = writer.get(&format!("{path}?limit=1")).await?.ok()?;
        let from = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let path = format!("{path}?watch=true&timeoutSeconds=3600&resourceVersion={from}");
        let (tell, told) = mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for watcher in 0..watchers {
            let client = &connections[watcher / ON_A_CONNECTION];
            let response =
                client.stream(client.request(Method::GET, &path, None, bytes::Bytes::new())?).await?;
            ensure!(response.status() == 200, "watch answered {}", response.status());
            tasks.spawn(read(response.into_body(), tell.clone()));
        }
        Ok(Self { watchers, told, tasks, writer, _connections: connections })
    }

    /// Changes one object and waits until everybody knows; the times from sending the change to each delivery.
    async fn tell(&mut self, subject: &Subject, peer: Peer, number: usize) -> anyhow::Result<Vec<Duration>> {
        let path = subject.object_path(peer, OBJECTS, number);
        let (format, change) = (subject.change)(number);
        let start = Instant::now();
        self.writer.patch(&path, format, &change).await?.expect_code(200)?;
        let mut latencies = Vec::with_capacity(self.watchers);
        while latencies.len() < self.watchers {
            let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
            let told = told.context("a watcher was not told")?.context("all watches ended")?;
            latencies.push(told.duration_since(start));
        }
        Ok(latencies)
    }

    /// Tells change after change.
    async fn listen(
        &mut self,
        bench: &Bench,
        subject: &Subject,
        peer: Peer,
    ) -> anyhow::Result<Vec<Duration>> {
        let end = Instant::now() + bench.length;
        let mut latencies = Vec::new();
        while Instant::now() < end {
            latencies.extend(self.tell(subject, peer, bench.next_write()).await?);
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
pub(crate) async fn compare(
    bench: &mut Bench,
    subject: &Subject,
    case: String,
    way: Way,
) -> anyhow::Result<Record> {
    bench.fixtures.both(subject, OBJECTS).await?;
    let mut rounds = [Round::default(), Round::default()];
    for _ in 0..ROUNDS {
        for (index, peer) in [Peer::Ours, Peer::Crd].into_iter().enumerate() {
            let mut audience = Audience::gather(bench, subject, peer, way, OBJECTS, WATCHERS).await?;
            audience.tell(subject, peer, bench.next_write()).await?;
            let listening = audience.listen(bench, subject, peer);
            rounds[index].add(measured(&bench.servers, listening).await?);
        }
    }
    let [ours, crd] = rounds;
    Ok(Record::compare(case, &ours, &crd, bench.memory()?))
}

/// Measures our server alone, with many watchers; latencies are from before the change is sent to each delivery.
pub(crate) async fn many(bench: &mut Bench, subject: &Subject, case: &str) -> anyhow::Result<Record> {
    bench.fixtures.both(subject, OBJECTS).await?;
    let mut audience = Audience::gather(bench, subject, Peer::Ours, Way::Direct, OBJECTS, MANY).await?;
    audience.tell(subject, Peer::Ours, bench.next_write()).await?;
    let mut round = Round::default();
    for _ in 0..ROUNDS {
        round.add(measured(&bench.servers, audience.listen(bench, subject, Peer::Ours)).await?);
    }
    Ok(Record::alone(case, &round, bench.memory()?))
}
