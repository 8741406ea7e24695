//! What `up` decided, kept so that the next one decides the same.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::args::Switch;
use crate::components::Component;
use crate::content::facts::Installed;
use crate::kubeconfig::user_file::Merged;
use crate::paths::{Paths, write_if_changed};

const FILE: &str = "settings.json";

/// The domain of Routes' hosts at first.
pub(crate) const INGRESS_DOMAIN: &str = "apps.picoshift.localhost";

/// What `up` decided.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Settings {
    /// By the name of what listens.
    pub(crate) ports: BTreeMap<String, u16>,
    /// The domain of Routes' hosts.
    pub(crate) ingress_domain: Option<String>,
    /// Whether OpenShift's groups are reached without kube-apiserver.
    pub(crate) direct_groups: Option<Switch>,
    /// The id and the versions of the cluster.
    pub(crate) openshift: Option<Installed>,
    /// Whether the cluster got its first users: what is removed of them stays removed.
    pub(crate) has_users: bool,
    /// What was done to the user's kubeconfig.
    pub(crate) kubeconfig: Option<Merged>,
}

impl Settings {
    /// Reads them; none are there before the first `up`.
    pub(crate) fn load(paths: &Paths) -> Result<Self> {
        Ok(load(paths, FILE)?.unwrap_or_default())
    }

    /// Keeps them.
    pub(crate) fn save(&self, paths: &Paths) -> Result<()> {
        save(paths, FILE, self)
    }

    /// A component's port, if it was chosen.
    pub(crate) fn port(&self, component: Component) -> Option<u16> {
        self.ports.get(component.name()).copied()
    }
}

/// Reads a file of the `run` directory.
pub(crate) fn load<T: DeserializeOwned>(paths: &Paths, file: &str) -> Result<Option<T>> {
    let path = paths.run(file);
    match std::fs::read(&path) {
        Ok(content) => {
            let value = serde_json::from_slice(&content).with_context(|| {
                format!("{} is damaged; `picoshift down --purge` starts afresh", path.display())
            })?;
            Ok(Some(value))
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(err).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes a file of the `run` directory.
pub(crate) fn save<T: Serialize>(paths: &Paths, file: &str, value: &T) -> Result<()> {
    let mut content = serde_json::to_vec_pretty(value)?;
    content.push(b'\n');
    write_if_changed(&paths.run(file), &content, 0o600)
}
