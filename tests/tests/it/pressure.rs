//! Lists and watches under pressure: thousands of watchers, one that does not read, tokens across crashes, a full disk,
//! and the end of the server. Each on a server of its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::identity::Identity;
use picoshift_tests::instance::{Instance, SmallDisk};
use picoshift_tests::objects::{OAUTH_GROUP, names, route, routes_path};
use picoshift_tests::tls::Protocol;
use picoshift_tests::watch::Watch;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{new_project, newcomer};

/// A server, its data, and somebody with a project.
struct Scene {
    server: Instance,
    identity: Identity,
    http: Http,
    path: String,
    _directory: tempfile::TempDir,
}

async fn scene(plane: &ControlPlane, prefix: &str) -> anyhow::Result<Scene> {
    let directory = tempfile::tempdir()?;
    let server = Instance::start(plane, &directory.path().join("state/store.redb")).await?;
    let (identity, path) = owner(plane, prefix).await?;
    Ok(Scene { http: server.client(&identity)?, server, identity, path, _directory: directory })
}

async fn owner(plane: &ControlPlane, prefix: &str) -> anyhow::Result<(Identity, String)> {
    let alice = newcomer(plane, "alice")?;
    let project = new_project(&alice, prefix).await?;
    Ok((plane.sign(&alice.name, Some(OAUTH_GROUP))?, routes_path(&project)))
}

impl Scene {
    async fn create(&self, name: &str) -> anyhow::Result<Value> {
        self.http.post(&self.path, &route(name)).await?.expect_code(201)
    }

    async fn annotate(&self, name: &str, value: &str) -> anyhow::Result<Value> {
        let change = json!({"metadata": {"annotations": {"value": value}}});
        self.http.patch(&format!("{}/{name}", self.path), patch::MERGE, &change).await?.expect_code(200)
    }

    /// Has memory forget what was before, and what a client's window of 2 MiB holds: it keeps 16 MiB of changes. They are
    /// of an object that says it is noise.
    async fn outgrow_memory(&self) -> anyhow::Result<()> {
        let mut noise = route("noise");
        noise["metadata"]["labels"] = json!({"noise": "true"});
        noise["metadata"]["annotations"] = json!({"pad": "x".repeat(250_000)});
        self.http.post(&self.path, &noise).await?.expect_code(201)?;
        for number in 0..100 {
            self.annotate("noise", &number.to_string()).await?;
        }
        Ok(())
    }

