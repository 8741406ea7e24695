//! Kubeconfigs: the components' own, and the entry in the user's.

pub(crate) mod user_file;

use std::fs;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::paths::{Paths, write_if_changed};
use crate::yaml;

/// The name of our cluster, user and context in any kubeconfig.
pub(crate) const NAME: &str = "picoshift";

/// How to reach a server, and as whom.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Access {
    /// The content of `cluster`.
    pub(crate) cluster: Value,
    /// The content of `user`.
    pub(crate) user: Value,
}

impl Access {
    /// Access by a client certificate of the PKI.
    pub(crate) fn new(server: &str, certificate: &str, paths: &Paths) -> Result<Self> {
        let data = |file: String| -> Result<String> {
            let path = paths.pki(&file);
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(STANDARD.encode(content))
        };
        Ok(Self {
            cluster: json!({
                "server": server,
                "certificate-authority-data": data("cluster-ca.crt".to_owned())?,
            }),
            user: json!({
                "client-certificate-data": data(format!("{certificate}.crt"))?,
                "client-key-data": data(format!("{certificate}.key"))?,
            }),
        })
    }

    /// A kubeconfig that has nothing else in it.
    pub(crate) fn to_yaml(&self) -> String {
        yaml::emit(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": self.cluster}],
            "users": [{"name": NAME, "user": self.user}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        }))
    }
}

/// Writes the kubeconfigs of the administrator and of the components.
pub(crate) fn write_all(paths: &Paths, kube_apiserver: u16, picoshift_apiserver: u16) -> Result<()> {
    let server = format!("https://127.0.0.1:{kube_apiserver}");
    let users = [
        "admin",
        "kube-controller-manager",
        "kube-scheduler",
        "openshift-apiserver",
        "openshift-controller-manager",
    ];
    for user in users {
        let access = Access::new(&server, user, paths)?;
        write_if_changed(&paths.kubeconfig(user), access.to_yaml().as_bytes(), 0o600)?;
    }
    let ours = format!("https://127.0.0.1:{picoshift_apiserver}");
    let webhooks = [
        ("authorization-webhook", format!("{ours}/authorization/projects")),
        ("authentication-webhook", format!("{ours}/apis/oauth.openshift.io/v1/tokenreviews")),
    ];
    for (webhook, url) in webhooks {
        let access = Access::new(&url, webhook, paths)?;
        write_if_changed(&paths.kubeconfig(webhook), access.to_yaml().as_bytes(), 0o600)?;
    }
    Ok(())
}
