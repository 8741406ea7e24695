//! Our server dies and comes back: nothing acknowledged is lost, nothing looks different.

use std::collections::BTreeMap;

use anyhow::ensure;
use bytes::Bytes;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::Http;
use picoshift_tests::objects::{names, project_path, route, route_with_host, routes_path, unique};
use picoshift_tests::process::OUR_SERVER;
use serde_json::json;

use crate::support::{new_project, newcomer};

async fn bytes_of(http: &Http, paths: &[String]) -> anyhow::Result<BTreeMap<String, Bytes>> {
    let mut all = BTreeMap::new();
    for path in paths {
        let answer = http.get(path).await?;
        answer.ok()?;
        all.insert(path.clone(), answer.body);
    }
    Ok(all)
}

#[tokio::test]
async fn equal_resource_versions_are_equal_bytes_across_a_crash() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "kept").await?;
    let path = routes_path(&project);
    let mut paths = vec![project_path(&project)];
    let host = format!("{}.example.org", unique("shared"));
    for name in ["a", "b", "c"] {
        alice.api.post(&path, &route(name)).await?.expect_code(201)?;
        let claiming = format!("claims-{name}");
        alice.api.post(&path, &route_with_host(&claiming, &host)).await?.expect_code(201)?;
        paths.extend([format!("{path}/{name}"), format!("{path}/{claiming}")]);
    }
    // A claim that changes hands leaves stored traces, not computed ones.
    alice.api.delete(&format!("{path}/claims-a"), &json!({})).await?.expect_code(200)?;
    paths.retain(|kept| !kept.ends_with("claims-a"));

    let before = bytes_of(alice.direct()?, &paths).await?;
    let items = alice.direct()?.get(&path).await?.ok()?["items"].clone();
    plane.crash_and_restart_our_server().await?;
    let alice = again(&plane, &alice.name)?;
    let after = bytes_of(alice.direct()?, &paths).await?;
    for (path, old) in &before {
        ensure!(after.get(path) == Some(old), "{path}: {old:?} became {:?}", after.get(path));
    }
    assert_eq!(alice.direct()?.get(&path).await?.ok()?["items"], items);
    Ok(())
}

fn again(plane: &ControlPlane, name: &str) -> anyhow::Result<picoshift_tests::Actor> {
    plane.by_certificate(name, Some(picoshift_tests::objects::OAUTH_GROUP))
}

#[tokio::test]
async fn every_acknowledged_write_survives_a_crash_amid_writes() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "written").await?);
    let writer = {
        let (alice, path) = (alice.clone(), path.clone());
        tokio::spawn(async move {
            let mut written = Vec::new();
            // Ends with the first write that is not acknowledged.
            for number in 0.. {
                let name = format!("r{number}");
                let Ok(http) = alice.direct() else { break };
                match http.post(&path, &route(&name)).await {
                    Ok(answer) if answer.status == 201 => written.push(name),
                    _ => break,
                }
            }
            written
        })
    };
    // Not a measure of time: some writes have to be under way when the server dies.
    let server = plane.home.component(OUR_SERVER)?;
    loop {
        let list = alice.direct()?.get(&format!("{path}?resourceVersion=0")).await?.ok()?;
        if names(&list).len() >= 30 {
            break;
        }
    }
    server.kill_9()?;
    let written = writer.await?;
    plane.up().await?;
    let list = again(&plane, &alice.name)?.api.get(&path).await?.ok()?;
    let there = names(&list);
    for name in &written {
        ensure!(there.contains(&name.as_str()), "{name} was acknowledged and is gone");
    }
    // At most the one write whose answer the crash cut off.
    ensure!(there.len() <= written.len() + 1, "{} written, {} there", written.len(), there.len());
    Ok(())
}

#[tokio::test]
async fn up_starts_only_what_is_missing() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let before = plane.home.components()?;
    plane.crash_and_restart_our_server().await?;
    let after = plane.home.components()?;
    for old in &before {
        let new = after.iter().find(|component| component.name == old.name);
        let same = new.is_some_and(|new| new.pid == old.pid);
        assert_eq!(same, old.name != OUR_SERVER, "{} was {old:?}, is {new:?}", old.name);
        ensure!(new.is_some_and(|new| new.healthy && new.runs()), "{} is not healthy", old.name);
        ensure!(new.is_some_and(|new| new.port == old.port), "{} moved to another port", old.name);
    }
    Ok(())
}
