//! What is measured: namespaces with the same Routes on both sides, and a user who may use them.

use anyhow::ensure;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use picoshift_tests::Actor;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{namespace, role_binding};
use serde_json::{Value, json};

use crate::peer::{CRD_GROUP, Peer};

/// An ordinary user: no group of hers means anything, RBAC gives her both kinds of Routes in the namespaces.
pub(crate) const USER: &str = "bench";
/// How many writes are under way while fixtures are made.
const PARALLEL: usize = 16;

/// Namespace that holds `count` Routes.
pub(crate) fn filled(count: usize) -> String {
    format!("bench-{count}")
}

/// Name of the Route number `number`.
pub(crate) fn route_name(number: usize) -> String {
    format!("route-{number:05}")
}

/// A namespace where the user is admin, and may use the CRD's Routes too.
pub(crate) async fn new_namespace(admin: &Actor, name: &str) -> anyhow::Result<()> {
    admin.api.post("/api/v1/namespaces", &namespace(name)).await?.expect_code(201)?;
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
    for role in ["admin", "bench-routes"] {
        admin.api.post(&bindings, &role_binding(role, role, USER)).await?.expect_code(201)?;
    }
    Ok(())
}

/// The role for the CRD's Routes, what `admin` has for ours.
pub(crate) async fn new_role(admin: &Actor) -> anyhow::Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "bench-routes"},
        "rules": [{"apiGroups": [CRD_GROUP], "resources": ["routes", "routes/status"], "verbs": ["*"]}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    admin.api.post(path, &role).await?.expect_code(201).map(drop)
}

/// `count` Routes in a namespace of their own, on both sides, equal but for uid, time and version.
pub(crate) async fn fill(admin: &Actor, count: usize) -> anyhow::Result<()> {
    let namespace = filled(count);
    new_namespace(admin, &namespace).await?;
    create(admin, Peer::Ours, &namespace, count).await?;
    let list = admin.api.get(&Peer::Ours.routes(&namespace)).await?.ok()?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(items.len() == count, "{} Routes, not {count}", items.len());
    let copies = items.iter().map(|item| copy(admin, &namespace, item));
    stream::iter(copies).buffer_unordered(PARALLEL).try_collect().await
}

/// `count` Routes on one side.
pub(crate) async fn create(admin: &Actor, peer: Peer, namespace: &str, count: usize) -> anyhow::Result<()> {
    let path = peer.routes(namespace);
    let create = |number: usize| {
        let (path, body) = (path.clone(), peer.route(&route_name(number), namespace));
        async move { admin.api.post(&path, &body).await?.expect_code(201).map(drop) }
    };
    stream::iter((0..count).map(create)).buffer_unordered(PARALLEL).try_collect().await
}

/// The same object under the CRD, its status too. What only kube-apiserver adds to a CRD's objects, the record of
/// managed fields, is taken off again: the peers shall serve the same bytes.
async fn copy(admin: &Actor, namespace: &str, route: &Value) -> anyhow::Result<()> {
    let path = Peer::Crd.routes(namespace);
    let name = route["metadata"]["name"].as_str().unwrap_or_default();
    let body = json!({
        "apiVersion": format!("{CRD_GROUP}/v1"), "kind": "Route", "spec": route["spec"], "status": route["status"],
        "metadata": {
            "name": name, "labels": route["metadata"]["labels"], "annotations": route["metadata"]["annotations"],
        },
    });
    let mut made = admin.api.post(&path, &body).await?.expect_code(201)?;
    made["status"] = route["status"].clone();
    admin.api.put(&format!("{path}/{name}/status"), &made).await?.expect_code(200)?;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let copy = admin.api.patch(&format!("{path}/{name}"), patch::MERGE, &reset).await?.expect_code(200)?;
    ensure!(copy["status"] == route["status"] && copy["spec"] == route["spec"], "another object: {copy}");
    Ok(())
}
