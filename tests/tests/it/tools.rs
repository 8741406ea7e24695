//! What tools do beyond reading and writing: wait, replace, page, keep a store in step.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{names, route, routes_path, unique};
use serde_json::{Value, json};

use crate::support::{new_project, newcomer};

#[tokio::test]
async fn kubectl_replaces_waits_and_patches() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "tools").await?;
    let path = routes_path(&project);
    let kubectl = &alice.kubectl;
    let made = alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    let file = plane.stage.directory.join(unique("route")).with_extension("json");
    let config = file.to_string_lossy().into_owned();
    let replace = async |object: &Value, more: &[&str]| {
        std::fs::write(&file, object.to_string())?;
        kubectl.run(&[&["replace", "-n", &project, "-f", &config], more].concat()).await
    };

    let mut changed = made.clone();
    changed["spec"]["path"] = json!("/a");
    let said = replace(&changed, &[]).await?;
    assert_eq!(said.stdout, "route.route.openshift.io/web replaced\n", "{}", said.stderr);
    changed["spec"]["path"] = json!("/b");
    let said = replace(&changed, &[]).await?;
    ensure!(!said.success && said.stderr.contains("the object has been modified"), "{}", said.stderr);
    let said = replace(&route("web"), &["--force"]).await?;
    ensure!(said.success, "{}", said.stderr);
    let anew = alice.api.get(&format!("{path}/web")).await?.ok()?;
    ensure!(anew["metadata"]["uid"] != made["metadata"]["uid"], "--force deletes and creates");

    // A wait begins before what it waits for.
    let condition = "--for=jsonpath={.metadata.annotations.ready}=yes";
    let wait = ["wait", "route/web", "-n", &project, condition, "--timeout=60s"];
    let waiting = kubectl.ok(&wait);
    let ready = json!({"metadata": {"annotations": {"ready": "yes"}}});
    let later = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        alice.api.patch(&format!("{path}/web"), patch::MERGE, &ready).await?.expect_code(200)
    };
    let (waited, patched) = tokio::join!(waiting, later);
    patched?;
    assert_eq!(waited?, "route.route.openshift.io/web condition met\n");

    let operations = r#"[{"op":"test","path":"/spec/to/name","value":"web"},{"op":"add","path":"/spec/path","value":"/c"}]"#;
    kubectl.ok(&["patch", "route", "web", "-n", &project, "--type=json", "-p", operations]).await?;
    let status = r#"{"status":{"ingress":[{"host":"h.example.com","routerName":"r","conditions":[{"type":"Admitted","status":"True"}]}]}}"#;
    let of_status =
        ["patch", "route", "web", "-n", &project, "--subresource=status", "--type=merge", "-p", status];
    let said = kubectl.run(&of_status).await?;
    ensure!(said.stderr.contains("cannot patch resource \"routes/status\""), "{}", said.stderr);

    let delete = ["delete", "route", "web", "-n", &project, "--wait=false"];
    let wait = ["wait", "--for=delete", "route/web", "-n", &project, "--timeout=60s"];
    let (deleted, gone) = tokio::join!(kubectl.ok(&delete), kubectl.ok(&wait));
    ensure!(deleted?.contains("deleted"), "it is deleted");
    gone.context("the wait for its end")?;
    Ok(())
}

#[tokio::test]
async fn kubectl_pages() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "pages").await?;
    let made: Vec<String> = (0..7).map(|number| format!("r{number}")).collect();
    for name in &made {
        alice.api.post(&routes_path(&project), &route(name)).await?.expect_code(201)?;
    }
    for (size, requests) in [("3", 3), ("100", 1), ("0", 1)] {
        let get = ["get", "routes", "-n", &project, "-o", "name", "-v=6", "--chunk-size", size];
        let said = alice.kubectl.run(&get).await?;
        let listed: Vec<&str> =
            said.stdout.lines().filter_map(|line| line.split_once('/')).map(|(_, name)| name).collect();
        assert_eq!(listed, made, "{}", said.stderr);
        let asked =
            said.stderr.lines().filter(|line| line.contains("/routes") && line.contains("200")).count();
        assert_eq!(asked, requests, "chunks of {size}: {}", said.stderr);
    }
    Ok(())
}

/// A kube-rs reflector has what a list has, by each of its two ways of beginning, and after the server was killed.
#[tokio::test]
async fn a_reflector_keeps_up() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "reflected").await?;
    let path = routes_path(&project);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("route.openshift.io", "v1", "Route"));
    let routes: Api<DynamicObject> = Api::namespaced_with(alice.client().await?, &project, &resource);
    let mut stores = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for config in [watcher::Config::default().page_size(2), watcher::Config::default().streaming_lists()] {
        let writer = reflector::store::Writer::new(resource.clone());
        let reader = writer.as_reader();
        let stream = watcher(routes.clone(), config).default_backoff().reflect(writer);
        tasks.spawn(async move { stream.for_each(|_| async {}).await });
        stores.push(reader);
    }
    let create = async |range: std::ops::Range<u32>| -> anyhow::Result<()> {
        for number in range {
            alice.api.post(&path, &route(&format!("r{number}"))).await?.expect_code(201)?;
        }
        Ok(())
    };
    let agree = async |what: &str| -> anyhow::Result<()> {
        let list = alice.api.get(&path).await?.ok()?;
        let expected: BTreeSet<(String, String)> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| &item["metadata"])
            .map(|metadata| (metadata["name"].to_string(), metadata["resourceVersion"].to_string()))
            .collect();
        ensure!(names(&list).len() == expected.len(), "each once");
        eventually(what, 60, || async {
            for store in &stores {
                let held: BTreeSet<(String, String)> = store
                    .state()
                    .iter()
                    .map(|object| &object.metadata)
                    .map(|metadata| {
                        (json!(metadata.name).to_string(), json!(metadata.resource_version).to_string())
                    })
                    .collect();
                if held != expected {
                    return Ok(Err(format!("{held:?} instead of {expected:?}")));
                }
            }
            Ok(Ok(()))
        })
        .await
    };
    create(0..5).await?;
    agree("the stores have the first").await?;
    alice.api.delete(&format!("{path}/r1"), &json!({})).await?.ok()?;
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    alice.api.patch(&format!("{path}/r2"), patch::MERGE, &labelled).await?.expect_code(200)?;
    agree("the stores have a change and a deletion").await?;
    plane.crash_and_restart_our_server().await?;
    create(5..8).await?;
    agree("the stores go on after a crash").await?;
    tasks.shutdown().await;
    Ok(())
}
