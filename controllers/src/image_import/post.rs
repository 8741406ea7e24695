//! Sends ImageStreamImports, and says what the answer means.

use std::time::Duration;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

/// An answer is awaited that long, as openshift-controller-manager does. Our server ends an import after 15 minutes and
/// its request after 20.
const WITHIN: Duration = Duration::from_secs(3600);

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The same request would fail again.
    #[error("{0}")]
    Refused(String),
    /// It may go well later.
    #[error("{0}")]
    Failed(String),
}

/// Where imports are asked for.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Asks for one; answers the ImageStreamImport with its status.
    async fn post(&self, namespace: &str, body: &Value) -> Result<Value, PostError>;
}

#[async_trait]
impl Imports for Client {
    async fn post(&self, namespace: &str, body: &Value) -> Result<Value, PostError> {
        // A namespace is a DNS label: nothing to escape.
        let path = format!(
            "/apis/image.openshift.io/v1/namespaces/{namespace}/imagestreamimports?timeout={}s",
            WITHIN.as_secs()
        );
        let request = http::Request::post(path)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| PostError::Refused(error.to_string()))?;
        match timeout(WITHIN, self.request::<Value>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(meaning(&error)),
            Err(_) => Err(PostError::Failed("no answer in time".to_owned())),
        }
    }
}

/// What the client got wrong it gets wrong again; a conflict or a missing right may pass, and so may what the server or
/// the connection does. A 404 that names no object says that imports are not served, for now.
fn meaning(error: &kube::Error) -> PostError {
    let kube::Error::Api(status) = error else { return PostError::Failed(error.to_string()) };
    let named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    match status.code {
        400 | 405 | 406 | 410 | 413..=415 | 422 => PostError::Refused(status.message.clone()),
        404 if named => PostError::Refused(status.message.clone()),
        _ => PostError::Failed(status.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, details: &Value) -> bool {
        let status =
            json!({"code": code, "status": "Failure", "message": "no", "reason": "", "details": details});
        let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
        meaning(&error) == PostError::Refused("no".to_owned())
    }

    #[test]
    fn some_failures_pass_and_some_do_not() {
        assert!([400, 405, 406, 413, 415, 422].into_iter().all(|code| refused(code, &Value::Null)));
        assert!(
            ![401, 403, 409, 429, 500, 502, 503, 504].into_iter().any(|code| refused(code, &Value::Null))
        );
        assert!(refused(404, &json!({"kind": "imagestreams", "name": "web"})));
        assert!(!refused(404, &json!({})), "imports may be served later");
    }
}
