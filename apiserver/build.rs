//! Takes the schemas of the served kinds out of the pinned Go module `github.com/openshift/api`.
//!
//! In: `hack/schemas/go.mod`, and the Go module client, which finds (or fetches) the module. Out, in `OUT_DIR`:
//! `schemas.json` with `definitions` (OpenAPI v2, for the documents that are served) and `structs` (what the decoder
//! needs to know of the Go types). `PICOSHIFT_OPENAPI_JSON` may name such a file, made by an earlier build; then no
//! Go is needed.

#[path = "build/definitions.rs"]
mod definitions;
#[path = "build/go_types.rs"]
mod go_types;
#[path = "build/modules.rs"]
mod modules;
#[path = "build/proto.rs"]
mod proto;
#[path = "build/structs.rs"]
mod structs;
#[path = "build/token_review.rs"]
mod token_review;
#[path = "build/wire.rs"]
mod wire;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Names an output of an earlier build.
const OVERRIDE: &str = "PICOSHIFT_OPENAPI_JSON";

fn main() {
    if let Err(error) = run() {
        // Cargo shows these lines as errors of the build, without a backtrace.
        for line in format!("{error:#}").lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    println!("cargo:rerun-if-env-changed={OVERRIDE}");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    let out = PathBuf::from(env::var_os("OUT_DIR").context("OUT_DIR is not set")?).join("schemas.json");
    let document = match env::var_os(OVERRIDE) {
        Some(path) => earlier_output(Path::new(&path))?,
        None => from_modules()?,
    };
    fs::write(&out, document).with_context(|| format!("writing {}", out.display()))
}

fn from_modules() -> Result<Vec<u8>> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is not set")?);
    let folder = manifest.join("../hack/schemas");
    for file in ["go.mod", "go.sum"] {
        println!("cargo:rerun-if-changed={}", folder.join(file).display());
    }
    let modules = modules::Modules::find(&folder)?;
    let mut document = definitions::read(&modules.openshift.join("openapi/openapi.json"))?;
    document.extend(token_review::definitions(&modules.kubernetes, &document)?);
    let kept = definitions::reachable(&document)?;
    let structs = structs::describe(&kept, &modules)?;
    Ok(serde_json::to_vec(&json!({ "definitions": kept, "structs": structs }))?)
}

fn earlier_output(path: &Path) -> Result<Vec<u8>> {
    println!("cargo:rerun-if-changed={}", path.display());
    let bytes = fs::read(path).with_context(|| format!("{OVERRIDE}: reading {}", path.display()))?;
    let value: Value =
        serde_json::from_slice(&bytes).with_context(|| format!("{OVERRIDE}: {}", path.display()))?;
    ensure!(
        value["definitions"].is_object() && value["structs"].is_object(),
        "{OVERRIDE}: {} was not made by an earlier build (it is schemas.json in the build's OUT_DIR)",
        path.display()
    );
    Ok(bytes)
}
