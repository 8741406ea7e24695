//! Status: the `default` router's entry is computed, other routers' entries are kept beside it.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{admitted, route, routes_path};
use serde_json::{Value, json};

use crate::support::{new_project, newcomer};

fn routers(route: &Value) -> Vec<&str> {
    let entries = route["status"]["ingress"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| entry["routerName"].as_str()).collect()
}

#[tokio::test]
async fn another_routers_entry_stays_beside_ours() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, admin) = (newcomer(&plane, "alice")?, plane.admin()?);
    let path = routes_path(&new_project(&alice, "app").await?);
    let made = alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    let one = format!("{path}/web");

    let mut reported = made.clone();
    let entry = json!({
        "host": made["spec"]["host"], "routerName": "sharded", "wildcardPolicy": "None",
        "conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
    });
    if let Some(entries) = reported["status"]["ingress"].as_array_mut() {
        entries.push(entry.clone());
    }
    reported["spec"]["path"] = json!("/ignored");
    let reported = admin.api.put(&format!("{one}/status"), &reported).await?.expect_code(200)?;
    ensure!(reported["spec"]["path"].is_null(), "a status update changed the spec");
    assert_eq!(reported["metadata"]["generation"], 1);

    let now = alice.api.get(&one).await?.ok()?;
    let mut names = routers(&now);
    names.sort_unstable();
    assert_eq!(names, ["default", "sharded"]);
    assert_eq!(admitted(&now), Some(("True", "")));
    let kept =
        now["status"]["ingress"].as_array().into_iter().flatten().find(|it| it["routerName"] == "sharded");
    assert_eq!(kept, Some(&entry));

    // Writing the spec leaves the status alone.
    let change = json!({"spec": {"path": "/p"}, "status": {"ingress": []}});
    let changed = alice.api.patch(&one, patch::MERGE, &change).await?.ok()?;
    let mut names = routers(&changed);
    names.sort_unstable();
    assert_eq!(names, ["default", "sharded"]);
    assert_eq!(changed["metadata"]["generation"], 2);
    Ok(())
}

#[tokio::test]
async fn nobody_writes_our_routers_entry() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, admin) = (newcomer(&plane, "alice")?, plane.admin()?);
    let path = routes_path(&new_project(&alice, "app").await?);
    let mut made = alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    made["status"]["ingress"] = json!([]);
    let after = admin.api.put(&format!("{path}/web/status"), &made).await?.expect_code(200)?;
    assert_eq!(admitted(&after), Some(("True", "")), "{after}");
    Ok(())
}
