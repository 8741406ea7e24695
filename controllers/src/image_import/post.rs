//! Sends ImageStreamImports, and says what the answer means.

use std::time::Duration;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::Value;
use tokio::time::timeout;

/// An import may take that long, as openshift-controller-manager allows it to. The aggregator cuts it earlier.
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
/// the connection does.
fn meaning(error: &kube::Error) -> PostError {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 404..=406 | 410 | 413..=415 | 422) => {
            PostError::Refused(status.message.clone())
        }
        kube::Error::Api(status) => PostError::Failed(status.message.clone()),
        error => PostError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn some_failures_pass_and_some_do_not() {
        let refused = |code: u16| {
            let status = json!({"code": code, "status": "Failure", "message": "no", "reason": ""});
            let error = kube::Error::Api(Box::new(serde_json::from_value(status).unwrap()));
            meaning(&error) == PostError::Refused("no".to_owned())
        };
        assert!([400, 404, 405, 406, 413, 415, 422].into_iter().all(refused));
        assert!(![401, 403, 409, 429, 500, 502, 503, 504].into_iter().any(refused));
    }
}
