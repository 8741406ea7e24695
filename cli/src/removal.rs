//! Removes from a cluster what has our label, and nothing else: a Namespace or a definition that somebody else's objects depend
//! on stays, and it is said.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{Request, header};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Preconditions};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::Value;

use crate::apply::{DISCOVERY, MANAGER};
use crate::guard::is_ours;

/// How many requests are under way at once.
const AT_ONCE: usize = 6;
/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long a Namespace or a definition may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(120);
/// Kinds that say what happens elsewhere: they hold nothing.
const BY_THE_WAY: [&str; 4] = ["events", "leases", "endpoints", "endpointslices"];
/// Who writes objects that every Namespace gets by itself.
const BY_ITSELF: [&str; 3] = [MANAGER, "kube-controller-manager", "kube-apiserver"];
/// Objects that our controllers, which write under no name, and Kubernetes' make in Namespaces: kind and name.
const MADE_BY_CONTROLLERS: [(&str, &str); 11] = [
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
    ("RoleBinding", "system:image-pullers"),
    ("RoleBinding", "system:image-builders"),
    ("RoleBinding", "system:deployers"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ConfigMap", "v4-0-config-system-metadata"),
    ("Secret", "v4-0-config-system-session"),
    ("ConfigMap", "oauth-serving-cert"),
    ("ConfigMap", "oauth-openshift"),
];

/// A kind that the cluster serves.
#[derive(Debug, Clone)]
struct Kind {
    resource: ApiResource,
    namespaced: bool,
}

/// An object that is to go.
#[derive(Debug)]
struct Ours {
    kind: usize,
    namespace: Option<String>,
    name: String,
    uid: String,
}

/// What is to be removed.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    kinds: Vec<Kind>,
    ours: Vec<Ours>,
    /// An object that is somebody else's, for each Namespace that has one, and for each definition by its name.
    used: BTreeMap<String, String>,
}

impl Removal {
    /// Looks through everything that the cluster serves, without the groups that our own server answers for.
    pub(crate) async fn plan(client: &Client) -> Result<Self> {
        let kinds = kinds(client).await?;
        let mut plan = Self::default();
        let lists = stream::iter(kinds.iter().enumerate()).map(|(at, kind)| async move {
            let objects = list(client, &kind.resource).await;
            objects
                .map(|objects| (at, objects))
                .with_context(|| format!("cannot list {}", kind.resource.plural))
        });
        let lists: Vec<_> = lists.buffer_unordered(AT_ONCE).try_collect().await?;
        for (at, objects) in lists {
            for object in objects {
                plan.sort(at, &kinds[at].resource, object);
            }
        }
        plan.kinds = kinds;
        plan.forget_what_is_used();
        let rank = |ours: &Ours| rank(&plan.kinds[ours.kind].resource.kind);
        plan.ours.sort_by_key(rank);
        Ok(plan)
    }

    fn sort(&mut self, kind: usize, resource: &ApiResource, metadata: ObjectMeta) {
        let (Some(name), Some(uid)) = (metadata.name.clone(), metadata.uid.clone()) else { return };
        if is_ours(&metadata) {
            self.ours.push(Ours { kind, namespace: metadata.namespace, name, uid });
            return;
        }
        let what = || match &metadata.namespace {
            Some(namespace) => format!("{} {namespace}/{name}", resource.kind),
            None => format!("{} {name}", resource.kind),
        };
        // What has an owner goes with it, and counts where its owner does.
        let owned = metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty());
        if owned || BY_THE_WAY.contains(&resource.plural.as_str()) {
            return;
        }
        self.used.entry(format!("{}.{}", resource.plural, resource.group)).or_insert_with(what);
        if let Some(namespace) =
            metadata.namespace.as_ref().filter(|_| !came_by_itself(&resource.kind, &metadata))
        {
            self.used.entry(format!("namespaces/{namespace}")).or_insert_with(what);
        }
    }

    fn forget_what_is_used(&mut self) {
        let keys: BTreeSet<String> = self.ours.iter().filter_map(|ours| self.key(ours)).collect();
        self.used.retain(|key, _| keys.contains(key));
        let ours = std::mem::take(&mut self.ours);
        let goes = |ours: &Ours| self.key(ours).is_none_or(|key| !self.used.contains_key(&key));
        self.ours = ours.into_iter().filter(goes).collect();
    }

    /// By what others depend on an object.
    fn key(&self, ours: &Ours) -> Option<String> {
        match self.kinds[ours.kind].resource.kind.as_str() {
            "Namespace" => Some(format!("namespaces/{}", ours.name)),
            "CustomResourceDefinition" => Some(ours.name.clone()),
            _ => None,
        }
    }

    /// How many objects are to go.
    pub(crate) fn count(&self) -> usize {
        self.ours.len()
    }

    /// What stays although it is ours, for people.
    pub(crate) fn kept(&self) -> impl Iterator<Item = String> {
        self.used.iter().map(|(kept, by)| format!("{kept} stays: {by} is somebody else's"))
    }

    /// Removes it; says how many objects.
    pub(crate) async fn run(&self, client: &Client) -> Result<usize> {
        for ours in self.ours.chunk_by(|one, other| self.rank_of(one) == self.rank_of(other)) {
            let deletions = stream::iter(ours).map(|ours| self.delete(client, ours));
            deletions.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        }
        let lasting = self.ours.iter().filter(|ours| self.key(ours).is_some());
        let waits = stream::iter(lasting).map(|ours| async move {
            let gone = await_condition(self.api(client, ours), &ours.name, conditions::is_deleted(&ours.uid));
            let gone = tokio::time::timeout(GONE_WITHIN, gone).await;
            gone.with_context(|| format!("{} is still there: something holds it", ours.name))??;
            Ok::<_, anyhow::Error>(())
        });
        waits.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        Ok(self.ours.len())
    }

    async fn delete(&self, client: &Client, ours: &Ours) -> Result<()> {
        let uid = Preconditions { uid: Some(ours.uid.clone()), resource_version: None };
        let params = DeleteParams { preconditions: Some(uid), ..DeleteParams::background() };
        match self.api(client, ours).delete(&ours.name, &params).await {
            // It went with something else, or another took its place.
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            deleted => deleted.map(drop).with_context(|| {
                format!("cannot remove {} {}", self.kinds[ours.kind].resource.kind, ours.name)
            }),
        }
    }

    fn rank_of(&self, ours: &Ours) -> u8 {
        rank(&self.kinds[ours.kind].resource.kind)
    }

    fn api(&self, client: &Client, ours: &Ours) -> Api<DynamicObject> {
        let kind = &self.kinds[ours.kind];
        match ours.namespace.as_ref().filter(|_| kind.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind.resource),
            None => Api::all_with(client.clone(), &kind.resource),
        }
    }
}

