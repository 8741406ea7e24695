//! What is measured with: namespaces with the same objects on both sides, and a user who may use them.

use std::collections::HashSet;
use std::future::Future;

use anyhow::{Context as _, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use picoshift_tests::Actor;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::objects::{namespace, role_binding};
use serde_json::{Value, json};

use crate::crd;
use crate::subject::{Peer, Subject};

/// An ordinary user: no group of hers means anything, RBAC gives her both kinds of objects in the namespaces.
pub(crate) const USER: &str = "bench";
/// How many writes are under way while fixtures are made.
const PARALLEL: usize = 16;
/// Bytes by which copies may differ in length from ours: the group's name, a digit more in the revision.
const SLACK: usize = 16;

/// Makes fixtures, each when it is first needed.
pub(crate) struct Fixtures {
    admin: Actor,
    made: HashSet<String>,
}

impl Fixtures {
    /// Nothing is made yet.
    pub(crate) fn new(admin: Actor) -> Self {
        Self { admin, made: HashSet::new() }
    }

    /// A namespace where the user is admin, and may use the CRD's objects too. Makes the CRD before the first one.
    pub(crate) async fn namespace(&mut self, subject: &Subject, name: &str) -> anyhow::Result<()> {
        if self.made.insert(format!("CRD {}", subject.plural)) {
            crd::install(&self.admin, subject).await?;
            self.role(subject).await?;
        }
        if self.made.insert(format!("namespace {name}")) {
            self.admin.api.post("/api/v1/namespaces", &namespace(name)).await?.expect_code(201)?;
            let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
            for role in ["admin", &role_name(subject)] {
                self.admin.api.post(&bindings, &role_binding(role, role, USER)).await?.expect_code(201)?;
            }
        }
        Ok(())
    }

    /// `count` objects of ours in a namespace of their own.
    pub(crate) async fn ours(&mut self, subject: &Subject, count: usize) -> anyhow::Result<()> {
        let namespace = subject.filled(count);
        self.namespace(subject, &namespace).await?;
        if self.made.insert(format!("{count} {}", subject.plural)) {
            eprintln!("making {count} {}", subject.plural);
            let path = subject.path(Peer::Ours, &namespace);
            let body = |number| subject.object(Peer::Ours, &subject.name(number), &namespace);
            create(self.admin.direct()?, &path, count, body).await?;
        }
        Ok(())
    }

    /// The same on both sides, equal but for uid, time and version.
    pub(crate) async fn both(&mut self, subject: &Subject, count: usize) -> anyhow::Result<()> {
        self.ours(subject, count).await?;
        if !self.made.insert(format!("copies of {count} {}", subject.plural)) {
            return Ok(());
        }
        eprintln!("copying them into the CRD");
        let namespace = subject.filled(count);
        let list = self.admin.direct()?.get(&subject.path(Peer::Ours, &namespace)).await?.ok()?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        ensure!(items.len() == count, "{} {}, not {count}", items.len(), subject.plural);
        all(items.iter().map(|item| copy(&self.admin, subject, &namespace, item))).await?;
        let path = |peer| subject.object_path(peer, count, 0);
        let ours = self.admin.direct()?.get(&path(Peer::Ours)).await?.body.len();
        let copied = self.admin.api.get(&path(Peer::Crd)).await?.body.len();
        eprintln!("{} of {ours} bytes, {copied} in the CRD", subject.plural);
        ensure!(ours.abs_diff(copied) <= SLACK, "the copies differ");
        Ok(())
    }

    /// Deletes all of our objects of a kind, which is not measured any more.
    pub(crate) async fn clear(&self, subject: &Subject) -> anyhow::Result<()> {
        let everywhere = format!("/apis/{}/v1/{}", subject.group, subject.plural);
        let list = self.admin.direct()?.get(&everywhere).await?.ok()?;
        let items = list["items"].as_array().into_iter().flatten();
        let namespaces: HashSet<_> =
            items.filter_map(|item| item["metadata"]["namespace"].as_str()).collect();
        for namespace in namespaces {
            let path = subject.path(Peer::Ours, namespace);
            self.admin.direct()?.delete(&path, &json!({})).await?.ok()?;
        }
        Ok(())
    }

    /// The role for the objects of both sides.
    async fn role(&self, subject: &Subject) -> anyhow::Result<()> {
        let plural = subject.plural;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": role_name(subject)},
            "rules": [{
                "apiGroups": [subject.group, subject.crd_group], "verbs": ["*"],
                "resources": [plural, format!("{plural}/status")],
            }],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        self.admin.api.post(path, &role).await?.expect_code(201).map(drop)
    }
}

fn role_name(subject: &Subject) -> String {
    format!("bench-{}", subject.plural)
}

/// Creates `count` objects, of which `body` gives number N.
pub(crate) async fn create(
    api: &Http,
    path: &str,
    count: usize,
    body: impl Fn(usize) -> Value,
) -> anyhow::Result<()> {
    let create = |number| {
        let body = body(number);
        async move { api.post(path, &body).await?.expect_code(201).map(drop) }
    };
    all((0..count).map(create)).await
}

async fn all<F: Future<Output = anyhow::Result<()>>>(writes: impl Iterator<Item = F>) -> anyhow::Result<()> {
    stream::iter(writes).buffer_unordered(PARALLEL).try_collect().await
}

/// The same object under the CRD, its status too. The records of managed fields, which differ, are taken off on both
/// sides: the peers shall serve the same bytes.
async fn copy(admin: &Actor, subject: &Subject, namespace: &str, original: &Value) -> anyhow::Result<()> {
    let path = subject.path(Peer::Crd, namespace);
    let name = original["metadata"]["name"].as_str().context("an object without a name")?;
    let mut body = subject.object(Peer::Crd, name, namespace);
    for part in ["labels", "annotations"] {
        body["metadata"][part] = original["metadata"][part].clone();
    }
    body["spec"] = original["spec"].clone();
    let mut made = admin.api.post(&path, &body).await?.expect_code(201)?;
    made["status"] = original["status"].clone();
    admin.api.put(&format!("{path}/{name}/status"), &made).await?.expect_code(200)?;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let own = format!("{}/{name}", subject.path(Peer::Ours, namespace));
    admin.direct()?.patch(&own, patch::MERGE, &reset).await?.expect_code(200)?;
    let copy = admin.api.patch(&format!("{path}/{name}"), patch::MERGE, &reset).await?.expect_code(200)?;
    ensure!(
        copy["status"] == original["status"] && copy["spec"] == original["spec"],
        "another object: {copy}"
    );
    Ok(())
}
