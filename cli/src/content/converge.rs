//! Applies the content: only what is missing or was written otherwise before, and never what is somebody else's.
//!
//! Each object carries a digest of what was applied. An equal one means that there is nothing to do: what an administrator has
//! changed since then stays, as on OpenShift.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::MANAGED_BY;
use super::definitions::Definition;
use crate::apply::{MANAGER, find};

/// The annotation with the digest of what was applied.
pub(crate) const DIGEST: &str = "picoshift.io/content";
/// How many writes are under way at once: more only wait for each other in kube-apiserver.
const AT_ONCE: usize = 6;
/// How long a kind may take from its definition until it is served.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
/// The pause before a kind is tried again that is established and not served yet.
const PAUSE: Duration = Duration::from_millis(50);

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Objects that were written.
    pub(crate) written: BTreeSet<String>,
    /// Objects that are there without our label, and were left.
    pub(crate) foreign: Vec<String>,
}

impl Outcome {
    fn of(all: Vec<(String, Done)>) -> Self {
        let mut outcome = Self::default();
        for (name, done) in all {
            match done {
                Done::Written => drop(outcome.written.insert(name)),
                Done::Foreign => outcome.foreign.push(name),
                Done::Unchanged => {}
            }
        }
        outcome
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Written,
    Unchanged,
    Foreign,
}

/// Kinds by group and name.
pub(crate) type Kinds<'a> = BTreeMap<(&'a str, &'a str), &'a Definition>;

/// Applies content to a cluster.
pub(crate) struct Converge<'a> {
    client: &'a Client,
    definitions: Api<CustomResourceDefinition>,
}

impl<'a> Converge<'a> {
    /// To a cluster.
    pub(crate) fn new(client: &'a Client) -> Self {
        Self { client, definitions: Api::all(client.clone()) }
    }

    /// Defines kinds, without waiting until they are served.
    pub(crate) async fn definitions(&self, wanted: &[Definition]) -> Result<Outcome> {
        let existing = self.definitions.list_metadata(&ListParams::default()).await;
        let existing = existing.context("cannot list the CustomResourceDefinitions")?.items;
        let existing: BTreeMap<_, _> = existing
            .into_iter()
            .filter_map(|object| Some((object.metadata.name.clone()?, object.metadata)))
            .collect();
        let existing = &existing;
        let written = stream::iter(wanted).map(|definition| async move {
            let mut object = definition.object()?;
            let digest = mark(&mut object);
            let done = state(existing.get(&definition.name), &digest);
            if done == Done::Written {
                let params = PatchParams::apply(MANAGER).force();
                let applied = self.definitions.patch(&definition.name, &params, &Patch::Apply(&object)).await;
                applied.with_context(|| format!("cannot define {}", definition.name))?;
            }
            Ok::<_, anyhow::Error>((label(definition), done))
        });
        Ok(Outcome::of(written.buffer_unordered(AT_ONCE).try_collect().await?))
    }

    /// Waits until kinds that were written now are established; others are already.
    pub(crate) async fn await_established(
        &self,
        definitions: &[Definition],
        defined: &Outcome,
    ) -> Result<()> {
        let waits = stream::iter(definitions).map(|definition| self.established(definition, defined));
        waits.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn established(&self, definition: &Definition, defined: &Outcome) -> Result<()> {
        if !defined.written.contains(&label(definition)) {
            return Ok(());
        }
        let name = &definition.name;
        let wait = await_condition(self.definitions.clone(), name, conditions::is_crd_established());
        let wait = tokio::time::timeout(SERVED_WITHIN, wait).await;
        wait.with_context(|| format!("{name} is not established"))??;
        Ok(())
    }

    /// Makes objects with their status: Namespaces first, the others each as soon as its kind is served.
    pub(crate) async fn seeds(
        &self,
        wanted: &[Value],
        kinds: &Kinds<'_>,
        defined: &Outcome,
    ) -> Result<Outcome> {
        let (namespaces, others): (Vec<_>, Vec<_>) =
            wanted.iter().partition(|object| object["kind"] == "Namespace");
        let mut done = Vec::new();
        for group in [namespaces, others] {
            let applied = stream::iter(group).map(|object| self.seed(object, kinds, defined));
            done.extend(applied.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?);
        }
        Ok(Outcome::of(done))
    }

    async fn seed(&self, wanted: &Value, kinds: &Kinds<'_>, defined: &Outcome) -> Result<(String, Done)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&wanted["kind"]), text(&wanted["metadata"]["name"]));
        let version = text(&wanted["apiVersion"]);
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let of = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        let label = match wanted["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{of} {namespace}/{name}"),
            None => format!("{of} {name}"),
        };
        let gvk = GroupVersionKind::gvk(group, version, &kind);
        let definition = kinds.get(&(group, kind.as_str()));
        let resource = match definition {
            Some(definition) => ApiResource::from_gvk_with_plural(&gvk, &definition.plural),
            // Kubernetes' own have regular plurals.
            None => ApiResource::from_gvk(&gvk),
        };
        let api: Api<DynamicObject> = match wanted["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        if let Some(definition) = definition {
            self.established(definition, defined).await?;
        }
        let has_status = definition.is_some_and(|definition| definition.has_status);
        let seed = Seed { api: &api, name: &name, wanted, has_status };
        let done = match tokio::time::timeout(SERVED_WITHIN, seed.converge()).await {
            Ok(done) => done.with_context(|| format!("cannot apply {label}"))?,
            Err(_) => anyhow::bail!("cannot apply {label}: its kind is not served"),
        };
        Ok((label, done))
    }
}

