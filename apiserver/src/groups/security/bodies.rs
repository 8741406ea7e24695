//! The bodies of reviews: what is filled into their pod template, and what is wrong with them.
//!
//! A pod template is completed and checked as far as SCCs and readers need it: its containers, their names and images. All
//! else that makes a pod invalid is found when the pod is made, by kube-apiserver.

use std::collections::HashSet;

use picoshift_machinery::{FieldError, Object, names};
use serde_json::{Map, Value, json};

const SPEC: &str = "spec.template.spec";

/// Fills in what Kubernetes' defaults fill into any pod.
pub(super) fn complete(review: &mut Object) {
    let Some(pod) = review.0.get_mut("spec").and_then(|spec| spec["template"]["spec"].as_object_mut()) else {
        return;
    };
    fill(
        pod,
        [
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ],
    );
    for list in ["initContainers", "containers"] {
        for container in pod.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let policy = if is_latest(container) { "Always" } else { "IfNotPresent" };
            fill(
                container,
                [
                    ("resources", json!({})),
                    ("terminationMessagePath", json!("/dev/termination-log")),
                    ("terminationMessagePolicy", json!("File")),
                    ("imagePullPolicy", json!(policy)),
                ],
            );
        }
    }
}

fn fill<const N: usize>(object: &mut Map<String, Value>, defaults: [(&str, Value); N]) {
    for (field, default) in defaults {
        let value = object.entry(field).or_insert(Value::Null);
        if value.is_null() || value == "" {
            *value = default;
        }
    }
}

/// Whether a container's image is named without a digest and with no other tag than `latest`.
fn is_latest(container: &Map<String, Value>) -> bool {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// What is wrong with a review, its own fields aside.
pub(super) fn check(review: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let pod = review.at(&["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let mut seen = HashSet::new();
    let containers = pod["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{SPEC}.containers"), ""));
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in pod[list].as_array().into_iter().flatten().enumerate() {
            let path = format!("{SPEC}.{list}[{index}]");
            let name = container["name"].as_str().unwrap_or_default();
            let why = names::dns1123_label(name);
            if name.is_empty() {
                errors.push(FieldError::required(format!("{path}.name"), ""));
            } else if !why.is_empty() {
                errors.push(FieldError::invalid_str(format!("{path}.name"), name, why.join(", ")));
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), name));
            }
            if container["image"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::required(format!("{path}.image"), ""));
            }
        }
    }
    errors
}

/// What is wrong with a review's metadata, which must be empty but for its namespace.
pub(super) fn check_metadata(review: &Object) -> Option<FieldError> {
    let metadata = review.at(&["metadata"]).and_then(Value::as_object)?;
    let ours = |field: &str| field == "managedFields" || field == "namespace";
    let empty = metadata.iter().all(|(field, value)| ours(field) || value.is_null());
    (!empty).then(|| FieldError::invalid("metadata", &json!(metadata), "must be empty"))
}

/// What is wrong with the names of service accounts.
pub(super) fn check_accounts(accounts: &[String]) -> Vec<FieldError> {
    let check = |(index, name): (usize, &String)| {
        let why = names::dns1123_subdomain(name);
        let field = format!("spec.serviceAccountNames[{index}]");
        if name.is_empty() {
            return Some(FieldError::invalid_str(field, name, ""));
        }
        (!why.is_empty()).then(|| FieldError::invalid_str(field, name, why.join(", ")))
    };
    accounts.iter().enumerate().filter_map(check).collect()
}
