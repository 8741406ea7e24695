//! Keeps our hands off clusters that are not ours: a real OpenShift has operators that own what we would write, and everything
//! on it that we would remove.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};

use crate::apply::find;
use crate::content::MANAGED_BY;
use crate::failure::Failure;

/// Namespaces that every OpenShift has, and no other cluster.
const NAMESPACES: [&str; 2] = ["openshift-cluster-version", "openshift-kube-apiserver"];
/// What MicroShift, which has neither, says of itself.
const MICROSHIFT: (&str, &str) = ("kube-public", "microshift-version");

/// Fails when the cluster is an OpenShift that is not ours, and when that cannot be told.
pub(crate) async fn ours_or_nobodys(client: &Client) -> Result<()> {
    let why = foreign(client)
        .await
        .context("cannot tell whether the cluster is a real OpenShift, so nothing is done")?;
    match why {
        None => Ok(()),
        Some(why) => Err(Failure::new(
            format!("the cluster is an OpenShift that picoshift did not make: {why}"),
            "name another cluster; picoshift never changes a real OpenShift",
        )
        .into()),
    }
}

/// What shows that the cluster is a foreign OpenShift.
async fn foreign(client: &Client) -> Result<Option<String>> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion"));
    let versions: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    // Where the kind is not served, it is not found either.
    if let Some(version) = find(&versions, "version").await? {
        return Ok((!is_ours(&version.metadata)).then(|| without_label("ClusterVersion version")));
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in NAMESPACES {
        let namespace = find(&namespaces, name).await?;
        if namespace.is_some_and(|namespace| !is_ours(&namespace.metadata)) {
            return Ok(Some(without_label(&format!("Namespace {name}"))));
        }
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), MICROSHIFT.0);
    let found = find(&config_maps, MICROSHIFT.1).await?;
    Ok(found.map(|found| format!("it has the ConfigMap {} of MicroShift", found.name_any())))
}

fn without_label(what: &str) -> String {
    format!("its {what} has not the label {}={}", MANAGED_BY.0, MANAGED_BY.1)
}

/// Whether an object has our label.
pub(crate) fn is_ours(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0)).is_some_and(|by| by == MANAGED_BY.1)
}
