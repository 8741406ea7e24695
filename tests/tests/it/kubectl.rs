//! Plain kubectl: what a person types.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::objects::{role_binding, unique};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{new_namespace, new_project, newcomer};

#[tokio::test]
async fn api_resources_and_explain_know_both_groups() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let kubectl = plane.admin()?.kubectl;
    let routes = kubectl.ok(&["api-resources", "--api-group=route.openshift.io", "--no-headers"]).await?;
    ensure!(routes.split_whitespace().eq(["routes", "route.openshift.io/v1", "true", "Route"]), "{routes}");
    let projects = kubectl.ok(&["api-resources", "--api-group=project.openshift.io", "--no-headers"]).await?;
    ensure!(projects.contains("projects ") && projects.contains("projectrequests "), "{projects}");

    let tls = kubectl.ok(&["explain", "route.spec.tls"]).await?;
    for field in
        ["termination", "insecureEdgeTerminationPolicy", "destinationCACertificate", "externalCertificate"]
    {
        ensure!(tls.contains(field), "explain does not know {field}:\n{tls}");
    }
    ensure!(
        kubectl.ok(&["explain", "projectrequest.displayName"]).await?.contains("string"),
        "no displayName"
    );
    Ok(())
}

#[tokio::test]
async fn a_users_day() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "day").await?;
    let kubectl = &alice.kubectl;
    let listed = kubectl.ok(&["get", "projects", "--no-headers"]).await?;
    let words: Vec<_> = listed.split_whitespace().collect();
    assert_eq!(words, [project.as_str(), "A", "project", "Active"]);

    let file = plane.stage.directory.join(unique("route")).with_extension("yaml");
    let text = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: web\nspec:\n  to:\n    \
                kind: Service\n    name: web\n";
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy().into_owned();
    assert_eq!(
        kubectl.ok(&["create", "-n", &project, "-f", &file]).await?,
        "route.route.openshift.io/web created\n"
    );
    // A validated write of a field that is none.
    std::fs::write(&file, format!("{text}  nosuch: 1\n"))?;
    let said = kubectl.run(&["create", "-n", &project, "-f", &file]).await?;
    ensure!(!said.success && said.stderr.contains("unknown field \"spec.nosuch\""), "{}", said.stderr);

    let routes = kubectl.ok(&["get", "routes", "-n", &project]).await?;
    ensure!(routes.starts_with("NAME"), "{routes}");
    ensure!(routes.contains("HOST/PORT") && routes.contains(&format!("web-{project}.")), "{routes}");
    let patch = r#"{"spec":{"to":{"weight":1}}}"#;
    kubectl.ok(&["patch", "route", "web", "-n", &project, "--type=merge", "-p", patch]).await?;
    kubectl.ok(&["annotate", "project", &project, "openshift.io/description=changed", "--overwrite"]).await?;
    let deleted = kubectl.ok(&["delete", "project", &project]).await?;
    ensure!(deleted.contains("deleted"), "{deleted}");
    Ok(())
}

#[tokio::test]
async fn get_with_watch_shows_a_change() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "watched").await?;
    let mut watching = alice.kubectl.spawn(&["get", "projects", "-w", "--no-headers"])?;
    let stdout = watching.stdout.take().context("no output")?;
    let mut lines = BufReader::new(stdout).lines();
    let mut line = async || -> anyhow::Result<String> {
        let next = tokio::time::timeout(Duration::from_secs(30), lines.next_line());
        next.await.context("kubectl shows nothing")??.context("kubectl ended")
    };
    ensure!(line().await?.contains(&project), "the project is not in the first line");
    let name = format!("openshift.io/display-name={}", unique("Renamed"));
    alice.kubectl.ok(&["annotate", "project", &project, &name, "--overwrite"]).await?;
    let renamed = line().await?;
    ensure!(renamed.contains("Renamed"), "{renamed}");
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_routes_inside_goes() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "full").await?;
    let owner = newcomer(&plane, "owner")?;
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&bindings, &role_binding("owner", "admin", &owner.name)).await?.expect_code(201)?;
    let path = picoshift_tests::objects::routes_path(&namespace);
    for number in 0..20 {
        let body = picoshift_tests::objects::route(&format!("r{number}"));
        owner.api.post(&path, &body).await?.expect_code(201)?;
    }
    admin.kubectl.ok(&["delete", "namespace", &namespace, "--wait=false"]).await?;
    let look = || async {
        let answer = admin.api.get(&format!("/api/v1/namespaces/{namespace}")).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the namespace goes", 60, look).await?;
    let left = admin.api.get("/apis/route.openshift.io/v1/routes").await?.ok()?;
    let left = left["items"].as_array().into_iter().flatten();
    assert_eq!(left.filter(|route| route["metadata"]["namespace"] == namespace.as_str()).count(), 0);
    Ok(())
}