/// An object to be made.
struct Seed<'a> {
    api: &'a Api<DynamicObject>,
    name: &'a str,
    wanted: &'a Value,
    /// Whether its status is written apart.
    has_status: bool,
}

impl Seed<'_> {
    /// Looks and does what there is to do; a kind that is established but not served yet is waited for.
    async fn converge(&self) -> Result<Done> {
        let mut object = self.wanted.clone();
        let digest = mark(&mut object);
        let status = match object.as_object_mut() {
            Some(fields) if self.has_status => fields.remove("status"),
            _ => None,
        };
        let before = find(self.api, self.name).await?;
        let mut done = state(before.as_ref().map(kube::Resource::meta), &digest);
        // An earlier run was interrupted between the two writes.
        let lacks_status = |before: &DynamicObject| status.is_some() && before.data["status"].is_null();
        if done == Done::Unchanged && before.as_ref().is_some_and(lacks_status) {
            done = Done::Written;
        }
        if done != Done::Written {
            return Ok(done);
        }
        let params = PatchParams::apply(MANAGER).force();
        loop {
            match self.api.patch(self.name, &params, &Patch::Apply(&object)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => tokio::time::sleep(PAUSE).await,
                applied => break drop(applied?),
            }
        }
        if let Some(status) = status {
            let patch = json!({
                "apiVersion": object["apiVersion"], "kind": object["kind"],
                "metadata": {"name": self.name}, "status": status,
            });
            self.api.patch_status(self.name, &params, &Patch::Apply(&patch)).await.context("its status")?;
        }
        Ok(Done::Written)
    }
}

fn label(definition: &Definition) -> String {
    format!("CustomResourceDefinition {}", definition.name)
}

/// What is to be done about an object.
fn state(existing: Option<&ObjectMeta>, digest: &str) -> Done {
    let Some(metadata) = existing else { return Done::Written };
    let has = |map: &Option<BTreeMap<String, String>>, key: &str, value: &str| {
        map.as_ref().and_then(|map| map.get(key)).is_some_and(|found| found == value)
    };
    match () {
        () if !has(&metadata.labels, MANAGED_BY.0, MANAGED_BY.1) => Done::Foreign,
        () if has(&metadata.annotations, DIGEST, digest) => Done::Unchanged,
        () => Done::Written,
    }
}

/// Marks an object as ours, and with the digest of what it is to be; returns that.
fn mark(object: &mut Value) -> String {
    object["metadata"]["labels"][MANAGED_BY.0] = json!(MANAGED_BY.1);
    let hash = Sha256::digest(object.to_string());
    let digest: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    object["metadata"]["annotations"][DIGEST] = json!(digest);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(object: &Value) -> ObjectMeta {
        serde_json::from_value(object["metadata"].clone()).unwrap()
    }

    #[test]
    fn what_was_applied_is_left_alone_until_we_want_something_else() {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"b": 1}});
        let digest = mark(&mut object);
        assert_eq!(state(None, &digest), Done::Written);
        assert_eq!(state(Some(&metadata(&object)), &digest), Done::Unchanged);
        let other = mark(&mut json!({"metadata": {"name": "a"}, "spec": {"b": 2}}));
        assert_eq!(state(Some(&metadata(&object)), &other), Done::Written);
    }

    #[test]
    fn what_has_not_our_label_is_somebody_elses() {
        let mut object = json!({"metadata": {"name": "a"}});
        let digest = mark(&mut object);
        object["metadata"]["labels"][MANAGED_BY.0] = json!("Helm");
        assert_eq!(state(Some(&metadata(&object)), &digest), Done::Foreign);
        object["metadata"]["labels"] = Value::Null;
        assert_eq!(state(Some(&metadata(&object)), &digest), Done::Foreign);
    }
}
