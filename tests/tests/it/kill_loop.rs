//! Our server is killed again and again amid writes, and nobody can tell from what it says: a recorded history is
//! checked as a whole. `KILLS` says how often (5).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use picoshift_tests::history::{Event, History, Kind, List, Outcome, Write, violations};
use picoshift_tests::http::{Http, patch};
use picoshift_tests::instance::Instance;
use picoshift_tests::objects::{route, routes_path};
use picoshift_tests::{ControlPlane, watch};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::support::{new_project, newcomer};

const WRITERS: u64 = 4;
/// Objects of each writer, and so many that all of them change.
const OBJECTS: u64 = 3;
const WATCHERS: usize = 3;
/// How long a client waits before it asks again after the server has gone.
const PAUSE: Duration = Duration::from_millis(5);
/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// What all share.
struct Stage {
    http: Http,
    path: String,
    clock: AtomicU64,
    values: AtomicU64,
    acknowledged: AtomicU64,
    over: AtomicBool,
    history: Mutex<History>,
}

impl Stage {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn send(
        &self,
        method: Method,
        key: &str,
        format: &'static str,
        body: &Value,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let path = if method == Method::POST { self.path.clone() } else { format!("{}/{key}", self.path) };
        let body = Bytes::from(serde_json::to_vec(body)?);
        let answer = self.http.send(self.http.request(method, &path, Some(format), body)?).await?;
        Ok((answer.status, answer.json()?))
    }
}

/// A row of numbers that looks random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn value(object: &Value) -> Option<u64> {
    object["metadata"]["annotations"]["value"].as_str()?.parse().ok()
}

