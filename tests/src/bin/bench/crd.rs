//! The peer's CRD: the one that the pinned module github.com/openshift/api ships, under a group of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use picoshift_tests::Actor;
use picoshift_tests::eventually::eventually;
use serde_json::{Value, json};

use crate::peer::{CRD_GROUP, Peer};

/// The manifest in the Go module cache; the module client fetches it like any other dependency.
fn manifest() -> anyhow::Result<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("hack").join("conformance");
    let go = |args: &[&str]| -> anyhow::Result<String> {
        let output = Command::new("go").args(args).current_dir(&module).output().context("go is needed")?;
        ensure!(output.status.success(), "go {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    go(&["mod", "download", "github.com/openshift/api"])?;
    let folder = go(&["list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api"])?;
    Ok(Path::new(&folder).join("route/v1/zz_generated.crd-manifests/routes.crd.yaml"))
}

/// Creates the CRD and returns when its resource is served.
pub(crate) async fn install(admin: &Actor) -> anyhow::Result<()> {
    let file = manifest()?;
    let file = file.to_str().context("the module cache has an odd path")?;
    let text = admin
        .kubectl
        .ok(&["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", file])
        .await?;
    let mut crd: Value = serde_json::from_str(&text)?;
    crd["metadata"] = json!({
        "name": format!("routes.{CRD_GROUP}"),
        "annotations": {"api-approved.kubernetes.io": "unapproved, a benchmark's own"},
    });
    crd["spec"]["group"] = json!(CRD_GROUP);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.api.post(path, &crd).await?.expect_code(201)?;
    let served = || async {
        let answer = admin.api.get(&Peer::Crd.routes("default")).await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the CRD is served", 60, served).await
}
