//! Server-side apply of our objects, and the wait until the APIs that they register are served.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use http::{Request, header};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

/// Who owns the fields that we set.
pub(crate) const MANAGER: &str = "picoshift";
/// kube-apiserver rewrites an APIService with this label from a CRD of its group.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// How kubectl asks for all groups at once.
pub(crate) const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// How often, and after which pause, is asked again what was answered with "too many requests".
const TRIES: usize = 50;
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// Roles that kube-controller-manager puts together, our rules among them.
const AGGREGATED: [&str; 4] = ["admin", "edit", "view", "basic-user"];

/// Applies objects, namespaces first; returns how many were changed.
pub(crate) async fn apply(client: &Client, objects: &[Value]) -> Result<usize> {
    let (namespaces, others): (Vec<_>, Vec<_>) =
        objects.iter().partition(|object| object["kind"] == "Namespace");
    let mut changed = 0;
    for group in [namespaces, others] {
        let results = try_join_all(group.into_iter().map(|object| apply_one(client, object))).await?;
        changed += results.into_iter().filter(|changed| *changed).count();
    }
    Ok(changed)
}

/// Makes those objects that are not there, and leaves the others as they are; returns how many were made.
pub(crate) async fn create_missing(client: &Client, objects: &[Value]) -> Result<usize> {
    let mut made = 0;
    for object in objects {
        let (api, name) = api(client, object)?;
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        match api
            .create(&PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }, &object)
            .await
        {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            created => {
                created.with_context(|| format!("cannot create {name}"))?;
                made += 1;
            }
        }
    }
    Ok(made)
}

/// An object, if it is there; of a kind that is not served, none is. The first who asks for a kind is told to ask again, as
/// kube-apiserver makes its cache only then.
pub(crate) async fn find<K>(api: &Api<K>, name: &str) -> Result<Option<K>, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut tries = 0;
    loop {
        match api.get(name).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(kube::Error::Api(status)) if status.code == 429 && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(TRY_AGAIN).await;
            }
            found => return found.map(Some),
        }
    }
}

async fn apply_one(client: &Client, object: &Value) -> Result<bool> {
    let (api, name) = api(client, object)?;
    let what = || format!("cannot apply {} {name}", object["kind"].as_str().unwrap_or_default());
    let before = api.get_opt(&name).await.with_context(what)?;
    let automanaged = before.as_ref().is_some_and(|before| before.labels().contains_key(AUTOMANAGED));
    if automanaged {
        // The label and what kube-apiserver made of it go in one write: between two it would write again.
        let mut patch = object.clone();
        patch["metadata"]["labels"][AUTOMANAGED] = Value::Null;
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        api.patch(&name, &params, &Patch::Merge(&patch)).await.with_context(what)?;
    }
    let params = PatchParams::apply(MANAGER).force();
    let after = api.patch(&name, &params, &Patch::Apply(object)).await.with_context(what)?;
    Ok(before.and_then(|before| before.resource_version()) != after.resource_version())
}

fn api(client: &Client, object: &Value) -> Result<(Api<DynamicObject>, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let types = TypeMeta {
        api_version: text(&object["apiVersion"]).context("an object has no apiVersion")?,
        kind: text(&object["kind"]).context("an object has no kind")?,
    };
    let kind = GroupVersionKind::try_from(&types)?;
    let resource = match kind.kind.as_str() {
        // Its singular ends in an s.
        "SecurityContextConstraints" => {
            ApiResource::from_gvk_with_plural(&kind, "securitycontextconstraints")
        }
        _ => ApiResource::from_gvk(&kind),
    };
    let name = text(&object["metadata"]["name"]).context("an object has no name")?;
    let api = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok((api, name))
}

/// Waits until each APIService among the objects is available.
pub(crate) async fn await_available(client: &Client, objects: &[Value]) -> Result<()> {
    let services = objects.iter().filter(|object| object["kind"] == "APIService");
    try_join_all(services.map(|object| async move {
        let (api, name) = api(client, object)?;
        await_condition(api, &name, |object: Option<&DynamicObject>| object.is_some_and(is_available))
            .await?;
        Ok::<_, anyhow::Error>(())
    }))
    .await?;
    Ok(())
}

