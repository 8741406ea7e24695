//! Secrets of the cluster, read with the server's own identity: for rules that the real servers hold without asking
//! whether the caller may read the secret. Nothing of one is logged.

use std::time::Duration;

use async_trait::async_trait;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::names::path_segment;
use picoshift_machinery::{Object, Status};
use tokio::time::timeout;

/// Bytes of an answer; a secret has at most one MiB.
const MAX_BODY: usize = 16 << 20;
/// Time of a request.
const WITHIN: Duration = Duration::from_secs(30);

/// Tells of which type a secret is.
#[async_trait]
pub trait SecretTypes: Send + Sync {
    /// `type` of a secret.
    ///
    /// # Errors
    /// 404 in kube-apiserver's words where it is not there; 500 where it cannot be read.
    async fn secret_type(&self, namespace: &str, name: &str) -> Result<String, Status>;
}

/// Reads secrets.
#[derive(Clone)]
pub struct Secrets {
    client: Client,
}

impl Secrets {
    /// A reader that asks `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The secrets of one type in a namespace, as kube-apiserver lists them.
    ///
    /// # Errors
    /// 500 where they cannot be read, or are too many: it is the server that was refused, not the caller.
    pub async fn list(&self, namespace: &str, kind: &str) -> Result<Object, Status> {
        let query = format!("?fieldSelector=type%3D{}", encoded(kind));
        self.read(namespace, &query).await.map_err(|error| error.internal("secrets cannot be read"))
    }

    /// What is at `rest` behind the path of a namespace's secrets.
    async fn read(&self, namespace: &str, rest: &str) -> Result<Object, ReadError> {
        let late = || ReadError::Unreachable("no answer in time".to_owned());
        timeout(WITHIN, self.ask(namespace, rest)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn ask(&self, namespace: &str, rest: &str) -> Result<Object, ReadError> {
        let failed = |error: &dyn std::fmt::Display| ReadError::Unreachable(error.to_string());
        let path = format!("/api/v1/namespaces/{}/secrets{rest}", encoded(namespace));
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json")
            .body(kube::client::Body::empty())
            .map_err(|error| failed(&error))?;
        let response = self.client.send(request).await.map_err(|error| failed(&error))?;
        let code = response.status();
        let bytes = Limited::new(response.into_body(), MAX_BODY)
            .collect()
            .await
            .map_err(|error| failed(&error))?
            .to_bytes();
        if code.is_success() {
            return Object::from_slice(&bytes).map_err(|error| failed(&error));
        }
        Err(ReadError::Refused(code, String::from_utf8_lossy(&bytes).trim().to_owned()))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[async_trait]
impl SecretTypes for Secrets {
    async fn secret_type(&self, namespace: &str, name: &str) -> Result<String, Status> {
        let not_found = || Status::not_found("", "secrets", name);
        if name.is_empty() || !path_segment(name).is_empty() {
            return Err(not_found());
        }
        match self.read(namespace, &format!("/{}", encoded(name))).await {
            Ok(secret) => Ok(secret.str_at(&["type"]).to_owned()),
            Err(ReadError::Refused(StatusCode::NOT_FOUND, _)) => Err(not_found()),
            Err(error) => Err(error.internal("the secret cannot be read")),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("kube-apiserver: {0}")]
    Unreachable(String),
    #[error("{0}: {1}")]
    Refused(StatusCode, String),
}

impl ReadError {
    fn internal(self, what: &str) -> Status {
        Status::internal(format_args!("{what}: {self}"))
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;
    use crate::oci::hostile::{Hostile, answer};

    #[tokio::test]
    async fn only_the_secrets_of_a_type_are_read_and_not_without_end() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let long = answer("200 OK", "", &format!("{{\"items\":[\"{}\"]}}", "x".repeat(MAX_BODY)));
        let list = answer("200 OK", "", r#"{"items":[]}"#);
        let server = Hostile::start(&[("/api/v1/namespaces/demo/secrets", &[&list, &long])]).await;
        let config = Config::new(format!("http://{}", server.address).parse().unwrap());
        let secrets = Secrets::new(Client::try_from(config).unwrap());
        secrets.list("demo", "kubernetes.io/dockercfg").await.unwrap();
        assert_eq!(
            server.paths(),
            ["/api/v1/namespaces/demo/secrets?fieldSelector=type%3Dkubernetes%2Eio%2Fdockercfg"]
        );
        let status = secrets.list("demo", "kubernetes.io/dockercfg").await.unwrap_err();
        assert_eq!(status.code, 500);
        assert!(status.message.ends_with("length limit exceeded"), "{}", status.message);
    }
}