/// Writes to objects of its own and to common ones until it is over.
async fn write(stage: Arc<Stage>, writer: u64) -> anyhow::Result<()> {
    let mut dice = Dice(writer);
    while !stage.over() {
        let key = match dice.roll(OBJECTS + 1) {
            OBJECTS => format!("common-{}", dice.roll(2)),
            own => format!("own-{writer}-{own}"),
        };
        let annotated = stage.values.fetch_add(1, Ordering::SeqCst);
        let change = json!({"metadata": {"annotations": {"value": annotated.to_string()}}});
        let sent = stage.now();
        let (written, answer) = match dice.roll(8) {
            0 => (None, stage.send(Method::DELETE, &key, "application/json", &json!({})).await),
            1..4 => {
                let mut body = route(&key);
                body["metadata"]["annotations"] = change["metadata"]["annotations"].clone();
                (Some(annotated), stage.send(Method::POST, &key, "application/json", &body).await)
            }
            _ => (Some(annotated), stage.send(Method::PATCH, &key, patch::MERGE, &change).await),
        };
        let ended = stage.now();
        let outcome = match &answer {
            Ok((status, object)) if status.is_success() => {
                stage.acknowledged.fetch_add(1, Ordering::SeqCst);
                // A deletion answers with a Status.
                Outcome::Done(written.and_then(|_| revision(object)))
            }
            // A server that has just started knows no client authority yet: 401.
            Ok((status, _)) if matches!(status.as_u16(), 401 | 404 | 409) => Outcome::Refused,
            Ok((status, body)) => bail!("a write was answered {status}: {body}"),
            Err(_) => Outcome::Unknown,
        };
        stage.history.lock().await.writes.push(Write { key, value: written, sent, ended, outcome });
        if outcome == Outcome::Unknown {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Watches from a revision until it is over and the last revision was seen, over as many connections as it takes.
async fn follow(stage: Arc<Stage>, from: u64, last: Arc<AtomicU64>) -> anyhow::Result<Vec<Event>> {
    let (mut seen, mut cursor) = (Vec::new(), from);
    loop {
        let path = format!("{}?watch=true&allowWatchBookmarks=true&resourceVersion={cursor}", stage.path);
        let Ok(mut watch) = stage.http.watch(&path).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        loop {
            if seen.last().map_or(from, |event: &Event| event.revision) >= last.load(Ordering::SeqCst) {
                return Ok(seen);
            }
            let Ok(Some(event)) = watch.next_before(tokio::time::Instant::now() + PATIENCE).await else {
                break;
            };
            cursor = event.revision();
            match event.kind.as_str() {
                "BOOKMARK" => {}
                "ERROR" => bail!("a watch that goes on from {cursor} was told {}", event.object),
                _ => seen.push(noted(&event)?),
            }
        }
    }
}

fn noted(event: &watch::Event) -> anyhow::Result<Event> {
    let kind = match event.kind.as_str() {
        "ADDED" => Kind::Added,
        "MODIFIED" => Kind::Modified,
        "DELETED" => Kind::Deleted,
        other => bail!("a watch says {other}"),
    };
    let value =
        value(&event.object).with_context(|| format!("an object without a value: {}", event.object))?;
    Ok(Event { kind, key: event.name().to_owned(), revision: event.revision(), value })
}

async fn list(stage: &Stage) -> anyhow::Result<List> {
    let sent = stage.now();
    let list = stage.http.get(&stage.path).await?.ok()?;
    let ended = stage.now();
    let mut items = BTreeMap::new();
    for item in list["items"].as_array().into_iter().flatten() {
        let name = item["metadata"]["name"].as_str().context("an object without a name")?;
        items.insert(
            name.to_owned(),
            (revision(item).context("no revision")?, value(item).context("no value")?),
        );
    }
    Ok(List { sent, ended, revision: revision(&list).context("no revision")?, items })
}

/// One more write, which every watcher waits for; its revision.
async fn write_last(stage: &Stage) -> anyhow::Result<u64> {
    let mut body = route("last");
    body["metadata"]["annotations"] = json!({"value": u64::MAX.to_string()});
    let sent = stage.now();
    let (status, object) = stage.send(Method::POST, "", "application/json", &body).await?;
    ensure!(status == StatusCode::CREATED, "the last write was answered {status}: {object}");
    let (ended, end) = (stage.now(), revision(&object).context("no revision")?);
    let (key, value, outcome) = ("last".to_owned(), Some(u64::MAX), Outcome::Done(Some(end)));
    stage.history.lock().await.writes.push(Write { key, value, sent, ended, outcome });
    Ok(end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_amid_writes_again_and_again() -> anyhow::Result<()> {
    let kills: u64 =
        std::env::var("KILLS").map_or(Ok(5), |text| text.parse()).context("KILLS is no number")?;
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "killed").await?;
    let identity = plane.sign(&alice.name, Some(picoshift_tests::objects::OAUTH_GROUP))?;
    let directory = tempfile::tempdir()?;
    let mut server = Instance::start(&plane, &directory.path().join("state/store.redb")).await?;
    let stage = Arc::new(Stage {
        http: server.client(&identity)?,
        path: routes_path(&project),
        clock: AtomicU64::new(0),
        values: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        over: AtomicBool::new(false),
        history: Mutex::default(),
    });
    let first = list(&stage).await?;
    let last = Arc::new(AtomicU64::new(u64::MAX));
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(follow(Arc::clone(&stage), first.revision, Arc::clone(&last)));
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(Arc::clone(&stage), writer));
    }
    let mut dice = Dice(kills);
    for number in 0..kills {
        let enough = stage.acknowledged.load(Ordering::SeqCst) + 1 + dice.roll(40);
        let amid = async {
            while stage.acknowledged.load(Ordering::SeqCst) < enough {
                if let Some(writer) = writers.try_join_next() {
                    writer??;
                }
                // Within a write, wherever that is.
                tokio::time::sleep(Duration::from_micros(200 + dice.roll(3000))).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, amid).await.context("nothing is written any more")??;
        server.kill_9()?;
        server.restart().await?;
        stage.history.lock().await.lists.push(list(&stage).await?);
        if number % 100 == 99 {
            eprintln!(
                "{} kills, {} writes acknowledged",
                number + 1,
                stage.acknowledged.load(Ordering::SeqCst)
            );
        }
    }
    stage.over.store(true, Ordering::SeqCst);
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    let end = write_last(&stage).await?;
    last.store(end, Ordering::SeqCst);
    let mut history = std::mem::take(&mut *stage.history.lock().await);
    history.lists.extend([first, list(&stage).await?]);
    while let Some(watcher) = watchers.join_next().await {
        history.watchers.push(watcher??);
    }
    let acknowledged =
        history.writes.iter().filter(|write| matches!(write.outcome, Outcome::Done(_))).count();
    let unknown = history.writes.iter().filter(|write| write.outcome == Outcome::Unknown).count();
    let found = violations(&history);
    ensure!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    ensure!(acknowledged as u64 > kills, "only {acknowledged} writes were acknowledged");
    eprintln!("{kills} kills: {acknowledged} writes acknowledged, {unknown} cut off, nothing lost");
    Ok(())
}
