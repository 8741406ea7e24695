//! Where the pinned Go modules lie on this machine, as the Go module client says.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

const OPENSHIFT: &str = "github.com/openshift/api";
const KUBERNETES: &str = "k8s.io/api";
const MACHINERY: &str = "k8s.io/apimachinery";

/// Folders of the modules.
pub(crate) struct Modules {
    pub(crate) openshift: PathBuf,
    pub(crate) kubernetes: PathBuf,
    pub(crate) machinery: PathBuf,
}

/// What `go mod download -json` says about one module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    #[serde(default)]
    dir: PathBuf,
    #[serde(default)]
    error: String,
}

impl Modules {
    /// Asks the Go module client in `folder`, which fetches what is not there yet.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let output = Command::new("go")
            .args(["mod", "download", "-json", OPENSHIFT, KUBERNETES, MACHINERY])
            .current_dir(folder)
            .output();
        let output = match output {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "the schemas come from the Go module {OPENSHIFT}, but there is no `go` in PATH.\n\
                 Install Go 1.24 or newer (https://go.dev/dl), or set PICOSHIFT_OPENAPI_JSON to the schemas.json \
                 of an earlier build."
            ),
            other => other.context("running `go mod download`")?,
        };
        let mut found = Vec::new();
        for module in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Downloaded>() {
            let module = module.context("reading the answer of `go mod download -json`")?;
            if !module.error.is_empty() {
                bail!(
                    "{}: {}\nIs the Go module proxy (`go env GOPROXY`) reachable?",
                    module.path,
                    module.error
                );
            }
            found.push(module);
        }
        if !output.status.success() {
            bail!("`go mod download` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let dir = |path: &str| {
            let module = found.iter().find(|m| m.path == path);
            module.map(|m| m.dir.clone()).with_context(|| format!("`go mod download` does not know {path}"))
        };
        Ok(Self { openshift: dir(OPENSHIFT)?, kubernetes: dir(KUBERNETES)?, machinery: dir(MACHINERY)? })
    }

    /// The folder of the Go package that a definition comes from: `com.github.openshift.api.route.v1.Route` is in
    /// `route/v1` of the first module. `None` for a package of another module.
    pub(crate) fn package(&self, definition: &str) -> Option<PathBuf> {
        let (root, rest) = if let Some(rest) = definition.strip_prefix("com.github.openshift.api.") {
            (&self.openshift, rest)
        } else if let Some(rest) = definition.strip_prefix("io.k8s.api.") {
            (&self.kubernetes, rest)
        } else {
            (&self.machinery, definition.strip_prefix("io.k8s.apimachinery.")?)
        };
        let (package, _) = rest.rsplit_once('.')?;
        Some(root.join(package.replace('.', "/")))
    }
}
