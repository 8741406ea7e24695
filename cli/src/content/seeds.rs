//! The objects of a cluster: `deploy/openshift`, completed with what is known only here.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::definitions::Definition;
use super::facts::Facts;
use crate::yaml;

const FILES: [(&str, &str); 7] = [
    ("namespaces.yaml", include_str!("../../../deploy/openshift/namespaces.yaml")),
    ("config.yaml", include_str!("../../../deploy/openshift/config.yaml")),
    ("operators.yaml", include_str!("../../../deploy/openshift/operators.yaml")),
    ("ingress.yaml", include_str!("../../../deploy/openshift/ingress.yaml")),
    ("console.yaml", include_str!("../../../deploy/openshift/console.yaml")),
    ("installer.yaml", include_str!("../../../deploy/openshift/installer.yaml")),
    ("olm.yaml", include_str!("../../../deploy/openshift/olm.yaml")),
];
/// What the build took from the API's module.
const FEATURE_GATES: &str = include_str!(concat!(env!("OUT_DIR"), "/feature-gates.json"));
const CLUSTER_OPERATORS: &str = include_str!("../../../deploy/openshift/clusteroperators.yaml");

/// A line of `clusteroperators.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterOperator {
    name: String,
    /// The first version of OpenShift that has it.
    from: Option<String>,
    /// Namespaces that it looks after.
    #[serde(default)]
    namespaces: Vec<String>,
    /// What is behind it here; without it, nothing.
    does: Option<String>,
}

/// The objects of a cluster whose kinds are Kubernetes' own or defined.
pub(super) fn of(facts: &Facts, definitions: &[Definition]) -> Result<Vec<Value>> {
    let mut seeds = cluster_operators(facts)?;
    for (name, file) in FILES {
        seeds.extend(yaml::documents(file).context(name)?);
    }
    for seed in &mut seeds {
        facts.fill(seed);
        match seed["kind"].as_str() {
            Some("ClusterVersion") => cluster_version(seed, facts),
            Some("FeatureGate") => feature_gates(seed, facts)?,
            _ => {}
        }
    }
    seeds.retain(|seed| is_defined(seed, definitions));
    Ok(seeds)
}

/// Whether the cluster has an object's kind: a version of OpenShift has not the kinds of a later one.
fn is_defined(seed: &Value, definitions: &[Definition]) -> bool {
    let group =
        seed["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let of_kubernetes = group.is_none_or(|group| !group.contains('.'));
    of_kubernetes
        || definitions.iter().any(|one| Some(one.group.as_str()) == group && seed["kind"] == one.kind)
}

/// Every version that the cluster was is an update that went well.
fn cluster_version(seed: &mut Value, facts: &Facts) {
    let image = |version| format!("quay.io/openshift-release-dev/ocp-release:{version}-x86_64");
    let history = facts.installed.history.iter().map(|release| {
        json!({
            "state": "Completed", "version": release.version.to_string(), "image": image(release.version.to_string()),
            "startedTime": release.since.to_string(), "completionTime": release.since.to_string(), "verified": false,
        })
    });
    seed["status"]["history"] = history.collect();
    seed["status"]["desired"]["image"] = json!(image(facts.version().to_string()));
}

/// Components look for the entry of their own version.
fn feature_gates(seed: &mut Value, facts: &Facts) -> Result<()> {
    seed["status"] = serde_json::from_str(FEATURE_GATES).context("the build's feature gates are damaged")?;
    for entry in seed["status"]["featureGates"].as_array_mut().into_iter().flatten() {
        entry["version"] = json!(facts.version().to_string());
    }
    Ok(())
}

fn cluster_operators(facts: &Facts) -> Result<Vec<Value>> {
    let list = yaml::documents(CLUSTER_OPERATORS)?.pop().context("clusteroperators.yaml is empty")?;
    let list: Vec<ClusterOperator> = serde_json::from_value(list).context("clusteroperators.yaml")?;
    let present = list.into_iter().filter(|one| facts.version().is_within(one.from.as_deref(), None));
    Ok(present.map(|one| cluster_operator(&one, facts)).collect())
}

fn cluster_operator(operator: &ClusterOperator, facts: &Facts) -> Value {
    let (reason, message) = match &operator.does {
        Some(does) => ("AsExpected", does.as_str()),
        None => ("NotRun", "picoshift runs no such operator: its API is served, and nothing acts on it"),
    };
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": facts.since(),
        })
    };
    let related =
        operator.namespaces.iter().map(|name| json!({"group": "", "resource": "namespaces", "name": name}));
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": operator.name},
        "spec": {},
        "status": {
            "conditions": [
                condition("Available", "True"), condition("Progressing", "False"),
                condition("Degraded", "False"), condition("Upgradeable", "True"),
            ],
            "versions": [{"name": "operator", "version": facts.version().to_string()}],
            "relatedObjects": related.collect::<Vec<_>>(),
        },
    })
}

#[cfg(test)]
mod tests;
