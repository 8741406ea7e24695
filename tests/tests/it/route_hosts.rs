//! Hosts: who may choose one, who holds one, and who gets it next.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{admitted, route, route_with_host, routes_path, unique};
use serde_json::json;

use crate::support::{new_project, newcomer};

#[tokio::test]
async fn the_second_with_a_host_waits_for_the_first_to_go() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, bob) = (newcomer(&plane, "alice")?, newcomer(&plane, "bob")?);
    let (hers, his) = (new_project(&alice, "first").await?, new_project(&bob, "second").await?);
    let host = format!("{}.example.org", unique("claimed"));

    let first = route_with_host("web", &host);
    let first = alice.api.post(&routes_path(&hers), &first).await?.expect_code(201)?;
    assert_eq!(admitted(&first), Some(("True", "")), "{first}");

    let path = routes_path(&his);
    let second = bob.api.post(&path, &route_with_host("web", &host)).await?.expect_code(201)?;
    assert_eq!(admitted(&second), Some(("False", "HostAlreadyClaimed")), "{second}");
    let from = second["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let watch = format!("{path}?watch=true&timeoutSeconds=60&resourceVersion={from}");
    let mut watch = bob.api.watch(&watch).await?;

    alice.api.delete(&format!("{}/web", routes_path(&hers)), &json!({})).await?.expect_code(200)?;
    let event = watch.until(20, |event| event.kind == "MODIFIED").await?;
    assert_eq!(admitted(&event.object), Some(("True", "")), "{:?}", event.object);
    let old: u64 = from.parse()?;
    ensure!(event.revision() > old, "MODIFIED at {} after {old}", event.revision());
    let now = bob.api.get(&format!("{path}/web")).await?.ok()?;
    assert_eq!(now["status"], event.object["status"]);
    assert_eq!(now["metadata"]["resourceVersion"], event.object["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn a_host_cannot_be_changed_by_an_ordinary_user() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "app").await?);
    alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    let one = format!("{path}/web");
    let change = json!({"spec": {"host": format!("{}.example.org", unique("mine"))}});
    let refusal = alice.api.patch(&one, patch::MERGE, &change).await?.expect_code(422)?;
    let cause = &refusal["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.host", "{refusal}");
    let message = cause["message"].as_str().unwrap_or_default();
    ensure!(message.ends_with("you do not have permission to set the host field of the route"), "{message}");
    plane.admin()?.api.patch(&one, patch::MERGE, &change).await?.expect_code(200)?;
    Ok(())
}

#[tokio::test]
async fn a_host_needs_the_permission_to_choose_one() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, bob) = (newcomer(&plane, "alice")?, newcomer(&plane, "bob")?);
    let namespace = new_project(&alice, "app").await?;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "plain"},
        "rules": [{"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["create"]}],
    });
    let admin = plane.admin()?;
    admin.api.post(&format!("{rbac}/roles"), &role).await?.expect_code(201)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "plain"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "plain"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": bob.name}],
    });
    admin.api.post(&format!("{rbac}/rolebindings"), &binding).await?.expect_code(201)?;

    let path = routes_path(&namespace);
    let refusal =
        bob.api.post(&path, &route_with_host("web", "chosen.example.org")).await?.expect_code(422)?;
    let cause = &refusal["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&json!("FieldValueForbidden"), &json!("spec.host")));
    bob.api.post(&path, &route("web")).await?.expect_code(201)?;
    Ok(())
}
