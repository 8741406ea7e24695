//! Requests and watches through each door, the doors in turns.

use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use picoshift_tests::http::Http;
use picoshift_tests::tls::Protocol;
use serde::Serialize;

use super::doors::{Door, Doors, SETTLE, resident_mb};
use super::{Callers, Credential};
use crate::load::{Round, closed_loop};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const ROUTE: &str = "/apis/route.openshift.io/v1/namespaces/default/routes/front-door";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3600&resourceVersion=0";
/// Who asks at once where it is asked how many requests get through.
const CROWD: usize = 16;
/// Rounds per door.
const ROUNDS: usize = 5;
/// Watches that are open at once.
const WATCHES: usize = 1000;
/// Watches on one connection.
const ON_A_CONNECTION: usize = 50;

/// What was measured of one door.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) door: &'static str,
    /// One at a time.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// More than directly.
    pub(crate) added_p50_ms: f64,
    pub(crate) added_p99_ms: f64,
    /// Many at once.
    pub(crate) per_second: f64,
    /// Of what gets through directly.
    pub(crate) share: f64,
}

/// What a thousand watches cost a door.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Watches {
    pub(crate) door: &'static str,
    pub(crate) rest_mb: f64,
    pub(crate) watched_mb: f64,
}

/// Gets a Namespace through every door that the credential opens.
pub(crate) async fn requests(
    doors: &Doors,
    callers: &Callers,
    credential: Credential,
    length: Duration,
) -> anyhow::Result<Vec<Row>> {
    let open = doors
        .all
        .iter()
        .filter(|door| credential != Credential::Certificate || matches!(door.name, "direct" | "shim"));
    let case = format!("get-{}", credential.name());
    compare(&open.collect::<Vec<_>>(), callers, credential, &case, NAMESPACE, length).await
}

/// Gets a Route: through the shim straight from our server, else through the aggregator.
pub(crate) async fn openshift_group(
    doors: &Doors,
    callers: &Callers,
    length: Duration,
) -> anyhow::Result<Vec<Row>> {
    let two: Vec<&Door> = doors.all.iter().filter(|door| matches!(door.name, "direct" | "shim")).collect();
    compare(&two, callers, Credential::OAuth, "get-route-oauth", ROUTE, length).await
}

async fn compare(
    doors: &[&Door],
    callers: &Callers,
    credential: Credential,
    case: &str,
    path: &str,
    length: Duration,
) -> anyhow::Result<Vec<Row>> {
    eprintln!("front-door-{case}");
    let make = |http: &Http, _| http.request(Method::GET, path, None, Bytes::new());
    let mut crowds = Vec::new();
    for door in doors {
        let clients = clients(door, callers, credential, CROWD)?;
        closed_loop(&clients, length / 5, make).await?;
        crowds.push((clients, Round::default(), Round::default()));
    }
    for _ in 0..ROUNDS {
        for (clients, alone, together) in &mut crowds {
            alone.add(round(&clients[..1], length, make).await?);
            together.add(round(clients, length, make).await?);
        }
    }
    let measured: Vec<(f64, f64, f64)> = crowds
        .iter()
        .map(|(_, alone, together)| (alone.percentile_ms(0.5), alone.percentile_ms(0.99), together.rate()))
        .collect();
    let (p50, p99, rate) = measured[0];
    let row = |(door, own): (&&Door, &(f64, f64, f64))| Row {
        case: case.to_owned(),
        door: door.name,
        p50_ms: own.0,
        p99_ms: own.1,
        added_p50_ms: own.0 - p50,
        added_p99_ms: own.1 - p99,
        per_second: own.2,
        share: own.2 / rate,
    };
    Ok(doors.iter().zip(&measured).map(row).collect())
}

async fn round<M>(clients: &[Http], length: Duration, make: M) -> anyhow::Result<Round>
where
    M: Fn(&Http, usize) -> anyhow::Result<http::Request<http_body_util::Full<Bytes>>> + Sync,
{
    let start = std::time::Instant::now();
    let latencies = closed_loop(clients, length, make).await?;
    Ok(Round { latencies, elapsed: start.elapsed(), cpu: Duration::ZERO })
}

fn clients(
    door: &Door,
    callers: &Callers,
    credential: Credential,
    count: usize,
) -> anyhow::Result<Vec<Http>> {
    let client = |_| match callers.token(credential) {
        None => Http::new(&door.endpoint, Some(&callers.identity), Protocol::Http2),
        Some(token) => Http::new(&door.endpoint, None, Protocol::Http2)?
            .with_header("authorization", &format!("Bearer {token}")),
    };
    (0..count).map(client).collect()
}

/// Opens a thousand watches through each proxy and looks at its memory.
pub(crate) async fn watches(doors: &Doors, callers: &Callers) -> anyhow::Result<Vec<Watches>> {
    let mut all = Vec::new();
    for door in &doors.all {
        let Some(pid) = door.pid else { continue };
        eprintln!("front-door-{WATCHES}-watches {}", door.name);
        let rest_mb = resident_mb(pid)?;
        let clients = clients(door, callers, Credential::ServiceAccount, WATCHES / ON_A_CONNECTION)?;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..WATCHES {
            let client = &clients[number % clients.len()];
            let answer = client.stream(client.request(Method::GET, WATCH, None, Bytes::new())?).await?;
            ensure!(answer.status() == 200, "watch {number} answered {}", answer.status());
            let mut body = answer.into_body();
            tasks.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
        }
        tokio::time::sleep(SETTLE).await;
        ensure!(tasks.try_join_next().is_none(), "a watch through {} has ended", door.name);
        all.push(Watches { door: door.name, rest_mb, watched_mb: resident_mb(pid)? });
        tasks.shutdown().await;
    }
    Ok(all)
}