/// In which order kinds go. First what others' requests pass through; roles last, since our own programs need theirs.
fn rank(kind: &str) -> u8 {
    match kind {
        "APIService" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => 0,
        "Namespace" => 2,
        "CustomResourceDefinition" => 3,
        "ClusterRole" | "ClusterRoleBinding" => 4,
        _ => 1,
    }
}

/// Whether a Namespace gets such an object without anybody's doing.
fn came_by_itself(kind: &str, metadata: &ObjectMeta) -> bool {
    let name = metadata.name.as_deref().unwrap_or_default();
    if MADE_BY_CONTROLLERS.contains(&(kind, name)) {
        return true;
    }
    let writers = metadata.managed_fields.as_deref().unwrap_or_default();
    let by_itself = |writer: Option<&str>| writer.is_some_and(|writer| BY_ITSELF.contains(&writer));
    !writers.is_empty() && writers.iter().all(|writer| by_itself(writer.manager.as_deref()))
}

/// The kinds that can be listed and deleted, each in one version.
async fn kinds(client: &Client) -> Result<Vec<Kind>> {
    let mut found = Vec::new();
    let ours = registered_by_us(client).await?;
    for path in ["/api", "/apis"] {
        let request = Request::get(path).header(header::ACCEPT, DISCOVERY).body(Vec::new())?;
        let document: Value =
            client.request(request).await.context("cannot learn what the cluster serves")?;
        for group in document["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            if !ours.contains(name) {
                found.extend(kinds_of(name, group));
            }
        }
    }
    Ok(found)
}

/// The kinds of a group in discovery, each in the first version that has it.
fn kinds_of(group: &str, document: &Value) -> Vec<Kind> {
    let (mut seen, mut kinds) = (BTreeSet::new(), Vec::new());
    for version in document["versions"].as_array().into_iter().flatten() {
        for resource in version["resources"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let verbs = resource["verbs"].as_array();
            let can = |verb: &str| verbs.is_some_and(|verbs| verbs.iter().any(|one| one == verb));
            let plural = text(&resource["resource"]);
            if !can("list") || !can("delete") || !seen.insert(plural.clone()) {
                continue;
            }
            let gvk = GroupVersionKind::gvk(
                group,
                &text(&version["version"]),
                &text(&resource["responseKind"]["kind"]),
            );
            let namespaced = resource["scope"] == "Namespaced";
            kinds.push(Kind { resource: ApiResource::from_gvk_with_plural(&gvk, &plural), namespaced });
        }
    }
    kinds
}

/// The groups that our own server answers for: what it keeps is not the cluster's.
async fn registered_by_us(client: &Client) -> Result<BTreeSet<String>> {
    let gvk = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let services: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let services = services.list(&ListParams::default()).await.context("cannot list the APIServices")?;
    let ours = services.into_iter().filter(|service| is_ours(&service.metadata));
    Ok(ours.filter_map(|service| service.data["spec"]["group"].as_str().map(str::to_owned)).collect())
}

/// The metadata of all objects of a kind.
async fn list(client: &Client, resource: &ApiResource) -> Result<Vec<ObjectMeta>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let (mut params, mut found) = (ListParams::default().limit(PAGE), Vec::new());
    loop {
        let page = match api.list_metadata(&params).await {
            // It was taken away meanwhile, or is not meant to be listed.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => return Ok(found),
            page => page?,
        };
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        found.extend(page.items.into_iter().map(|object| object.metadata));
        match next {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests;
