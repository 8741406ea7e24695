//! What projects ask of kube-apiserver, under the server's own identity: namespaces and one kind of role binding.
//! Errors come back as kube-apiserver said them.

use http::{Method, Request};
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::names::path_segment;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use crate::kube_api::{self, FIELD_MANAGER, delete_body};
use crate::rest::DeleteOptions;

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
        let request = Request::builder().method(method).uri(path).body(body.unwrap_or_default());
        let request =
            request.map_err(|e| Status::internal(format_args!("request to kube-apiserver: {e}")))?;
        kube_api::send(&self.client, request).await
    }
}

fn namespace_path(name: &str) -> Result<String, Status> {
    if name.is_empty() || !path_segment(name).is_empty() {
        return Err(Status::not_found("", "namespaces", name));
    }
    Ok(format!("/api/v1/namespaces/{}", utf8_percent_encode(name, NON_ALPHANUMERIC)))
}

fn write_query(dry_run: bool) -> String {
    kube_api::write_query(FIELD_MANAGER, dry_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_path_segment() {
        assert_eq!(namespace_path("a?b").unwrap(), "/api/v1/namespaces/a%3Fb");
        for name in ["", ".", "..", "a/b", "a%2f"] {
            assert!(namespace_path(name).unwrap_err().is("NotFound"), "{name}");
        }
    }
}
