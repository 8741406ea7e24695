//! Asks a component whether it is healthy.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Request;
use kube::{Client, Config};

use crate::components::Component;
use crate::paths::Paths;

/// The pause between two questions, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(120));
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Where a component says that it is healthy.
pub(crate) struct Health {
    client: Client,
    path: &'static str,
}

impl Health {
    /// For a component at a port.
    pub(crate) fn new(component: Component, port: u16, paths: &Paths) -> Result<Self> {
        let (authority, client) = component.health_certificates();
        Ok(Self { client: client_for(port, authority, client, paths)?, path: component.health_path() })
    }

    /// Asks once; the error says what was answered.
    pub(crate) async fn check(&self) -> Result<()> {
        let request = Request::get(self.path).body(Vec::new())?;
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.request_text(request)).await;
        answer.context("no answer")??;
        Ok(())
    }

    /// Asks until it is healthy.
    pub(crate) async fn wait(&self) {
        let mut pause = PAUSE.0;
        while self.check().await.is_err() {
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(PAUSE.1);
        }
    }
}

/// A client of what listens on a loopback port; with a client certificate of the PKI, if one is named.
pub(crate) fn client_for(
    port: u16,
    authority: &str,
    certificate: Option<&str>,
    paths: &Paths,
) -> Result<Client> {
    client_at(&format!("https://127.0.0.1:{port}"), authority, certificate, paths)
}

/// As [`client_for`], of a server by its address.
pub(crate) fn client_at(
    server: &str,
    authority: &str,
    certificate: Option<&str>,
    paths: &Paths,
) -> Result<Client> {
    let mut config = Config::new(server.parse()?);
    let pem = paths.pki(&format!("{authority}.crt"));
    let pem = std::fs::read(&pem).with_context(|| format!("cannot read {}", pem.display()))?;
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(&pem).context("the authority's certificate is damaged")?;
    config.root_cert = Some(vec![pem.contents]);
    config.default_retry = false;
    config.proxy_url = None;
    if let Some(certificate) = certificate {
        let file = |kind: &str| paths.pki(&format!("{certificate}.{kind}")).to_string_lossy().into_owned();
        config.auth_info.client_certificate = Some(file("crt"));
        config.auth_info.client_key = Some(file("key"));
    }
    Ok(Client::try_from(config)?)
}
