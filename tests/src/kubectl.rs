//! Running kubectl as somebody.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

/// kubectl with one kubeconfig.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// Who to be and where.
    pub kubeconfig: PathBuf,
}

/// What a finished kubectl said.
#[derive(Debug, Clone)]
pub struct Said {
    /// Whether it exited with 0.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Kubectl {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args).stdin(Stdio::null()).kill_on_drop(true);
        // Its caches of discovery and schemas lie under the home directory: each caller has his own.
        command.env("HOME", self.kubeconfig.with_extension("home"));
        command
    }

    /// Runs kubectl to its end, whatever that is.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn run(&self, args: &[&str]) -> anyhow::Result<Said> {
        let output = self.command(args).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        Ok(Said {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs kubectl and gives its standard output.
    ///
    /// # Errors
    /// When it exits with anything but 0.
    pub async fn ok(&self, args: &[&str]) -> anyhow::Result<String> {
        let said = self.run(args).await?;
        if !said.success {
            bail!("kubectl {}: {}{}", args.join(" "), said.stdout, said.stderr);
        }
        Ok(said.stdout)
    }

    /// Runs `kubectl edit` of `args` with a command that changes the file it is given.
    ///
    /// # Errors
    /// When it exits with anything but 0.
    pub async fn edit(&self, editor: &str, args: &[&str]) -> anyhow::Result<()> {
        let output = self.command(&["edit"]).args(args).env("KUBE_EDITOR", editor).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        if !output.status.success() {
            bail!("kubectl edit {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Starts kubectl with its standard output piped; it ends when the value is dropped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, args: &[&str]) -> anyhow::Result<Child> {
        Ok(self.command(args).stdout(Stdio::piped()).spawn()?)
    }
}
