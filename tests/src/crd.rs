//! CRDs that play one of our kinds on kube-apiserver.

use serde_json::{Value, json};

use crate::eventually::eventually;
use crate::http::Http;

/// The manifest of a namespaced kind of version v1 with a status, whose objects have this schema.
#[must_use]
pub fn manifest(group: &str, kind: &str, plural: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Creates a CRD, unless it is there, and returns when `path` is served.
///
/// # Errors
/// When it is refused or not served within a minute.
pub async fn install(admin: &Http, crd: &Value, path: &str) -> anyhow::Result<()> {
    let answer = admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await?;
    if answer.status != 409 {
        answer.expect_code(201)?;
    }
    let served = || async {
        let answer = admin.get(path).await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the CRD is served", 60, served).await
}
