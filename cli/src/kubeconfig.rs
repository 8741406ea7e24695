//! Kubeconfigs: the components' own, and the entry in the user's.

pub(crate) mod user_file;

use std::fs;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::components::Component;
use crate::paths::{Paths, write_if_changed};
use crate::settings::Settings;
use crate::yaml;

/// The name of our cluster, user and context in any kubeconfig.
pub(crate) const NAME: &str = "picoshift";

/// The authorization webhooks of our API server: name of the kubeconfig with which kube-apiserver asks, and path.
pub(crate) const PROJECTS_WEBHOOK: (&str, &str) = ("authorization-webhook", "/authorization/projects");
/// The same, for token scopes.
pub(crate) const SCOPES_WEBHOOK: (&str, &str) = ("scopes-webhook", "/authorization/scopes");

/// The authentication webhook, which knows the tokens of OAuth.
pub(crate) const TOKENS_WEBHOOK: (&str, &str) =
    ("authentication-webhook", "/apis/oauth.openshift.io/v1/tokenreviews");

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
pub(crate) fn write_all(paths: &Paths, settings: &Settings) -> Result<()> {
    let server = |component| {
        let port = settings.port(component).context("a port was not chosen");
        port.map(|port| format!("https://127.0.0.1:{port}"))
    };
    let (api, kube_apiserver) = (server(Component::PicoshiftShim)?, server(Component::KubeApiserver)?);
    let picoshift_apiserver = server(Component::PicoshiftApiserver)?;
    // The shim stands before kube-apiserver and uses our API server: neither can need it.
    let users = [
        ("admin", &api),
        ("kube-controller-manager", &api),
        ("kube-scheduler", &api),
        ("openshift-controller-manager", &api),
        ("openshift-apiserver", &kube_apiserver),
        ("shim", &kube_apiserver),
    ];
    for (user, server) in users {
        let access = Access::new(server, user, paths)?;
        write_if_changed(&paths.kubeconfig(user), access.to_yaml().as_bytes(), 0o600)?;
    }
    let webhooks = [
        (PROJECTS_WEBHOOK, "authorization-webhook"),
        (SCOPES_WEBHOOK, "authorization-webhook"),
        (TOKENS_WEBHOOK, "authentication-webhook"),
    ];
    for ((kubeconfig, path), certificate) in webhooks {
        let access = Access::new(&format!("{picoshift_apiserver}{path}"), certificate, paths)?;
        write_if_changed(&paths.kubeconfig(kubeconfig), access.to_yaml().as_bytes(), 0o600)?;
    }
    Ok(())
}
