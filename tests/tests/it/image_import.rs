//! The controller imports what streams point at, once, also where no registry answers.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::metrics::sum;
use picoshift_tests::process::OUR_CONTROLLERS;
use picoshift_tests::tls::{Endpoint, Protocol};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

/// An image in a registry that refuses connections: its port was free a moment ago.
fn nowhere() -> anyhow::Result<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(format!("{}/team/web:1", listener.local_addr()?))
}

fn stream(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": name},
        "spec": {"tags": [{"name": "latest", "from": {"kind": "DockerImage", "name": image}}]},
    })
}

/// Waits until the tag's import has failed for a generation of at least `generation`.
async fn failed(actor: &Actor, path: &str, generation: u64) -> anyhow::Result<Value> {
    let look = || async {
        let stream = actor.api.get(path).await?.expect_code(200)?;
        let condition = &stream["status"]["tags"][0]["conditions"][0];
        let answered = condition["type"] == "ImportSuccess"
            && condition["status"] == "False"
            && condition["generation"].as_u64() >= Some(generation);
        Ok(if answered { Ok(stream.clone()) } else { Err(stream.to_string()) })
    };
    eventually("the import has an answer", 90, look).await
}

#[tokio::test]
async fn where_no_registry_answers_each_tag_is_tried_once() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "offline").await?;
    let streams = format!("/apis/image.openshift.io/v1/namespaces/{namespace}/imagestreams");
    let port = plane.home.component(OUR_CONTROLLERS)?.port.unwrap_or_default();
    let ca = plane.stage.kube.ca.clone();
    let endpoint = Endpoint { url: format!("https://127.0.0.1:{port}"), ca, server_name: None };
    let controllers = Http::new(&endpoint, None, Protocol::Any)?;
    let tried = || async {
        let text = controllers.get("/metrics").await?.text();
        anyhow::Ok(sum(&text, "picoshift_image_imports_total", &[]))
    };
    let before = tried().await?;

    let image = nowhere()?;
    let path = format!("{streams}/first");
    admin.api.post(&streams, &stream("first", &image)).await?.expect_code(201)?;
    let first = failed(&admin, &path, 1).await?;
    // It resolves to what it points at all the same.
    assert_eq!(first["status"]["tags"][0]["items"][0]["dockerImageReference"], image.as_str(), "{first}");

    // News that ask for nothing bring no import: by the time another stream has its answer there was none.
    let note = json!({"metadata": {"annotations": {"note": "hello"}}});
    admin.api.patch(&path, patch::MERGE, &note).await?.expect_code(200)?;
    admin.api.post(&streams, &stream("second", &image)).await?.expect_code(201)?;
    failed(&admin, &format!("{streams}/second"), 1).await?;
    let now = tried().await?;
    ensure!((now - before - 2.0).abs() < 0.5, "{} imports for two tags", now - before);

    // `oc import-image` without a controller's help sets the generation to 0, `oc tag` changes the reference.
    let again = json!([{"op": "replace", "path": "/spec/tags/0/from/name", "value": format!("{image}0")}]);
    let changed = admin.api.patch(&path, patch::JSON, &again).await?.expect_code(200)?;
    let generation = changed["spec"]["tags"][0]["generation"].as_u64().unwrap_or_default();
    failed(&admin, &path, generation).await?;
    let now = tried().await?;
    ensure!((now - before - 3.0).abs() < 0.5, "{} imports for three changes", now - before);
    Ok(())
}
