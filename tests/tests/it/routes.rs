//! Routes: defaults, generated hosts, admission in the very answer, generations, tables.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{admitted, ingress, names, route, routes_path, unique};
use serde_json::{Value, json};

use crate::support::{new_project, newcomer};

#[tokio::test]
async fn a_route_without_host_is_admitted_in_the_answer() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let namespace = new_project(&alice, "app").await?;
    let path = routes_path(&namespace);

    let answer = alice.api.post(&path, &route("web")).await?;
    let made = answer.expect_code(201)?;
    let host = made["spec"]["host"].as_str().unwrap_or_default();
    ensure!(host.starts_with(&format!("web-{namespace}.")), "host {host}");
    assert_eq!(made["metadata"]["annotations"]["openshift.io/host.generated"], "true");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["spec"]["to"], json!({"kind": "Service", "name": "web", "weight": 100}));
    assert_eq!(made["spec"]["wildcardPolicy"], "None");
    assert_eq!(admitted(&made), Some(("True", "")), "{made}");
    let entry = ingress(&made).cloned().unwrap_or_default();
    assert_eq!(entry["host"], host);
    ensure!(entry["routerCanonicalHostname"].is_string(), "no canonical host name: {entry}");
    ensure!(entry["conditions"][0]["lastTransitionTime"].is_string(), "no time: {entry}");

    // The same bytes again, by every way to ask.
    let again = alice.api.get(&format!("{path}/web")).await?;
    assert_eq!(again.text(), answer.text());
    assert_eq!(alice.direct()?.get(&format!("{path}/web")).await?.text(), answer.text());
    let list = alice.api.get(&path).await?.ok()?;
    assert_eq!(without_type(&list["items"][0]), without_type(&made));

    let other = alice.api.post(&path, &route("a.b")).await?.expect_code(201)?;
    let domain = host.split_once('.').map(|(_, domain)| domain).unwrap_or_default();
    assert_eq!(other["spec"]["host"], format!("a-b-{namespace}.{domain}"));
    Ok(())
}

fn without_type(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object
}

#[tokio::test]
async fn generation_counts_changes_of_the_spec_only() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "app").await?);
    let made = alice.api.post(&path, &route("web")).await?.expect_code(201)?;
    let one = format!("{path}/web");

    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = alice.api.patch(&one, patch::MERGE, &labelled).await?.ok()?;
    assert_eq!(labelled["metadata"]["generation"], 1);
    let moved = json!([{"op": "replace", "path": "/spec/to/weight", "value": 7}]);
    let moved = alice.api.patch(&one, patch::JSON, &moved).await?.ok()?;
    assert_eq!(moved["metadata"]["generation"], 2);

    // Nothing changed, nothing written.
    let same = alice.api.patch(&one, patch::MERGE, &json!({"spec": {"to": {"weight": 7}}})).await?.ok()?;
    assert_eq!(same["metadata"]["resourceVersion"], moved["metadata"]["resourceVersion"]);

    // An old resourceVersion is a conflict, none at all is invalid.
    let conflict = alice.api.put(&one, &made).await?.expect_code(409)?;
    assert_eq!(conflict["reason"], "Conflict");
    let mut bare = moved.clone();
    bare["metadata"]["resourceVersion"] = Value::Null;
    alice.api.put(&one, &bare).await?.expect_code(422)?;
    Ok(())
}

#[tokio::test]
async fn invalid_routes_are_refused_with_the_real_words() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "app").await?);
    let refuse = |spec: Value, message: &'static str| {
        let (alice, path) = (alice.clone(), path.clone());
        async move {
            let mut body = route("bad");
            body["spec"] = spec;
            let answer = alice.api.post(&path, &body).await?.expect_code(422)?;
            assert_eq!(answer["message"], format!("Route.route.openshift.io \"bad\" is invalid: {message}"));
            anyhow::Ok(())
        }
    };
    refuse(json!({}), "spec.to.name: Required value").await?;
    let to = json!({"kind": "Service", "name": "web"});
    refuse(
        json!({"to": {"kind": "Pod", "name": "web"}}),
        "spec.to.kind: Invalid value: \"Pod\": must reference a Service",
    )
    .await?;
    refuse(
        json!({"to": {"kind": "Service", "name": "web", "weight": 300}}),
        "spec.to.weight: Invalid value: 300: weight must be an integer between 0 and 256",
    )
    .await?;
    refuse(
        json!({"path": "nolead", "to": to}),
        "spec.path: Invalid value: \"nolead\": path must begin with /",
    )
    .await?;
    refuse(
        json!({"path": "/p", "to": to, "tls": {"termination": "passthrough"}}),
        "spec.path: Invalid value: \"/p\": passthrough termination does not support paths",
    )
    .await
}

#[tokio::test]
async fn a_missing_namespace_is_not_found() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let nowhere = unique("nowhere");
    let answer = plane.admin()?.api.post(&routes_path(&nowhere), &route("web")).await?.expect_code(404)?;
    assert_eq!(answer["message"], format!("namespaces \"{nowhere}\" not found"));
    Ok(())
}

#[tokio::test]
async fn tables_and_selectors_answer_as_openshift() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "app").await?);
    for name in ["one", "two"] {
        let mut body = route(name);
        body["metadata"]["labels"] = json!({"name": name});
        body["spec"]["path"] = json!(format!("/{name}"));
        alice.api.post(&path, &body).await?.expect_code(201)?;
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = alice.api.get_as(&path, table).await?.ok()?;
    let columns: Vec<_> = table["columnDefinitions"].as_array().into_iter().flatten().collect();
    let titles: Vec<_> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(titles, ["Name", "Host/Port", "Path", "Services", "Port", "Termination", "Wildcard"]);
    assert_eq!(table["rows"][0]["cells"][0], "one");

    for query in
        ["labelSelector=name%3Dtwo", "fieldSelector=spec.path%3D/two", "fieldSelector=metadata.name%3Dtwo"]
    {
        let list = alice.api.get(&format!("{path}?{query}")).await?.ok()?;
        assert_eq!(names(&list), ["two"], "{query}");
    }
    let refusal = alice.api.get(&format!("{path}?fieldSelector=spec.nothing%3Dx")).await?.expect_code(400)?;
    assert_eq!(
        refusal["message"],
        r#""spec.nothing" is not a known field selector: only "metadata.name", "metadata.namespace""#
    );

    let first = alice.api.get(&format!("{path}?limit=1")).await?.ok()?;
    assert_eq!(names(&first), ["one"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap_or_default();
    let second = alice.api.get(&format!("{path}?limit=1&continue={token}")).await?.ok()?;
    assert_eq!(names(&second), ["two"]);
    Ok(())
}