/// Waits until kube-apiserver's discovery has each group of the APIServices among the objects, and forwards to it: until then
/// kubectl does not know its resources; right after a change a group can be Available and not yet discovered anew, and a
/// kube-apiserver that was started again has both from before and reaches nobody yet.
pub(crate) async fn await_discovered(client: &Client, objects: &[Value]) -> Result<()> {
    let groups: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"] == "APIService")
        .map(|object| &object["spec"]["group"])
        .collect();
    let mut pause = Duration::from_millis(20);
    loop {
        let request = Request::get("/apis").header(header::ACCEPT, DISCOVERY).body(Vec::new())?;
        let discovery: Value = client.request(request).await?;
        if groups.iter().all(|group| is_discovered(&discovery, group)) && are_reached(client, objects).await {
            return Ok(());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

async fn are_reached(client: &Client, objects: &[Value]) -> bool {
    for spec in objects.iter().filter(|object| object["kind"] == "APIService").map(|object| &object["spec"]) {
        let [group, version] = ["group", "version"].map(|field| spec[field].as_str().unwrap_or_default());
        let Ok(request) = Request::get(format!("/apis/{group}/{version}")).body(Vec::new()) else {
            return false;
        };
        if client.request::<Value>(request).await.is_err() {
            return false;
        }
    }
    true
}

fn is_discovered(discovery: &Value, group: &Value) -> bool {
    let current = |version: &Value| {
        version["freshness"] == "Current"
            && version["resources"].as_array().is_some_and(|list| !list.is_empty())
    };
    let items = discovery["items"].as_array();
    items.into_iter().flatten().any(|item| {
        item["metadata"]["name"] == *group
            && item["versions"].as_array().is_some_and(|versions| versions.iter().all(current))
    })
}

/// Waits until kube-controller-manager has put our rules into the roles that people get.
pub(crate) async fn await_aggregated(client: &Client) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    try_join_all(AGGREGATED.map(|name| await_condition(roles.clone(), name, has_project_rule))).await?;
    Ok(())
}

fn has_project_rule(role: Option<&ClusterRole>) -> bool {
    let rules = role.and_then(|role| role.rules.as_ref());
    let groups = rules.into_iter().flatten().flat_map(|rule| rule.api_groups.iter().flatten());
    groups.into_iter().any(|group| group == "project.openshift.io")
}

fn is_available(object: &DynamicObject) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let available = json!("Available");
    conditions
        .is_some_and(|list| list.iter().any(|entry| entry["type"] == available && entry["status"] == "True"))
}

/// Why the APIServices among the objects are not available, for people.
pub(crate) async fn unavailable(client: &Client, objects: &[Value]) -> Vec<String> {
    let mut reasons = Vec::new();
    for object in objects.iter().filter(|object| object["kind"] == "APIService") {
        let Ok((api, name)) = api(client, object) else { continue };
        let Ok(found) = api.get(&name).await else { continue };
        if !is_available(&found) {
            let message =
                found.data["status"]["conditions"][0]["message"].as_str().unwrap_or("not checked yet");
            reasons.push(format!("{name}: {message}"));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_discovered_with_all_its_versions() {
        let discovery = |freshness: &str, resources: Value| {
            json!({"items": [{
                "metadata": {"name": "route.openshift.io"},
                "versions": [{"version": "v1", "resources": resources, "freshness": freshness}],
            }]})
        };
        let resources = json!([{"resource": "routes"}]);
        let found = |discovery: &Value, group: &str| is_discovered(discovery, &json!(group));
        assert!(found(&discovery("Current", resources.clone()), "route.openshift.io"));
        assert!(!found(&discovery("Current", resources.clone()), "project.openshift.io"));
        assert!(!found(&discovery("Stale", resources), "route.openshift.io"));
        assert!(!found(&discovery("Current", json!([])), "route.openshift.io"));
        assert!(!found(&json!({}), "route.openshift.io"));
    }
}
