//! What projects ask of kube-apiserver, under the server's own identity: namespaces and one kind of role binding.
//! Errors come back as kube-apiserver said them.

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::names::path_segment;
use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use crate::rest::DeleteOptions;
use crate::rest::options::Propagation;

/// The field manager of our writes; the name that OpenShift's server uses.
const FIELD_MANAGER: &str = "openshift-apiserver";

/// A thin client.
#[derive(Clone)]
pub(crate) struct KubeApi {
    client: Client,
}

impl KubeApi {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// A Namespace.
    pub(crate) async fn namespace(&self, name: &str) -> Result<Object, Status> {
        self.send(Method::GET, &namespace_path(name)?, None).await
    }

    /// Creates a Namespace.
    pub(crate) async fn create_namespace(&self, namespace: &Object, dry_run: bool) -> Result<Object, Status> {
        let path = format!("/api/v1/namespaces?{}", write_query(dry_run));
        self.send(Method::POST, &path, Some(namespace.to_bytes().into())).await
    }

    /// Replaces a Namespace; its resourceVersion is the lock.
    pub(crate) async fn replace_namespace(
        &self,
        name: &str,
        namespace: &Object,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let path = format!("{}?{}", namespace_path(name)?, write_query(dry_run));
        self.send(Method::PUT, &path, Some(namespace.to_bytes().into())).await
    }

    /// Deletes a Namespace; answers the Namespace, or a Status where it is gone at once.
    pub(crate) async fn delete_namespace(
        &self,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Object, Status> {
        let body = delete_body(options).to_string().into_bytes();
        self.send(Method::DELETE, &namespace_path(name)?, Some(body)).await
    }

    /// Creates a RoleBinding in a namespace.
    pub(crate) async fn create_role_binding(
        &self,
        namespace: &str,
        binding: &Value,
    ) -> Result<Object, Status> {
        let namespace = utf8_percent_encode(namespace, NON_ALPHANUMERIC);
        let path = format!(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings?{}",
            write_query(false)
        );
        self.send(Method::POST, &path, Some(binding.to_string().into_bytes())).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Object, Status> {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let request = request
            .body(kube::client::Body::from(body.unwrap_or_default()))
            .map_err(|e| Status::internal(format_args!("request to kube-apiserver: {e}")))?;
        let failed = |e: &dyn std::fmt::Display| Status::internal(format_args!("kube-apiserver: {e}"));
        let response = self.client.send(request).await.map_err(|e| failed(&e))?;
        let code = response.status();
        let bytes = response.into_body().collect().await.map_err(|e| failed(&e))?.to_bytes();
        if code.is_success() {
            return Object::from_slice(&bytes).map_err(|e| failed(&e));
        }
        Err(match serde_json::from_slice::<Status>(&bytes) {
            Ok(mut status) if status.status == "Failure" => {
                status.code = code.as_u16();
                status
            }
            _ => Status::failure(code, "", String::from_utf8_lossy(&bytes).trim()),
        })
    }
}

fn namespace_path(name: &str) -> Result<String, Status> {
    if name.is_empty() || !path_segment(name).is_empty() {
        return Err(Status::not_found("", "namespaces", name));
    }
    Ok(format!("/api/v1/namespaces/{}", utf8_percent_encode(name, NON_ALPHANUMERIC)))
}

fn write_query(dry_run: bool) -> String {
    let dry = if dry_run { "&dryRun=All" } else { "" };
    format!("fieldManager={FIELD_MANAGER}{dry}")
}

fn delete_body(options: &DeleteOptions) -> Value {
    let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if options.dry_run {
        body["dryRun"] = json!(["All"]);
    }
    if let Some(seconds) = options.grace_period_seconds {
        body["gracePeriodSeconds"] = seconds.into();
    }
    if let Some(uid) = &options.preconditions.uid {
        body["preconditions"]["uid"] = uid.as_str().into();
    }
    if let Some(version) = &options.preconditions.resource_version {
        body["preconditions"]["resourceVersion"] = version.as_str().into();
    }
    if let Some(propagation) = options.propagation {
        body["propagationPolicy"] = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
        .into();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::Preconditions;

    #[test]
    fn delete_options_reach_the_namespace() {
        let options = DeleteOptions {
            dry_run: true,
            preconditions: Preconditions { uid: Some("u".into()), resource_version: Some("7".into()) },
            grace_period_seconds: Some(0),
            propagation: Some(Propagation::Foreground),
        };
        assert_eq!(
            delete_body(&options),
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"}, "propagationPolicy": "Foreground"})
        );
    }

    #[test]
    fn names_stay_one_path_segment() {
        assert_eq!(namespace_path("a?b").unwrap(), "/api/v1/namespaces/a%3Fb");
        for name in ["", ".", "..", "a/b", "a%2f"] {
            assert!(namespace_path(name).unwrap_err().is("NotFound"), "{name}");
        }
    }
}
