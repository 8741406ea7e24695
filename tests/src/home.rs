//! Where a control plane lives on disk, and `picoshift` called for it.
//!
//! All that the tests know of the layout of a state directory is in this file.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::identity::ClusterCa;
use crate::process::{Component, KUBE_APISERVER};
use crate::tls::Endpoint;

/// A control plane's directories.
#[derive(Debug, Clone)]
pub struct Home {
    /// The program `picoshift`.
    pub picoshift: PathBuf,
    /// Everything of this control plane.
    pub root: PathBuf,
}

/// `picoshift status -o json`.
#[derive(Debug, Deserialize)]
struct Status {
    components: Vec<Component>,
}

/// The program to test: `PICOSHIFT_BIN`, or `bin/picoshift` of this checkout.
///
/// # Errors
/// When it is not there: nothing is skipped for want of a binary.
pub fn picoshift_program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PICOSHIFT_BIN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("bin").join("picoshift"),
        PathBuf::from,
    );
    if !path.is_file() {
        bail!("{} is missing: run `make build` first", path.display());
    }
    Ok(path)
}

/// Where programs that were built once are kept.
///
/// # Errors
/// When there is neither `XDG_CACHE_HOME` nor a home directory.
pub fn programs_cache() -> anyhow::Result<PathBuf> {
    if let Some(path) =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute())
    {
        return Ok(path.join("picoshift"));
    }
    Ok(PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache").join("picoshift"))
}

impl Home {
    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.root.join("state").join("picoshift")
    }

    /// The kubeconfig that plays the user's own.
    pub fn user_kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// `picoshift ARGS` for this control plane. Built binaries come from the user's cache as ever.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.picoshift);
        command
            .args(args)
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env("KUBECONFIG", self.user_kubeconfig())
            .env_remove("PICOSHIFT_STATE_DIR")
            .env_remove("PICOSHIFT_INGRESS_DOMAIN")
            .env_remove("PICOSHIFT_OPENSHIFT_VERSION")
            .stdin(Stdio::null());
        command
    }

    /// Runs `picoshift ARGS` and gives its standard output.
    ///
    /// # Errors
    /// What it printed when it exits with anything but 0.
    pub fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(args).output().context("cannot run picoshift")?;
        if !output.status.success() {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            bail!("picoshift {} failed ({}):\n{out}{err}", args.join(" "), output.status);
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The components and how they do.
    ///
    /// # Errors
    /// When `picoshift status` fails or prints something else. It may exit with 1 while a component is down.
    pub fn components(&self) -> anyhow::Result<Vec<Component>> {
        let output = self.command(&["status", "-o", "json"]).output().context("cannot run picoshift")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let status: Status = serde_json::from_str(&text).with_context(|| {
            format!("picoshift status: {text}{}", String::from_utf8_lossy(&output.stderr))
        })?;
        Ok(status.components)
    }

    /// One component.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn component(&self, name: &str) -> anyhow::Result<Component> {
        let components = self.components()?;
        let known: Vec<_> = components.iter().map(|component| component.name.clone()).collect();
        let found = components.into_iter().find(|component| component.name == name);
        found.with_context(|| format!("no component {name} among {known:?}"))
    }

    /// kube-apiserver itself, behind the shim.
    ///
    /// # Errors
    /// When it does not run or the cluster CA cannot be read.
    pub fn kube_apiserver(&self) -> anyhow::Result<Endpoint> {
        let port = self.component(KUBE_APISERVER)?.port.context("kube-apiserver has no port")?;
        let ca = std::fs::read(self.state().join("pki/cluster-ca.crt"))?;
        Ok(Endpoint { url: format!("https://127.0.0.1:{port}"), ca, server_name: None })
    }

    /// The administrator's kubeconfig.
    ///
    /// # Errors
    /// When `picoshift kubeconfig` fails.
    pub fn admin_kubeconfig(&self) -> anyhow::Result<PathBuf> {
        Ok(PathBuf::from(self.run(&["kubeconfig", "--path"])?.trim()))
    }

    /// The kubectl to test with: `PICOSHIFT_KUBECTL`, or the one that `picoshift up` found or built.
    ///
    /// # Errors
    /// When there is none.
    pub fn kubectl(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = std::env::var_os("PICOSHIFT_KUBECTL") {
            return Ok(PathBuf::from(path));
        }
        let mut built: Vec<PathBuf> = std::fs::read_dir(programs_cache()?.join("bin"))
            .map(|entries| entries.flatten().map(|entry| entry.path().join("kubectl")).collect())
            .unwrap_or_default();
        built.sort();
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let others =
            assets.into_iter().chain(std::env::split_paths(&path)).map(|folder| folder.join("kubectl"));
        let mut candidates = built.into_iter().rev().chain(others);
        candidates.find(|path| path.is_file()).context("no kubectl: `picoshift build` makes one")
    }

    /// The cluster CA, which signs client certificates.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn cluster_ca(&self) -> anyhow::Result<ClusterCa> {
        let pki = self.state().join("pki");
        ClusterCa::read(&pki.join("cluster-ca.crt"), &pki.join("cluster-ca.key"))
    }
}

/// A control plane's directories that go away again, with whatever runs in them, when this value is dropped or
/// this process ends, whatever way it ends.
#[derive(Debug)]
pub struct TemporaryHome {
    /// The directories.
    pub home: Home,
    watchdog: Child,
}

impl TemporaryHome {
    /// New empty directories; nothing is started.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn new(picoshift: PathBuf) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("picoshift-tests-").tempdir()?.keep();
        let home = Home { picoshift, root };
        let watchdog = watch_over(&home)?;
        Ok(Self { home, watchdog })
    }
}

impl Drop for TemporaryHome {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        if let Err(error) = self.watchdog.wait() {
            eprintln!("cannot wait for the end of {}: {error}", self.home.root.display());
        }
    }
}

/// A process that sees the end of this one by a pipe, and then ends the control plane and removes its directory.
/// It is in a process group of its own, so that Ctrl-C does not reach it.
fn watch_over(home: &Home) -> anyhow::Result<Child> {
    let script = r#"cat >/dev/null; "$0" down --purge >/dev/null 2>&1; rm -rf "$1""#;
    Command::new("sh")
        .args(["-c", script])
        .arg(&home.picoshift)
        .arg(&home.root)
        .env("XDG_STATE_HOME", home.root.join("state"))
        .env("KUBECONFIG", home.user_kubeconfig())
        .env_remove("PICOSHIFT_STATE_DIR")
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("cannot start the watchdog")
}