    async fn page(&self, token: &str) -> anyhow::Result<(u16, Value)> {
        let answer = self.http.get(&format!("{}?limit=2&continue={token}", self.path)).await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn continue_tokens_outlive_a_crash_and_what_memory_keeps() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut scene = scene(&plane, "pages").await?;
    for name in ["a", "b", "c", "d"] {
        scene.create(name).await?;
    }
    let (_, first) = scene.page("").await?;
    assert_eq!(names(&first), ["a", "b"]);
    scene.http.delete(&format!("{}/c", scene.path), &json!({})).await?.ok()?;
    scene.create("e").await?;
    scene.server.kill_9()?;
    scene.server.restart().await?;
    let (_, rest) = scene.page(token(&first)).await?;
    assert_eq!((names(&rest), token(&rest)), (vec!["c", "d"], ""), "the state of the first page");
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    // Forgotten by memory, the store still has it.
    scene.outgrow_memory().await?;
    let (code, rest) = scene.page(token(&first)).await?;
    assert_eq!((code, names(&rest)), (200, vec!["c", "d"]));
    Ok(())
}

async fn open(http: &Http, path: &str) -> anyhow::Result<hyper::body::Incoming> {
    let response = http.stream(http.request(Method::GET, path, None, Bytes::new())?).await?;
    ensure!(response.status() == 200, "watch answered {}", response.status());
    Ok(response.into_body())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_cut_off_while_fifty_others_see_everything() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = scene(&plane, "slow").await?;
    let from =
        scene.create("one").await?["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let path = format!("{}?watch=true&resourceVersion={from}", scene.path);
    // Its connection is its own: on one connection, who reads none of one answer still reads the others.
    let slow = scene.server.client(&scene.identity)?;
    let mut slow = Watch::new(open(&slow, &path).await?);
    let mut others = JoinSet::new();
    let shared = scene.server.client(&scene.identity)?;
    for _ in 0..50 {
        let mut watch = Watch::new(open(&shared, &format!("{path}&labelSelector=%21noise")).await?);
        others.spawn(async move { watch.collect_until(300, |event| event.name() == "last").await });
    }
    scene.annotate("one", "first").await?;
    scene.outgrow_memory().await?;
    scene.annotate("one", "second").await?;
    scene.create("last").await?;
    while let Some(other) = others.join_next().await {
        let seen = other??;
        let seen: Vec<_> = seen.iter().map(|event| (event.kind.as_str(), event.name())).collect();
        assert_eq!(seen, [("MODIFIED", "one"), ("MODIFIED", "one"), ("ADDED", "last")]);
    }
    // It reads again: some of what was on its way, then why it ends, then the end.
    let seen = slow.collect_until(120, |event| event.kind == "ERROR").await?;
    let error = seen.last().context("nothing")?;
    assert_eq!((&error.object["code"], &error.object["reason"]), (&json!(410), &json!("Expired")));
    ensure!(seen.len() < 60, "{} of 104 events reached who did not read", seen.len());
    let end = slow.next_before(tokio::time::Instant::now() + Duration::from_secs(30)).await?;
    ensure!(end.is_none(), "after the error came {end:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_watchers_see_every_event() -> anyhow::Result<()> {
    const WATCHERS: usize = 3000;
    const CONNECTIONS: usize = 30;
    const EVENTS: usize = 10;
    let plane = ControlPlane::shared().await?;
    let scene = scene(&plane, "many").await?;
    let one = scene.create("one").await?;
    let from = one["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path = format!("{}?watch=true&resourceVersion={from}", scene.path);
    let before = scene.server.memory()?;
    let mut watchers = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = scene.server.client(&scene.identity)?;
        for _ in 0..WATCHERS / CONNECTIONS {
            let mut watch = Watch::new(open(&client, &path).await?);
            watchers.spawn(async move { watch.collect_until(120, |event| event.name() == "last").await });
        }
        connections.push(client);
    }
    let each = (scene.server.memory()?.saturating_sub(before)) / WATCHERS as u64;
    ensure!(each < 64 << 10, "a watcher takes {each} bytes");
    let start = Instant::now();
    for number in 1..EVENTS {
        scene.annotate("one", &number.to_string()).await?;
    }
    scene.create("last").await?;
    while let Some(watcher) = watchers.join_next().await {
        let seen = watcher??;
        let revisions: Vec<u64> = seen.iter().map(picoshift_tests::watch::Event::revision).collect();
        ensure!(seen.len() == EVENTS && revisions.is_sorted_by(|one, next| one < next), "{revisions:?}");
    }
    eprintln!("{WATCHERS} watchers at {each} bytes each saw {EVENTS} events in {:?}", start.elapsed());
    Ok(())
}

#[tokio::test]
async fn watches_end_cleanly_with_the_server() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut scene = scene(&plane, "ends").await?;
    let one = scene.create("one").await?;
    let from = one["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut bodies = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let client = Http::new(&scene.server.endpoint, Some(&scene.identity), protocol)?;
        for query in [format!("resourceVersion={from}"), "allowWatchBookmarks=true".to_owned()] {
            bodies.push((protocol, open(&client, &format!("{}?watch=true&{query}", scene.path)).await?));
        }
    }
    scene.server.terminate()?;
    for (protocol, mut body) in bodies {
        // A reset, or a body that is cut off, is an error here.
        while let Some(frame) = body.frame().await {
            frame.with_context(|| format!("{protocol:?}"))?;
        }
    }
    let status = scene.server.ended().await?;
    ensure!(status.success(), "it ended with {status}: {}", scene.server.log_text()?);
    // And goes on where it was.
    scene.server.restart().await?;
    let mut watch = scene.http.watch(&format!("{}?watch=true&resourceVersion={from}", scene.path)).await?;
    scene.annotate("one", "again").await?;
    watch.until(30, |event| event.kind == "MODIFIED" && event.name() == "one").await?;
    Ok(())
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let disk = SmallDisk::mount(16 << 20)?;
    let mut server = Instance::start_in(&plane, &disk.path().join("store.redb"), disk.entry()).await?;
    let (identity, path) = owner(&plane, "full").await?;
    let http = server.client(&identity)?;
    let mut large = route("one");
    large["metadata"]["annotations"] = json!({"pad": "x".repeat(100_000)});
    let mut made = Vec::new();
    let refused = loop {
        let name = format!("r{}", made.len());
        large["metadata"]["name"] = json!(name);
        let answer = http.post(&path, &large).await?;
        if answer.status != 201 {
            break answer;
        }
        made.push(name);
        ensure!(made.len() < 1000, "the disk does not fill up");
    };
    assert_eq!(refused.status, 500, "{}", refused.text());
    let refused = refused.json()?;
    ensure!(refused["message"].as_str().is_some_and(|why| why.contains("disk is full")), "{refused}");
    ensure!(made.len() > 10, "{} fit", made.len());
    // Reads go on, nothing is lost, and a restart finds the same.
    for round in 0..2 {
        let list = http.get(&path).await?.ok()?;
        ensure!(names(&list).len() == made.len(), "{} are listed in round {round}", names(&list).len());
        let ready = http.get("/readyz").await?;
        ensure!(ready.status == 200, "it is not ready: {}", ready.text());
        if round == 0 {
            let again = http.post(&path, &large).await?;
            ensure!(again.status == 500, "answered {}", again.status);
            server.kill_9()?;
            server.restart().await?;
        }
    }
    disk.resize(64 << 20)?;
    http.post(&path, &route("again")).await?.expect_code(201)?;
    let list = http.get(&path).await?.ok()?;
    ensure!(names(&list).len() == made.len() + 1, "{} are listed", names(&list).len());
    Ok(())
}
