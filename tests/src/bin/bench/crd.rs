//! The peer's CRDs, each under a group of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use picoshift_tests::Actor;
use picoshift_tests::crd;
use serde_json::{Value, json};

use crate::subject::{Manifest, Peer, Subject};

/// Creates the CRD and returns when its resource is served.
pub(crate) async fn install(admin: &Actor, subject: &Subject) -> anyhow::Result<()> {
    let mut manifest = match subject.manifest {
        Manifest::Shipped(file) => shipped(admin, file).await?,
        Manifest::Schema(schema) => crd::manifest(subject.crd_group, subject.kind, subject.plural, &schema()),
    };
    manifest["metadata"] = json!({
        "name": format!("{}.{}", subject.plural, subject.crd_group),
        "annotations": {"api-approved.kubernetes.io": "unapproved, a benchmark's own"},
    });
    manifest["spec"]["group"] = json!(subject.crd_group);
    crd::install(&admin.api, &manifest, &subject.path(Peer::Crd, "default")).await
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
