//! What kube-apiserver and kube-controller-manager think of us, by their own words.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::process::{CONTROLLER_MANAGER, KUBE_APISERVER};

/// Errors that a server which other tests have killed causes for as long as it is away.
const WHILE_AWAY: [&str; 5] = ["503", "connection refused", "service unavailable", "EOF", "connection reset"];

#[tokio::test]
async fn schemas_are_merged_without_an_error() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let merged = || async {
        let document = admin.api.get("/openapi/v2").await?.ok()?;
        let route = &document["definitions"]["com.github.openshift.api.route.v1.Route"];
        let project = &document["definitions"]["com.github.openshift.api.project.v1.Project"];
        Ok(if route.is_object() && project.is_object() { Ok(()) } else { Err("not merged yet".to_owned()) })
    };
    eventually("kube-apiserver merges /openapi/v2", 60, merged).await?;
    let index = admin.api.get("/openapi/v3").await?.ok()?;
    let groups = ["authorization", "image", "oauth", "project", "route", "security", "user"];
    for group in groups {
        let path = format!("apis/{group}.openshift.io/v1");
        let relative = index["paths"][&path]["serverRelativeURL"].as_str().unwrap_or_default();
        ensure!(relative.contains("hash="), "{path}: {relative:?}");
        let document = admin.api.get(relative).await?.ok()?;
        ensure!(document["components"]["schemas"].is_object(), "{path} has no schemas");
    }
    let log = plane.home.component(KUBE_APISERVER)?.log_text()?;
    let errors: Vec<_> = log.lines().filter(|line| is_error(line) && about_openapi(line)).collect();
    ensure!(errors.is_empty(), "kube-apiserver complains:\n{}", errors.join("\n"));
    Ok(())
}

fn is_error(line: &str) -> bool {
    line.starts_with('E') || line.starts_with('F')
}

fn about_openapi(line: &str) -> bool {
    line.to_lowercase().contains("openapi") && !WHILE_AWAY.iter().any(|reason| line.contains(reason))
}

#[tokio::test]
async fn the_garbage_collector_has_synced_all_monitors() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let synced = || async {
        let log = plane.home.component(CONTROLLER_MANAGER)?.log_text()?.to_lowercase();
        let said = log.contains("all resource monitors have synced");
        Ok(if said { Ok(()) } else { Err("kube-controller-manager has not said so".to_owned()) })
    };
    eventually("all resource monitors have synced", 90, synced).await
}

#[tokio::test]
async fn the_api_services_are_available_and_discovered() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let groups = ["authorization", "image", "oauth", "project", "route", "security", "user"];
    for group in groups {
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}.openshift.io");
        let service = admin.api.get(&path).await?.ok()?;
        let conditions = service["status"]["conditions"].as_array().into_iter().flatten();
        let mut available = conditions.filter(|condition| condition["type"] == "Available");
        ensure!(available.any(|condition| condition["status"] == "True"), "{service}");
    }
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for http in [&admin.api, admin.direct()?] {
        let document = http.get_as("/apis", accept).await?.ok()?;
        assert_eq!(document["kind"], "APIGroupDiscoveryList");
        let items = document["items"].as_array().into_iter().flatten();
        let names = items.filter_map(|item| item["metadata"]["name"].as_str());
        let names: Vec<&str> = names.filter_map(|name| name.strip_suffix(".openshift.io")).collect();
        ensure!(groups.iter().all(|group| names.contains(group)), "{names:?}");
        let legacy = http.get("/apis/route.openshift.io/v1").await?.ok()?;
        assert_eq!(legacy["kind"], "APIResourceList");
    }
    Ok(())
}
