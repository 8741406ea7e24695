//! Puts together the CustomResourceDefinitions that a cluster gets.
//!
//! In: `deploy/crds`, which says what comes from which pinned Go module, and has definitions of our own. Out, in `OUT_DIR`: one
//! compressed file that the command carries, and the feature gates of the same API. `PICOSHIFT_CRDS_DIR` may name a folder of
//! an earlier build's; then no Go is needed.

mod archive;
mod definitions;
mod modules;

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context as _, Result};

const OVERRIDE: &str = "PICOSHIFT_CRDS_DIR";
/// What is written.
const OUTPUTS: [&str; 2] = ["crds.gz", "feature-gates.json"];

fn main() {
    if let Err(error) = run() {
        for line in format!("{error:#}").lines() {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set"));
    let (out, manifest) = (variable("OUT_DIR")?, variable("CARGO_MANIFEST_DIR")?);
    let folder = manifest.join("../deploy/crds");
    println!("cargo:rerun-if-env-changed={OVERRIDE}");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={}", folder.display());
    let contents = match env::var_os(OVERRIDE).map(PathBuf::from) {
        Some(earlier) => OUTPUTS.map(|name| {
            println!("cargo:rerun-if-changed={}", earlier.join(name).display());
            fs::read(earlier.join(name)).with_context(|| format!("reading {name} in {}", earlier.display()))
        }),
        None => {
            let sources = definitions::sources(&folder)?;
            [
                definitions::all(&folder, &sources).and_then(|definitions| archive::write(&definitions)),
                sources.feature_gates(),
            ]
        }
    };
    for (name, content) in OUTPUTS.into_iter().zip(contents) {
        fs::write(out.join(name), content?).with_context(|| format!("writing {name}"))?;
    }
    Ok(())
}
