//! kube-controller-manager's garbage collector and objects owned by Namespaces and by Projects, while our server is
//! killed again and again and kube-controller-manager once.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::objects::{project_path, routes_path};
use picoshift_tests::process::CONTROLLER_MANAGER;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{new_namespace, new_project, newcomer};

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CRASHES: usize = 10;

/// A cluster-scoped dependent of the namespace, or of the project of the same name and uid.
async fn dependent(admin: &Actor, namespace: &str, of: &str) -> anyhow::Result<String> {
    let owner = admin.api.get(&format!("/api/v1/namespaces/{namespace}")).await?.ok()?;
    let (version, kind) = match of {
        "project" => ("project.openshift.io/v1", "Project"),
        _ => ("v1", "Namespace"),
    };
    let name = format!("{namespace}-{of}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "ownerReferences": [{
            "apiVersion": version, "kind": kind, "name": namespace, "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }]},
        "rules": [],
    });
    admin.api.post(CLUSTER_ROLES, &role).await?.expect_code(201)?;
    Ok(name)
}

async fn with_dependents(admin: &Actor, prefix: &str) -> anyhow::Result<(String, [String; 2])> {
    let name = new_namespace(admin, prefix).await?;
    let dependents = [dependent(admin, &name, "namespace").await?, dependent(admin, &name, "project").await?];
    Ok((name, dependents))
}

async fn status_of(admin: &Actor, path: &str) -> anyhow::Result<u16> {
    Ok(admin.api.get(path).await?.status.as_u16())
}

async fn until_gone(admin: &Actor, path: &str) -> anyhow::Result<()> {
    let look = || async {
        let answer = admin.api.get(path).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    };
    eventually(&format!("{path} goes"), 180, look).await
}

#[tokio::test]
async fn owners_and_dependents_while_our_server_dies_ten_times() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let (living, kept) = with_dependents(&admin, "gc-living").await?;
    let policies = ["Background", "Foreground", "Orphan"];
    let mut doomed = Vec::new();
    for policy in policies {
        let prefix = format!("gc-{}", policy.to_lowercase());
        let (name, dependents) = with_dependents(&admin, &prefix).await?;
        doomed.push((policy, name, dependents));
    }
    // A restarted collector builds its graph while our server comes and goes.
    plane.home.component(CONTROLLER_MANAGER)?.kill_9()?;
    plane.up().await?;
    for crash in 0..CRASHES {
        if let Some((policy, name, _)) = doomed.get(crash / 3).filter(|_| crash % 3 == 0) {
            let options = json!({"propagationPolicy": policy});
            let path = format!("/api/v1/namespaces/{name}");
            let code = admin.api.delete(&path, &options).await?.status.as_u16();
            ensure!(matches!(code, 200 | 202), "delete of {name} answered {code}");
        }
        plane.crash_and_restart_our_server().await?;
    }
    for (policy, name, dependents) in &doomed {
        until_gone(&admin, &format!("/api/v1/namespaces/{name}")).await?;
        until_gone(&admin, &project_path(name)).await?;
        for dependent in dependents {
            let path = format!("{CLUSTER_ROLES}/{dependent}");
            if *policy == "Orphan" {
                let role = admin.api.get(&path).await?.expect_code(200)?;
                ensure!(role["metadata"]["ownerReferences"].is_null(), "not orphaned: {role}");
            } else {
                until_gone(&admin, &path).await?;
            }
        }
    }
    ensure!(status_of(&admin, &format!("/api/v1/namespaces/{living}")).await? == 200, "{living} is gone");
    let project = admin.api.get(&project_path(&living)).await?.expect_code(200)?;
    ensure!(project["metadata"]["deletionTimestamp"].is_null(), "{living} is being deleted");
    for dependent in &kept {
        ensure!(
            status_of(&admin, &format!("{CLUSTER_ROLES}/{dependent}")).await? == 200,
            "{dependent} was deleted although its owner lives"
        );
    }
    Ok(())
}

#[tokio::test]
async fn owner_references_among_routes_are_followed() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, admin) = (newcomer(&plane, "alice")?, plane.admin()?);
    let path = routes_path(&new_project(&alice, "owned").await?);
    let owner = alice.api.post(&path, &picoshift_tests::objects::route("owner")).await?.expect_code(201)?;
    let mut body = picoshift_tests::objects::route("owned");
    body["metadata"]["ownerReferences"] = json!([owner_reference(&owner)]);
    alice.api.post(&path, &body).await?.expect_code(201)?;
    let mut body = picoshift_tests::objects::route("free");
    body["metadata"]["labels"] = json!({"free": "yes"});
    alice.api.post(&path, &body).await?.expect_code(201)?;

    alice.api.delete(&format!("{path}/owner"), &json!({"propagationPolicy": "Foreground"})).await?.ok()?;
    until_gone(&admin, &format!("{path}/owned")).await?;
    until_gone(&admin, &format!("{path}/owner")).await?;
    assert_eq!(status_of(&admin, &format!("{path}/free")).await?, 200);
    Ok(())
}

fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    })
}

#[tokio::test]
async fn the_garbage_collector_sees_no_projects() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let name = new_namespace(&admin, "unseen").await?;
    let path = "/apis/project.openshift.io/v1/projects";
    for user in
        ["system:kube-controller-manager", "system:serviceaccount:kube-system:generic-garbage-collector"]
    {
        let collector = plane.impersonated(user, &["system:masters", "system:authenticated"])?;
        let list = collector.api.get(path).await?.ok()?;
        assert_eq!(list["items"], json!([]), "{user} sees projects");
        let query =
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watch = collector.api.watch(&format!("{path}?{query}&timeoutSeconds=30")).await?;
        let events = watch.collect_until(20, |event| event.kind == "BOOKMARK").await?;
        assert_eq!(events.len(), 1, "{user} sees {events:?}");
        let annotations = &events[0].object["metadata"]["annotations"];
        assert_eq!(annotations["k8s.io/initial-events-end"], "true");
        collector.api.get(&project_path(&name)).await?.expect_code(200)?;
    }
    Ok(())
}
