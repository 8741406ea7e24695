//! Somebody who calls: by a certificate of her own, by impersonation, or as nobody.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::http::Http;
use crate::identity::Identity;
use crate::kubectl::Kubectl;
use crate::tls::{Endpoint, Protocol};

/// A caller and her clients.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Her user name.
    pub name: String,
    /// HTTP to kube-apiserver, hence to our server through aggregation.
    pub api: Http,
    /// kubectl as her.
    pub kubectl: Kubectl,
    kubeconfig: Kubeconfig,
    direct: Option<Http>,
}

/// What all actors of one control plane share.
#[derive(Debug, Clone)]
pub struct Stage {
    /// kube-apiserver.
    pub kube: Endpoint,
    /// Our server.
    pub ours: Endpoint,
    /// Directory for kubeconfigs.
    pub directory: PathBuf,
    /// The kubectl to run.
    pub kubectl: PathBuf,
}

/// How a kubeconfig says who somebody is.
fn user_entry(identity: Option<&Identity>, files: &Path) -> anyhow::Result<Value> {
    let Some(identity) = identity else { return Ok(json!({})) };
    let (certificate, key) = (files.with_extension("crt"), files.with_extension("key"));
    std::fs::write(&certificate, &identity.certificate)?;
    std::fs::write(&key, &identity.key)?;
    Ok(json!({"client-certificate": certificate, "client-key": key}))
}

impl Actor {
    /// A caller with a certificate of her own.
    ///
    /// # Errors
    /// When a client cannot be made or a kubeconfig cannot be written.
    pub fn by_certificate(stage: &Stage, name: &str, identity: &Identity) -> anyhow::Result<Self> {
        let mut actor = Self::build(stage, name, Some(identity), |_| {})?;
        actor.direct = Some(Http::new(&stage.ours, Some(identity), Protocol::Any)?);
        Ok(actor)
    }

    /// A caller without any credential.
    ///
    /// # Errors
    /// As [`Actor::by_certificate`].
    pub fn anonymous(stage: &Stage) -> anyhow::Result<Self> {
        let mut actor = Self::build(stage, "system:anonymous", None, |_| {})?;
        actor.direct = Some(Http::new(&stage.ours, None, Protocol::Any)?);
        Ok(actor)
    }

    /// `identity` (an administrator's) acting as `name` in `groups`. kube-apiserver knows impersonation, our server
    /// gets its outcome: there is no direct client.
    ///
    /// # Errors
    /// As [`Actor::by_certificate`].
    pub fn impersonated(
        stage: &Stage,
        identity: &Identity,
        name: &str,
        groups: &[&str],
    ) -> anyhow::Result<Self> {
        let mut actor = Self::build(stage, name, Some(identity), |user| {
            user["as"] = json!(name);
            user["as-groups"] = json!(groups);
        })?;
        actor.api = actor.api.with_header("Impersonate-User", name)?;
        for group in groups {
            actor.api = actor.api.with_header("Impersonate-Group", group)?;
        }
        Ok(actor)
    }

    /// HTTP to our server, past kube-apiserver.
    ///
    /// # Errors
    /// For an impersonated caller, who exists only through kube-apiserver.
    pub fn direct(&self) -> anyhow::Result<&Http> {
        self.direct.as_ref().with_context(|| format!("{} is impersonated: no direct calls", self.name))
    }

    /// A kube-rs client as her.
    ///
    /// # Errors
    /// When her kubeconfig makes no client.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        // The process-wide provider; a second installation changes nothing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options).await?;
        Ok(kube::Client::try_from(config)?)
    }

    fn build(
        stage: &Stage,
        name: &str,
        identity: Option<&Identity>,
        say: impl FnOnce(&mut Value),
    ) -> anyhow::Result<Self> {
        let files = stage.directory.join(crate::objects::unique("actor"));
        let ca = files.with_extension("ca");
        std::fs::write(&ca, &stage.kube.ca)?;
        let mut user = user_entry(identity, &files)?;
        say(&mut user);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": stage.kube.url, "certificate-authority": ca}}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        let kubeconfig = files.with_extension("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_vec_pretty(&config)?)?;
        Ok(Self {
            name: name.to_owned(),
            api: Http::new(&stage.kube, identity, Protocol::Any)?,
            kubectl: Kubectl { program: stage.kubectl.clone(), kubeconfig: kubeconfig.clone() },
            kubeconfig: Kubeconfig::read_from(&kubeconfig)?,
            direct: None,
        })
    }
}
