//! What a list of projects costs: no request to kube-apiserver, however many namespaces there are.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use picoshift_tests::objects::{PROJECTS, names, namespace, role_binding, unique};
use picoshift_tests::{Actor, ControlPlane, metrics};

use crate::support::newcomer;

/// Namespaces that she sees.
const VISIBLE: usize = 10;
/// Lists in one measurement.
const LISTS: usize = 50;
/// What our server could ask kube-apiserver about: access, tokens, namespaces, RBAC.
const ASKED: [&str; 8] = [
    "subjectaccessreviews",
    "tokenreviews",
    "namespaces",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "selfsubjectaccessreviews",
];

/// How many namespaces there are: `PICOSHIFT_E2E_NAMESPACES`, or 5,000, which take about ten seconds to make.
fn total() -> anyhow::Result<usize> {
    match std::env::var("PICOSHIFT_E2E_NAMESPACES") {
        Ok(text) => text.parse().context("PICOSHIFT_E2E_NAMESPACES is no number"),
        Err(_) => Ok(5_000),
    }
}

#[tokio::test]
async fn a_list_of_projects_asks_nobody() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let (admin, alice) = (plane.admin()?, newcomer(&plane, "alice")?);
    let prefix = unique("many");
    let names: Vec<String> = (0..total()?).map(|number| format!("{prefix}-{number}")).collect();
    stream::iter(&names)
        .map(|name| create_namespace(&admin, name))
        .buffer_unordered(16)
        .try_collect::<Vec<()>>()
        .await?;
    for name in names.iter().take(VISIBLE) {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
        admin.api.post(&path, &role_binding("alice", "view", &alice.name)).await?.expect_code(201)?;
    }
    wait_until_visible(&alice, VISIBLE).await?;

    // The first list pays for the access review that the others find remembered. A review that runs out in the
    // middle is asked again, hence three measurements: a list that costs requests costs them in all three.
    let mut last = 0.0;
    for _ in 0..3 {
        list(&alice).await?;
        let before = asked(&admin).await?;
        for _ in 0..LISTS {
            list(&alice).await?;
        }
        last = asked(&admin).await? - before;
        if last < 0.5 {
            return Ok(());
        }
    }
    bail!("{LISTS} lists caused {last} requests to kube-apiserver")
}

async fn create_namespace(admin: &Actor, name: &str) -> anyhow::Result<()> {
    admin.api.post("/api/v1/namespaces", &namespace(name)).await?.expect_code(201).map(drop)
}

async fn list(actor: &Actor) -> anyhow::Result<()> {
    let list = actor.direct()?.get(PROJECTS).await?.ok()?;
    ensure!(names(&list).len() == VISIBLE, "sees {:?}", names(&list));
    Ok(())
}

async fn wait_until_visible(actor: &Actor, count: usize) -> anyhow::Result<()> {
    let path = format!("{PROJECTS}?watch=true&timeoutSeconds=60&resourceVersion=0");
    let mut watch = actor.direct()?.watch(&path).await?;
    for _ in 0..count {
        watch.until(30, |event| event.kind == "ADDED").await?;
    }
    Ok(())
}

/// Requests of that kind that kube-apiserver has counted. kube-controller-manager fills new namespaces for a while:
/// only when it has come to rest do the counters speak of us.
async fn asked(admin: &Actor) -> anyhow::Result<f64> {
    let mut before = f64::MAX;
    loop {
        let text = admin.api.get("/metrics").await?.text();
        let now = ASKED
            .iter()
            .map(|resource| metrics::sum(&text, "apiserver_request_total", &[("resource", resource)]));
        let now = now.sum::<f64>();
        if (now - before).abs() < 0.5 {
            return Ok(now);
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
