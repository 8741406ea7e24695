//! Objects in kube-apiserver, as plain JSON: what the OAuth server reads and writes of them is little.

use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use http::header::CONTENT_TYPE;
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A browser waits for the answer.
const WITHIN: Duration = Duration::from_secs(15);
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Why a request did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code; 0 when there was no answer.
    pub code: u16,
    /// Kubernetes' word for it.
    pub reason: String,
    /// For a person.
    pub message: String,
}

impl ApiError {
    /// Whether there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether somebody else was faster: the object changed, is gone, or is there already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code == 409
    }
}

/// Who sends requests.
#[async_trait]
pub trait Api: Send + Sync + 'static {
    /// Sends one; answers the object.
    ///
    /// # Errors
    /// [`ApiError`], also when there is no answer in time.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError>;
}

impl dyn Api {
    /// The object at `path`, if there is one.
    ///
    /// # Errors
    /// [`ApiError`], but never one that says that there is none.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object in the collection at `path`.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.send(Method::POST, path, Some(object)).await
    }

    /// Replaces the object at `path` if it is still as it was read.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.send(Method::PUT, path, Some(object)).await
    }

    /// Deletes the object at `path` if it is the very one that was read, and says whether it was there to be deleted: of
    /// several who try, one is told so.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn delete_read(&self, path: &str, object: &Value) -> Result<bool, ApiError> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
        match self.send(Method::DELETE, path, Some(&body)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Api for Client {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let none = |message: String| ApiError { code: 0, reason: String::new(), message };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .body(body.map(ToString::to_string).unwrap_or_default().into_bytes())
            .map_err(|error| none(error.to_string()))?;
        match timeout(WITHIN, self.request::<Value>(request)).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(kube::Error::Api(status))) => {
                let (reason, message) = (status.reason.clone(), status.message.clone());
                Err(ApiError { code: status.code, reason, message })
            }
            Ok(Err(error)) => Err(none(error.to_string())),
            Err(_) => Err(none("kube-apiserver did not answer in time".to_owned())),
        }
    }
}

/// A name as a segment of a path.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// The path of a resource of oauth.openshift.io.
#[must_use]
pub fn oauth(resource: &str) -> String {
    format!("/apis/oauth.openshift.io/v1/{resource}")
}

/// The path of an object of oauth.openshift.io.
#[must_use]
pub fn oauth_object(resource: &str, name: &str) -> String {
    format!("{}/{}", oauth(resource), segment(name))
}

/// The path of an object of user.openshift.io.
#[must_use]
pub fn user_object(resource: &str, name: &str) -> String {
    format!("{}/{}", users(resource), segment(name))
}

/// The path of a resource of user.openshift.io.
#[must_use]
pub fn users(resource: &str) -> String {
    format!("/apis/user.openshift.io/v1/{resource}")
}
