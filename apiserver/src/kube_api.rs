//! One request to kube-apiserver, and its answer as it is: what the groups that show Kubernetes' own objects are made of.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use crate::rest::DeleteOptions;
use crate::rest::options::Propagation;

/// The field manager of our writes; the name that OpenShift's server uses.
pub(crate) const FIELD_MANAGER: &str = "openshift-apiserver";

/// Sends a request with a JSON body, or with none.
///
/// # Errors
/// The Status that kube-apiserver gives, or a 500 when there is none.
pub(crate) async fn send(client: &Client, mut request: Request<Vec<u8>>) -> Result<Object, Status> {
    let headers = request.headers_mut();
    headers.insert("accept", http::HeaderValue::from_static("application/json"));
    if !request.body().is_empty() {
        let json = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert("content-type", json);
    }
    let request = request.map(kube::client::Body::from);
    let failed = |e: &dyn std::fmt::Display| Status::internal(format_args!("kube-apiserver: {e}"));
    let response = client.send(request).await.map_err(|e| failed(&e))?;
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

/// The query of a write.
pub(crate) fn write_query(manager: &str, dry_run: bool) -> String {
    let manager = percent_encoding::utf8_percent_encode(manager, percent_encoding::NON_ALPHANUMERIC);
    let dry = if dry_run { "&dryRun=All" } else { "" };
    format!("fieldManager={manager}{dry}")
}

/// The body of a delete.
pub(crate) fn delete_body(options: &DeleteOptions) -> Value {
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
    fn delete_options_reach_the_object() {
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
        assert_eq!(write_query("a b", true), "fieldManager=a%20b&dryRun=All");
    }
}
