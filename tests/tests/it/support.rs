//! Steps that several files take.

use anyhow::ensure;
use picoshift_tests::objects::{PROJECT_REQUESTS, namespace, project_request, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::Value;

/// Somebody new with a certificate of her own, who may request projects.
pub(crate) fn newcomer(plane: &ControlPlane, name: &str) -> anyhow::Result<Actor> {
    plane.by_certificate(&unique(name), Some(picoshift_tests::objects::OAUTH_GROUP))
}

/// A project that `actor` has requested.
pub(crate) async fn new_project(actor: &Actor, prefix: &str) -> anyhow::Result<String> {
    let name = unique(prefix);
    let project = actor.api.post(PROJECT_REQUESTS, &project_request(&name)).await?.expect_code(201)?;
    ensure!(project["metadata"]["name"] == name.as_str(), "another project: {project}");
    Ok(name)
}

/// A namespace that the administrator has made.
pub(crate) async fn new_namespace(admin: &Actor, prefix: &str) -> anyhow::Result<String> {
    let name = unique(prefix);
    admin.api.post("/api/v1/namespaces", &namespace(&name)).await?.expect_code(201)?;
    Ok(name)
}

/// Asks kube-apiserver whether `user` may do `verb` on projects with these further attributes.
pub(crate) async fn may(
    admin: &Actor,
    user: &str,
    verb: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<bool> {
    let review = serde_json::json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated", "system:authenticated:oauth"],
            "resourceAttributes": {"group": "project.openshift.io", "version": "v1", "resource": "projects",
                "verb": verb, "namespace": namespace, "name": name}},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = admin.api.post(path, &review).await?.expect_code(201)?;
    Ok(answer["status"]["allowed"] == true)
}

/// Fails unless `status` is the `Status` of a refusal for `user`.
pub(crate) fn assert_forbidden(status: &Value, user: &str) {
    assert_eq!(status["kind"], "Status", "{status}");
    assert_eq!(status["reason"], "Forbidden", "{status}");
    assert_eq!(status["code"], 403, "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("User \"{user}\" cannot ")), "{message}");
}
