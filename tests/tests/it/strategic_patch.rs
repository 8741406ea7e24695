//! Strategic merge patches, of every kind of storage, by the API and by kubectl.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{project_path, route, routes_path, stream, streams_path, unique};
use serde_json::{Value, json};

use crate::support::{new_project, newcomer};

#[tokio::test]
async fn kubectl_patches_labels_and_edits_routes() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "strategic").await?;
    let path = routes_path(&project);
    alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    let kubectl = &alice.kubectl;
    // The default type of `kubectl patch`.
    let body = r#"{"metadata":{"finalizers":["example.com/a","example.com/b"]},"spec":{"path":"/p","to":{"weight":7}}}"#;
    kubectl.ok(&["patch", "route", "web", "-n", &project, "-p", body]).await?;
    let body =
        r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]},"spec":{"path":null}}"#;
    kubectl.ok(&["patch", "route", "web", "-n", &project, "-p", body]).await?;
    kubectl.ok(&["label", "route", "web", "-n", &project, "a=b"]).await?;
    kubectl.ok(&["annotate", "route", "web", "-n", &project, "c=d"]).await?;
    kubectl.edit("sed -i s/weight:.7/weight:\\ 9/", &["route", "web", "-n", &project]).await?;
    let found = alice.api.get(&format!("{path}/web")).await?.ok()?;
    assert_eq!(found["metadata"]["finalizers"], json!(["example.com/b"]));
    assert_eq!(
        (&found["metadata"]["labels"]["a"], &found["metadata"]["annotations"]["c"]),
        (&json!("b"), &json!("d"))
    );
    assert_eq!((&found["spec"]["to"]["weight"], found["spec"].get("path")), (&json!(9), None));
    let said = kubectl
        .run(&["patch", "route", "web", "-n", &project, "-p", r#"{"spec":{"to":{"$retainKeys":1}}}"#])
        .await?;
    ensure!(!said.success && said.stderr.contains("invalid patch format of retainKeys"), "{}", said.stderr);
    let body = r#"{"metadata":{"finalizers":null}}"#;
    kubectl.ok(&["patch", "route", "web", "-n", &project, "-p", body]).await?;
    Ok(())
}

#[tokio::test]
async fn all_storages_take_them() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let (admin, alice) = (plane.admin()?, newcomer(&plane, "alice")?);
    let project = new_project(&alice, "strategic").await?;
    let try_one = async |path: &str, body: Value| -> anyhow::Result<Value> {
        admin.api.patch(path, patch::STRATEGIC, &body).await?.expect_code(200)
    };
    let described = json!({"metadata": {"annotations": {"openshift.io/description": "d"}}});
    let found = try_one(&project_path(&project), described).await?;
    assert_eq!(found["metadata"]["annotations"]["openshift.io/description"], "d");

    let streams = streams_path(&project);
    let tag = |name: &str| json!({"name": name, "reference": true, "from": {"kind": "DockerImage", "name": "quay.io/a/b:c"}});
    admin.api.post(&streams, &stream("app", &json!([tag("1"), tag("2")]))).await?.expect_code(201)?;
    // What `oc set image-lookup` sends.
    let app = format!("{streams}/app");
    let found = try_one(&app, json!({"spec": {"lookupPolicy": {"local": true}}})).await?;
    assert_eq!(found["spec"]["lookupPolicy"]["local"], true);
    let tags = json!([{"name": "1", "$patch": "delete"}, tag("3"), {"name": "2", "annotations": {"a": "b"}}]);
    let order = json!([{"name": "3"}, {"name": "2"}]);
    let found = try_one(&app, json!({"spec": {"tags": tags, "$setElementOrder/tags": order}})).await?;
    let names: Vec<&Value> =
        found["spec"]["tags"].as_array().into_iter().flatten().map(|tag| &tag["name"]).collect();
    // The tags of a stream are sorted by name, whatever the patch says.
    assert_eq!(names, ["2", "3"]);
    assert_eq!(found["spec"]["tags"][0]["annotations"], json!({"a": "b"}));
    let of_tag = format!("/apis/image.openshift.io/v1/namespaces/{project}/imagestreamtags/app:2");
    let found = try_one(&of_tag, json!({"metadata": {"annotations": {"a": null, "c": "d"}}})).await?;
    assert_eq!(found["tag"]["annotations"], json!({"c": "d"}));

    let name = unique("user");
    let users = "/apis/user.openshift.io/v1/users";
    let user = json!({"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": name}});
    admin.api.post(users, &user).await?.expect_code(201)?;
    let found = try_one(&format!("{users}/{name}"), json!({"fullName": "F"})).await?;
    assert_eq!(found["fullName"], "F");
    admin.api.delete(&format!("{users}/{name}"), &json!({})).await?.ok()?;

    let missing = admin.api.patch(&format!("{streams}/none"), patch::STRATEGIC, &json!({})).await?;
    assert_eq!(missing.status, 404);
    Ok(())
}
