//! Processes of a control plane: what `picoshift status` says of them, and ending one as a crash would.

use std::path::PathBuf;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

/// How long a killed process may take to end.
const KILLED_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Name of our server in `picoshift status`.
pub const OUR_SERVER: &str = "picoshift-apiserver";
/// Name of our controllers in `picoshift status`.
pub const OUR_CONTROLLERS: &str = "picoshift-controllers";
/// Name of the shim in `picoshift status`.
pub const SHIM: &str = "picoshift-shim";
/// Name of kube-apiserver in `picoshift status`.
pub const KUBE_APISERVER: &str = "kube-apiserver";
/// Name of kube-controller-manager in `picoshift status`.
pub const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// One line of `picoshift status -o json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Component {
    /// Name of the program.
    pub name: String,
    /// Process id; absent when it does not run.
    pub pid: Option<i32>,
    /// The port it serves at; absent before it was first started.
    pub port: Option<u16>,
    /// Whether its readiness endpoint answers.
    pub healthy: bool,
    /// Its log file.
    pub log: PathBuf,
}

impl Component {
    /// Ends the process at once, as a crash or the kernel's out-of-memory killer would.
    ///
    /// # Errors
    /// When it does not run or the signal cannot be sent.
    pub fn kill_9(&self) -> anyhow::Result<()> {
        self.signal(Signal::SIGKILL)?;
        // The signal is on its way only: whoever looks at once may still see the process run.
        let given_up = std::time::Instant::now() + KILLED_WITHIN;
        while self.runs() {
            anyhow::ensure!(std::time::Instant::now() < given_up, "{} outlives its SIGKILL", self.name);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// When it does not run or the signal cannot be sent.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self.pid.with_context(|| format!("{} does not run", self.name))?;
        kill(Pid::from_raw(pid), signal)
            .with_context(|| format!("cannot send {signal} to {} ({pid})", self.name))
    }

    /// Whether a process with this component's id exists and has not ended.
    pub fn runs(&self) -> bool {
        let Some(pid) = self.pid else { return false };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    /// What it has logged so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log_text(&self) -> anyhow::Result<String> {
        let bytes =
            std::fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
