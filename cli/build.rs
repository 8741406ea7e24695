//! Takes the CustomResourceDefinitions that a cluster gets out of the pinned Go module `github.com/openshift/api`.
//!
//! In: `hack/schemas/go.mod`, and the Go module client, which finds (or fetches) the module. Out, in `OUT_DIR`: a file for each
//! definition. `PICOSHIFT_CRDS_DIR` may name a directory of an earlier build's; then no Go is needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};

const MODULE: &str = "github.com/openshift/api";
const OVERRIDE: &str = "PICOSHIFT_CRDS_DIR";
/// What the files are called here and there.
const CRDS: [(&str, &str); 1] =
    [("oauths.yaml", "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_oauths.crd.yaml")];

fn main() {
    if let Err(error) = run() {
        for line in format!("{error:#}").lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    println!("cargo:rerun-if-env-changed={OVERRIDE}");
    println!("cargo:rerun-if-changed=build.rs");
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set"));
    let (out, manifest) = (variable("OUT_DIR")?, variable("CARGO_MANIFEST_DIR")?);
    let earlier = env::var_os(OVERRIDE).map(PathBuf::from);
    let module = match earlier {
        Some(_) => PathBuf::new(),
        None => module(&manifest.join("../hack/schemas"))?,
    };
    for (name, path) in CRDS {
        let from = earlier.as_ref().map_or_else(|| module.join(path), |folder| folder.join(name));
        let content = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        fs::write(out.join(name), content).with_context(|| format!("writing {name}"))?;
    }
    Ok(())
}

/// The folder of the module, as the Go module client in `folder` says.
fn module(folder: &Path) -> Result<PathBuf> {
    for file in ["go.mod", "go.sum"] {
        println!("cargo:rerun-if-changed={}", folder.join(file).display());
    }
    let output = Command::new("go").args(["mod", "download", "-json", MODULE]).current_dir(folder).output();
    let output = output.with_context(|| {
        format!("{MODULE} is got by `go`: install Go 1.24 or newer (https://go.dev/dl), or set {OVERRIDE}")
    })?;
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("reading the answer of `go mod download -json`")?;
    ensure!(
        output.status.success(),
        "`go mod download` failed: {}",
        answer["Error"].as_str().unwrap_or_default()
    );
    Ok(answer["Dir"].as_str().context("`go mod download` names no folder")?.into())
}
