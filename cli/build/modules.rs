//! Pinned Go modules: what `sources.yaml` says of them, and where the Go module client has put them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// `sources.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sources {
    pub(crate) modules: Vec<Module>,
}

/// A module and what is taken from it; the fields are explained in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Module {
    pub(crate) module: String,
    pub(crate) version: String,
    /// The hash that `go.sum` has of such a module.
    sum: String,
    pub(crate) paths: Vec<PathBuf>,
    #[serde(default)]
    pub(crate) except: Vec<String>,
    pub(crate) from: Option<String>,
    pub(crate) until: Option<String>,
    #[serde(default)]
    pub(crate) from_of: BTreeMap<String, String>,
    feature_gates: Option<PathBuf>,
}

impl Sources {
    /// The status of the FeatureGate, which one of the modules has.
    pub(crate) fn feature_gates(&self) -> Result<Vec<u8>> {
        let mut modules = self.modules.iter();
        let of_module = |module: &Module| Some((module.folder(), module.feature_gates.clone()?));
        let (folder, path) = modules.find_map(of_module).context("no module has feature gates")?;
        let path = folder?.join(path);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let object: serde_json::Value =
            serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        Ok(object["status"].to_string().into_bytes())
    }
}

impl Module {
    /// As the module client calls it.
    pub(crate) fn name(&self) -> String {
        format!("{}@{}", self.module, self.version)
    }

    /// Its folder, found or fetched. The hash that we know is checked here, so that no checksum database has to be reached.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let name = self.name();
        let output = Command::new("go")
            .args(["mod", "download", "-json", &name])
            .current_dir(Path::new("/"))
            .env("GONOSUMDB", "*")
            .env("GOWORK", "off")
            .output();
        let output = output.with_context(|| {
            let variable = crate::OVERRIDE;
            format!("{name} is got by `go`: install Go 1.24 or newer (https://go.dev/dl), or set {variable}")
        })?;
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
            .context("reading the answer of `go mod download -json`")?;
        let text = |field: &str| answer[field].as_str().unwrap_or_default();
        ensure!(output.status.success(), "`go mod download {name}` failed: {}", text("Error"));
        ensure!(text("Sum") == self.sum, "{name} has the hash {}, not {}", text("Sum"), self.sum);
        Ok(text("Dir").into())
    }
}
