//! One more of the shim in front of the control plane's kube-apiserver, with a port and a certificate of its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};

use serde_json::{Value, json};

use crate::ControlPlane;
use crate::http::Http;
use crate::identity::Identity;
use crate::instance::watch_over;
use crate::process::KUBE_APISERVER;
use crate::tls::{Endpoint, Protocol};

/// How long a start may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before looking again whether it is ready.
const PAUSE: Duration = Duration::from_millis(20);

/// A shim of our own; it ends with this value, and with this process.
pub struct Shim {
    /// Where it is.
    pub endpoint: Endpoint,
    /// kube-apiserver behind it.
    pub kube: Endpoint,
    /// Its probes and counters.
    pub status: Http,
    directory: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    child: Child,
    watchdog: Child,
}

impl Shim {
    /// Starts one with these further flags; returns when it is ready.
    ///
    /// # Errors
    /// When it does not come up; with what it logged.
    pub async fn start(plane: &ControlPlane, more: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let (issuer, ca) = authority()?;
        write_certificate(directory.path(), &issuer)?;
        let port = || anyhow::Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port());
        let (main, status) = (port()?, port()?);
        let kube = kube_apiserver(plane)?;
        let ours = &plane.stage.ours;
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes)?;
            anyhow::Ok(path.display().to_string())
        };
        let pki = |name: &str| plane.home.state().join("pki").join(name).display().to_string();
        let service = ours.server_name.as_deref().and_then(|name| name.strip_suffix(".svc"));
        let (name, namespace) = service.and_then(|name| name.split_once('.')).context("no service")?;
        let flags = [
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", main.to_string()),
            ("status-port", status.to_string()),
            ("tls-cert-file", directory.path().join("tls.crt").display().to_string()),
            ("tls-private-key-file", directory.path().join("tls.key").display().to_string()),
            ("client-ca-file", pki("cluster-ca.crt")),
            ("upstream", kube.url.clone()),
            ("upstream-ca-file", write("upstream.crt", &kube.ca)?),
            ("proxy-client-cert-file", pki("front-proxy-client.crt")),
            ("proxy-client-key-file", pki("front-proxy-client.key")),
            ("kubeconfig", plane.home.admin_kubeconfig()?.display().to_string()),
            ("apiserver", ours.url.clone()),
            ("apiserver-ca-file", write("apiserver.crt", &ours.ca)?),
            ("apiserver-service", format!("{namespace}/{name}")),
        ];
        let log = File::create(directory.path().join("log"))?;
        let program = program(plane)?;
        let child = Command::new(&program)
            .args(flags.iter().map(|(flag, value)| format!("--{flag}={value}")))
            .arg("--access-log")
            .args(more)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let watchdog = watch_over(&directory.path().join("pid"))?;
        std::fs::write(directory.path().join("pid"), format!("{}\n", child.id()))?;
        let endpoint = |port: u16| Endpoint {
            url: format!("https://127.0.0.1:{port}"),
            ca: ca.clone().into(),
            server_name: None,
        };
        let status = Http::new(&endpoint(status), None, Protocol::Http1)?;
        let mut shim = Self { endpoint: endpoint(main), kube, status, directory, issuer, child, watchdog };
        shim.ready().await?;
        Ok(shim)
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let given_up = Instant::now() + PATIENCE;
        while !self.status.get("/readyz").await.is_ok_and(|answer| answer.status == 200) {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > given_up {
                bail!("it does not come up ({ended:?}): {}", self.log_text()?);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// A client of it.
    ///
    /// # Errors
    /// When none can be made.
    pub fn client(&self, identity: Option<&Identity>, protocol: Protocol) -> anyhow::Result<Http> {
        Http::new(&self.endpoint, identity, protocol)
    }

    /// A client of kube-apiserver itself.
    ///
    /// # Errors
    /// When none can be made.
    pub fn behind(&self, identity: Option<&Identity>) -> anyhow::Result<Http> {
        Http::new(&self.kube, identity, Protocol::Http1)
    }

    /// Gives it another serving certificate of the same authority, and tells it.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn renew_certificate(&self) -> anyhow::Result<()> {
        write_certificate(self.directory.path(), &self.issuer)?;
        self.signal(Signal::SIGHUP)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.child.id())?), signal)?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let given_up = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < given_up, "it does not end: {}", self.log_text()?);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// What it has logged.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log_text(&self) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(self.directory.path().join("log"))?).into_owned())
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The number is nobody's now; the watchdog must not end another.
        let _ = File::create(self.directory.path().join("pid"));
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

/// The program: beside `picoshift`, or what `PICOSHIFT_SHIM_BIN` names.
fn program(plane: &ControlPlane) -> anyhow::Result<PathBuf> {
    let beside = || plane.home.picoshift.with_file_name("picoshift-shim");
    let path = std::env::var_os("PICOSHIFT_SHIM_BIN").map_or_else(beside, PathBuf::from);
    ensure!(path.is_file(), "{} is missing: run `make build` first", path.display());
    Ok(path)
}

/// kube-apiserver itself, whatever stands before it.
fn kube_apiserver(plane: &ControlPlane) -> anyhow::Result<Endpoint> {
    let port = plane.home.component(KUBE_APISERVER)?.port.context("kube-apiserver has no port")?;
    let ca = std::fs::read(plane.home.state().join("pki").join("cluster-ca.crt"))?;
    Ok(Endpoint { url: format!("https://127.0.0.1:{port}"), ca, server_name: None })
}

fn authority() -> anyhow::Result<(Issuer<'static, KeyPair>, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key)?.pem();
    Ok((Issuer::new(params, key), pem))
}

fn write_certificate(directory: &Path, issuer: &Issuer<'static, KeyPair>) -> anyhow::Result<()> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress("127.0.0.1".parse()?)];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    std::fs::write(directory.join("tls.crt"), params.signed_by(&key, issuer)?.pem())?;
    Ok(std::fs::write(directory.join("tls.key"), key.serialize_pem())?)
}

/// What `SelfSubjectReview` says of a caller.
///
/// # Errors
/// When it is refused.
pub async fn who_am_i(http: &Http) -> anyhow::Result<Value> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = http.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await?;
    Ok(answer.expect_code(201)?["status"]["userInfo"].clone())
}
