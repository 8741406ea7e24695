//! A user without any binding and another's project: nothing is allowed, whichever way she asks.

use anyhow::ensure;
use http::Method;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::objects::project_path;
use serde_json::{Value, json};

use crate::support::{assert_forbidden, may, new_project, newcomer};

const VERBS: [&str; 4] = ["get", "update", "patch", "delete"];

#[tokio::test]
async fn a_stranger_cannot_touch_a_project() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, alice, eve) = (plane.admin()?, newcomer(&plane, "alice")?, newcomer(&plane, "eve")?);
    let name = new_project(&alice, "safe").await?;
    let before = admin.api.get(&project_path(&name)).await?.ok()?;

    try_everything(&eve.api, &eve.name, &name, &before).await?;
    try_everything(eve.direct()?, &eve.name, &name, &before).await?;

    // A project of her own changes nothing about another's.
    let own = new_project(&eve, "eves").await?;
    try_everything(&eve.api, &eve.name, &name, &before).await?;
    try_everything(eve.direct()?, &eve.name, &name, &before).await?;
    for http in [&eve.api, eve.direct()?] {
        http.get(&project_path(&own)).await?.expect_code(200)?;
    }

    let after = admin.api.get(&project_path(&name)).await?.ok()?;
    assert_eq!(before, after);
    Ok(())
}

async fn try_everything(http: &Http, user: &str, name: &str, object: &Value) -> anyhow::Result<()> {
    let path = project_path(name);
    assert_forbidden(&http.get(&path).await?.expect_code(403)?, user);
    assert_forbidden(&http.put(&path, object).await?.expect_code(403)?, user);
    let change = json!({"metadata": {"annotations": {"openshift.io/display-name": "mine"}}});
    assert_forbidden(&http.patch(&path, patch::MERGE, &change).await?.expect_code(403)?, user);
    let change =
        json!([{"op": "add", "path": "/metadata/annotations/openshift.io~1display-name", "value": "mine"}]);
    assert_forbidden(&http.patch(&path, patch::JSON, &change).await?.expect_code(403)?, user);
    assert_forbidden(&http.delete(&path, &json!({})).await?.expect_code(403)?, user);
    // The collection has no deletecollection, and a name in a selector is a name.
    let all = http.delete("/apis/project.openshift.io/v1/projects", &json!({})).await?;
    ensure!(matches!(all.status.as_u16(), 403 | 405), "deletecollection answered {}", all.status);
    let odd = http.request(Method::GET, &format!("{path}/status"), None, bytes::Bytes::new())?;
    ensure!(http.send(odd).await?.status.is_client_error(), "a subresource answered");
    Ok(())
}

#[tokio::test]
async fn access_reviews_say_the_same() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, alice, eve) = (plane.admin()?, newcomer(&plane, "alice")?, newcomer(&plane, "eve")?);
    let hers = new_project(&alice, "hers").await?;
    let own = new_project(&eve, "eves").await?;
    for verb in VERBS {
        for (namespace, name) in [("", hers.as_str()), (&hers, &hers), (&hers, ""), ("", "")] {
            ensure!(
                !may(&admin, &eve.name, verb, namespace, name).await?,
                "{verb} of {name:?} in {namespace:?} is allowed to a stranger"
            );
        }
        ensure!(may(&admin, &eve.name, verb, "", &own).await?, "{verb} of her own is refused");
        ensure!(may(&admin, &alice.name, verb, "", &hers).await?, "{verb} is refused to the owner");
        ensure!(may(&admin, &alice.name, verb, &hers, &hers).await?, "{verb} in the namespace is refused");
        ensure!(!may(&admin, &alice.name, verb, "", "").await?, "{verb} is granted cluster-wide");
    }
    // Listing is for everybody, and shows what one may see.
    for verb in ["list", "watch"] {
        ensure!(may(&admin, &eve.name, verb, "", "").await?, "{verb} is refused");
    }
    Ok(())
}
