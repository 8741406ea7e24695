//! Objects and paths that tests use again and again.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

/// Path of the projects.
pub const PROJECTS: &str = "/apis/project.openshift.io/v1/projects";
/// Path of the project requests.
pub const PROJECT_REQUESTS: &str = "/apis/project.openshift.io/v1/projectrequests";
/// The group that a caller who came in by OAuth is in.
pub const OAUTH_GROUP: &str = "system:authenticated:oauth";

static NAMES: AtomicU32 = AtomicU32::new(0);

/// A name that no other test of this run has: `PREFIX-PROCESS-COUNT`.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed))
}

/// Path of the project `name`.
pub fn project_path(name: &str) -> String {
    format!("{PROJECTS}/{name}")
}

/// Path of the routes of a namespace.
pub fn routes_path(namespace: &str) -> String {
    format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes")
}

/// A request for the project `name`.
pub fn project_request(name: &str) -> Value {
    json!({
        "apiVersion": "project.openshift.io/v1", "kind": "ProjectRequest",
        "metadata": {"name": name}, "displayName": "A project", "description": "made by a test",
    })
}

/// A route to the service `web` without a host.
pub fn route(name: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": {"name": name}, "spec": {"to": {"kind": "Service", "name": "web"}},
    })
}

/// The same with a host.
pub fn route_with_host(name: &str, host: &str) -> Value {
    let mut route = route(name);
    route["spec"]["host"] = json!(host);
    route
}

/// Path of the image streams of a namespace.
pub fn streams_path(namespace: &str) -> String {
    format!("/apis/image.openshift.io/v1/namespaces/{namespace}/imagestreams")
}

/// An image stream with these spec tags.
pub fn stream(name: &str, tags: &Value) -> Value {
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": name}, "spec": {"tags": tags},
    })
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A binding of the user to a cluster role in one namespace.
pub fn role_binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

/// The `default` router's entry of a route's status.
pub fn ingress(route: &Value) -> Option<&Value> {
    route["status"]["ingress"].as_array()?.iter().find(|entry| entry["routerName"] == "default")
}

/// Status and reason of the `Admitted` condition of the `default` router: `("True", "")`.
pub fn admitted(route: &Value) -> Option<(&str, &str)> {
    let conditions = ingress(route)?["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Admitted")?;
    Some((condition["status"].as_str()?, condition["reason"].as_str().unwrap_or_default()))
}

/// `metadata.name` of the items of a list, in order.
pub fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}
