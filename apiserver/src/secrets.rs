//! Secrets of the cluster, read with the server's own identity: for rules that the real servers hold without asking
//! whether the caller may read the secret. Nothing of one is logged.

use async_trait::async_trait;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::names::path_segment;
use picoshift_machinery::{Object, Status};

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

    /// All secrets of a namespace, as kube-apiserver lists them.
    ///
    /// # Errors
    /// 500 where they cannot be read: it is the server that was refused, not the caller.
    pub async fn list(&self, namespace: &str) -> Result<Object, Status> {
        self.read(namespace, "").await.map_err(|error| error.internal("secrets cannot be read"))
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Object, ReadError> {
        let failed = |error: &dyn std::fmt::Display| ReadError::Unreachable(error.to_string());
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut path = format!("/api/v1/namespaces/{}/secrets", encoded(namespace));
        if !name.is_empty() {
            path = format!("{path}/{}", encoded(name));
        }
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json")
            .body(kube::client::Body::empty())
            .map_err(|error| failed(&error))?;
        let response = self.client.send(request).await.map_err(|error| failed(&error))?;
        let code = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
        if code.is_success() {
            return Object::from_slice(&bytes).map_err(|error| failed(&error));
        }
        Err(ReadError::Refused(code, String::from_utf8_lossy(&bytes).trim().to_owned()))
    }
}

#[async_trait]
impl SecretTypes for Secrets {
    async fn secret_type(&self, namespace: &str, name: &str) -> Result<String, Status> {
        let not_found = || Status::not_found("", "secrets", name);
        if name.is_empty() || !path_segment(name).is_empty() {
            return Err(not_found());
        }
        match self.read(namespace, name).await {
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
