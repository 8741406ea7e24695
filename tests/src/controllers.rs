//! Further processes of our controllers, beside the one that `picoshift up` started.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::control_plane::ControlPlane;
use crate::http::Http;
use crate::process::OUR_CONTROLLERS;
use crate::tls::{Endpoint, Protocol};

/// A process; killed when it is dropped.
#[derive(Debug)]
pub struct Controllers {
    /// The process.
    pub child: Child,
    /// Its probes and counters.
    pub http: Http,
}

impl Controllers {
    /// Starts one as whoever `kubeconfig` says, on a free port, with further flags; returns when it serves.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn start(plane: &ControlPlane, kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        let certificate = |kind: &str| {
            let file = format!("openshift-controller-manager-serving.{kind}");
            plane.home.state().join("pki").join(file)
        };
        let mut child = Command::new(plane.home.picoshift.with_file_name(OUR_CONTROLLERS))
            .args(["--bind-address=127.0.0.1", "--secure-port=0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--tls-cert-file")
            .arg(certificate("crt"))
            .arg("--tls-private-key-file")
            .arg(certificate("key"))
            .args(flags)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the controllers")?;
        let log = child.stderr.take().context("no log")?;
        let mut lines = BufReader::new(log).lines();
        let mut seen = Vec::new();
        let port = loop {
            let line = lines.next_line().await?;
            let line = line.with_context(|| format!("the controllers ended: {}", seen.join("\n")))?;
            if let Some((_, address)) = line.rsplit_once("serving address=127.0.0.1:") {
                break address.trim().parse::<u16>()?;
            }
            seen.push(line);
        };
        // Somebody has to read the rest, or the process would wait.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let ca = plane.stage.kube.ca.clone();
        let endpoint = Endpoint { url: format!("https://127.0.0.1:{port}"), ca, server_name: None };
        Ok(Self { child, http: Http::new(&endpoint, None, Protocol::Any)? })
    }

    /// Its counters.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        let answer = self.http.get("/metrics").await?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer.text())
    }

    /// Whether it leads.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn leads(&self) -> anyhow::Result<bool> {
        Ok(crate::metrics::sum(&self.metrics().await?, "leader_election_master_status", &[]) > 0.5)
    }
}
