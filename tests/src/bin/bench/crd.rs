//! The peer's CRDs, each under a group of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use picoshift_tests::Actor;
use picoshift_tests::eventually::eventually;
use serde_json::{Value, json};

use crate::subject::{Manifest, Peer, Subject};

/// Creates the CRD and returns when its resource is served.
pub(crate) async fn install(admin: &Actor, subject: &Subject) -> anyhow::Result<()> {
    let mut crd = match subject.manifest {
        Manifest::Shipped(file) => shipped(admin, file).await?,
        Manifest::Schema(schema) => of_schema(subject, &schema()),
    };
    crd["metadata"] = json!({
        "name": format!("{}.{}", subject.plural, subject.crd_group),
        "annotations": {"api-approved.kubernetes.io": "unapproved, a benchmark's own"},
    });
    crd["spec"]["group"] = json!(subject.crd_group);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.api.post(path, &crd).await?.expect_code(201)?;
    let served = || async {
        let answer = admin.api.get(&subject.path(Peer::Crd, "default")).await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the CRD is served", 60, served).await
}

/// A manifest in the Go module cache; the module client fetches it like any other dependency.
async fn shipped(admin: &Actor, file: &str) -> anyhow::Result<Value> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("hack").join("conformance");
    let go = |args: &[&str]| -> anyhow::Result<String> {
        let output = Command::new("go").args(args).current_dir(&module).output().context("go is needed")?;
        ensure!(output.status.success(), "go {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    go(&["mod", "download", "github.com/openshift/api"])?;
    let folder = go(&["list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api"])?;
    let file = Path::new(&folder).join(file);
    let file = file.to_str().context("the module cache has an odd path")?;
    let text = admin
        .kubectl
        .ok(&["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", file])
        .await?;
    Ok(serde_json::from_str(&text)?)
}

fn of_schema(subject: &Subject, schema: &Value) -> Value {
    let Subject { kind, plural, .. } = subject;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {
            "scope": "Namespaced",
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
