//! The controllers: role bindings in every namespace, one leader, and failures that stay where they are.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use picoshift_tests::controllers::Controllers;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{names, unique};
use picoshift_tests::process::OUR_CONTROLLERS;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const BINDINGS: [&str; 3] = ["system:deployers", "system:image-builders", "system:image-pullers"];
/// Times for an election that a test waits for.
const QUICK: [&str; 3] = [
    "--leader-elect-lease-duration-seconds=4",
    "--leader-elect-renew-deadline-seconds=3",
    "--leader-elect-retry-period-seconds=1",
];

fn bindings(namespace: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings")
}

/// Waits until a namespace has all three.
async fn bound(admin: &Actor, namespace: &str) -> anyhow::Result<Value> {
    let look = || async {
        let list = admin.api.get(&bindings(namespace)).await?.ok()?;
        let there = names(&list);
        let missing: Vec<_> = BINDINGS.into_iter().filter(|name| !there.contains(name)).collect();
        Ok(if missing.is_empty() { Ok(list.clone()) } else { Err(format!("without {missing:?}")) })
    };
    eventually("a namespace gets its role bindings", 60, look).await
}

#[tokio::test]
async fn every_namespace_has_its_role_bindings() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    for old in ["default", "kube-system", "openshift"] {
        bound(&admin, old).await?;
    }
    let namespace = new_namespace(&admin, "bound").await?;
    let list = bound(&admin, &namespace).await?;
    let items = list["items"].as_array().context("no list")?;
    let find = |name: &str| items.iter().find(|item| item["metadata"]["name"] == name);
    let pullers = find("system:image-pullers").context("no pullers")?;
    assert_eq!(pullers["roleRef"]["kind"], "ClusterRole");
    assert_eq!(pullers["roleRef"]["name"], "system:image-puller");
    assert_eq!(
        pullers["subjects"],
        json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
            "name": format!("system:serviceaccounts:{namespace}")}])
    );
    let description = &pullers["metadata"]["annotations"]["openshift.io/description"];
    let text = "Allows all pods in this namespace to pull images from this namespace.  It is auto-managed by a \
        controller; remove subjects to disable.";
    assert_eq!(description, text);
    let builders = find("system:image-builders").context("no builders")?;
    let builder = json!([{"kind": "ServiceAccount", "name": "builder", "namespace": namespace}]);
    assert_eq!(builders["subjects"], builder);

    // Switched off by hand, it stays so; deleted, it comes back.
    let path = format!("{}/system:image-builders", bindings(&namespace));
    let off = admin.api.patch(&path, patch::MERGE, &json!({"subjects": null})).await?.expect_code(200)?;
    let deleted = format!("{}/system:image-pullers", bindings(&namespace));
    admin.api.delete(&deleted, &json!({})).await?.expect_code(200)?;
    let list = bound(&admin, &namespace).await?;
    ensure!(list.to_string().contains(&format!("system:serviceaccounts:{namespace}")), "{list}");
    let now = admin.api.get(&path).await?.expect_code(200)?;
    assert_eq!(now["metadata"]["resourceVersion"], off["metadata"]["resourceVersion"]);

    // A namespace that goes is not filled again, and so can go.
    admin.api.delete(&format!("/api/v1/namespaces/{namespace}"), &json!({})).await?.expect_code(200)?;
    let gone = || async {
        let answer = admin.api.get(&format!("/api/v1/namespaces/{namespace}")).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the namespace goes", 60, gone).await
}

#[tokio::test]
async fn what_came_while_they_were_dead_is_found_when_they_are_back() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let before = plane.home.components()?;
    plane.home.component(OUR_CONTROLLERS)?.kill_9()?;
    let namespace = new_namespace(&admin, "meanwhile").await?;
    plane.up().await?;
    bound(&admin, &namespace).await?;
    for old in &before {
        let new = plane.home.component(&old.name)?;
        assert_eq!(new.pid == old.pid, old.name != OUR_CONTROLLERS, "{} was {old:?}, is {new:?}", old.name);
    }
    Ok(())
}

/// Waits until exactly one of them leads; says which.
async fn leader(processes: &[&Controllers]) -> anyhow::Result<usize> {
    let look = || async {
        let mut leading = Vec::new();
        for (index, process) in processes.iter().enumerate() {
            if process.leads().await? {
                leading.push(index);
            }
        }
        ensure!(leading.len() <= 1, "{} lead", leading.len());
        Ok(leading.first().copied().ok_or_else(|| "nobody leads".to_owned()))
    };
    eventually("one leads", 60, look).await
}

#[tokio::test]
async fn of_several_processes_one_leads() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "election").await?;
    let resource = format!("--leader-elect-resource-namespace={namespace}");
    let flags: Vec<&str> = QUICK.into_iter().chain([resource.as_str()]).collect();
    let kubeconfig = plane.home.admin_kubeconfig()?;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(Controllers::start(&plane, &kubeconfig, &flags).await?);
    }
    let first = leader(&all.iter().collect::<Vec<_>>()).await?;
    // A process that waits is ready, and so is one that works, once it has read everything.
    for process in &all {
        let look = || async {
            let answer = process.http.get("/readyz?verbose").await?;
            Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
        };
        eventually("it is ready", 60, look).await?;
    }

    // kill -9: it gives nothing back.
    let mut dead = all.remove(first);
    dead.child.kill().await?;
    let second = leader(&all.iter().collect::<Vec<_>>()).await?;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/picoshift-controllers");
    let held = admin.api.get(&lease).await?.expect_code(200)?;
    assert_eq!(held["spec"]["leaseTransitions"], 1, "{held}");

    // SIGTERM: it gives the Lease back and ends well.
    let mut ending = all.remove(second);
    let pid = ending.child.id().context("it has ended")?;
    kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
    let status = tokio::time::timeout(Duration::from_secs(30), ending.child.wait()).await??;
    ensure!(status.success(), "{status}");
    leader(&all.iter().collect::<Vec<_>>()).await?;
    let held = admin.api.get(&lease).await?.expect_code(200)?;
    // It was nobody's in between.
    assert_eq!(held["spec"]["leaseTransitions"], 2, "{held}");
    Ok(())
}

#[tokio::test]
async fn a_controller_that_fails_does_not_end_the_others() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    // May bind roles, and may not read ImageStreams.
    let limited = plane.by_certificate(&unique("limited"), None)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": limited.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:openshift:controller:default-role-bindings"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": limited.name}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.api.post(path, &binding).await?.expect_code(201)?;
    plane.home.component(OUR_CONTROLLERS)?.kill_9()?;
    let process = Controllers::start(&plane, &limited.kubectl.kubeconfig, &["--leader-elect=false"]).await?;

    let failing = || async {
        let answer = process.http.get("/readyz").await?.text();
        let wanted = ["[+]controller/default-role-bindings ok", "[-]controller/image-import failed"];
        Ok(if wanted.iter().all(|line| answer.contains(line)) { Ok(()) } else { Err(answer) })
    };
    eventually("only one is not ready", 60, failing).await?;
    let why = process.http.get("/readyz/controller/image-import").await?.text();
    ensure!(why.contains("forbidden") && why.contains("imagestreams"), "{why}");
    assert_eq!(process.http.get("/livez").await?.status, 200, "a restart would not help");
    let namespace = new_namespace(&admin, "alone").await?;
    bound(&admin, &namespace).await?;

    drop(process);
    plane.up().await?;
    admin.api.delete(&format!("{path}/{}", limited.name), &json!({})).await?.expect_code(200)?;
    Ok(())
}
