//! `up`'s part in the content of the cluster: when it is made, and what is said of it.

use anyhow::{Context as _, Result};
use kube::Client;

use super::{Up, written};
use crate::components::{Component, Plan};
use crate::content::Content;
use crate::content::facts::Facts;
use crate::pki;
use crate::settings::INGRESS_DOMAIN;
use crate::supervisor::Running;

impl Up<'_> {
    /// Makes the content of the cluster; returns our controllers, which need the kinds.
    pub(super) async fn content(
        &self,
        client: &Client,
        content: &Content,
        controllers: &Plan,
    ) -> Result<Running> {
        let step = self.progress.step("OpenShift's kinds");
        let defined = content.define(client).await?;
        step.done_with(&written(defined.written.len()));
        let seeded = async {
            let step = self.progress.step("OpenShift's objects");
            let seeded = content.seed(client, &defined).await?;
            step.done_with(&written(seeded.written.len()));
            Ok(seeded)
        };
        let (controllers, seeded) = tokio::try_join!(self.bring_up(controllers), seeded)?;
        for foreign in defined.foreign.iter().chain(&seeded.foreign) {
            self.progress.say(&format!("  {foreign} is somebody else's, and stays as it is"));
        }
        Ok(controllers)
    }

    /// What is the cluster's own.
    pub(super) fn facts(&self) -> Result<Facts> {
        let installed = self.settings.openshift.clone().context("the cluster has no version")?;
        let domain = self.settings.ingress_domain.as_deref().unwrap_or(INGRESS_DOMAIN);
        let api = format!("https://127.0.0.1:{}", self.port(Component::PicoshiftShim)?);
        Facts::new(installed, domain, &api, pki::ingress_certificate(self.paths, domain)?)
    }
}
