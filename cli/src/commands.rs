//! What the command line can ask for.

pub(crate) mod down;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod status;
pub(crate) mod uninstall;
pub(crate) mod up;
pub(crate) mod user;

use std::io::Write;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::Args;
use crate::binaries::Binaries;
use crate::failure::Failure;
use crate::lock::Lock;
use crate::paths::Paths;
use crate::progress::Progress;
use crate::versions;

/// Holds the state directory: one `up` or `down` at a time.
pub(crate) async fn lock_state(paths: &Paths, progress: &Progress) -> Result<Lock> {
    Lock::acquire(&paths.state.join("lock"), |holder| {
        progress.say(&format!(
            "another picoshift (process {holder}) is at work on {}: waiting for it",
            paths.state.display()
        ));
    })
    .await
}

/// `build`: finds or builds the programs.
pub(crate) async fn build(paths: &Paths) -> Result<()> {
    let binaries = Binaries::ensure(paths, &Progress::new()).await?;
    for binary in binaries.iter() {
        say(&format!("{:24} {:9} {}\n", binary.program.name(), binary.version, binary.path.display()))?;
    }
    Ok(())
}

/// `kubeconfig`: the administrator's.
pub(crate) fn kubeconfig(paths: &Paths, path_only: bool) -> Result<()> {
    let path = paths.kubeconfig("admin");
    let content = std::fs::read_to_string(&path).map_err(|err| {
        Failure::new(
            format!("cannot read {}: {err}", path.display()),
            "`picoshift up` makes it; or name another state directory by --state-dir",
        )
    })?;
    if path_only { say(&format!("{}\n", path.display())) } else { say(&content) }
}

/// `version`: ours, and those of what is built.
pub(crate) fn version() -> Result<()> {
    say(&format!(
        "picoshift  v{}\nKubernetes {}\netcd       {}\n",
        env!("CARGO_PKG_VERSION"),
        versions::KUBERNETES,
        versions::ETCD
    ))
}

/// `completion`: a script for a shell.
pub(crate) fn completion(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "picoshift", &mut script);
    say(&String::from_utf8(script)?)
}

/// There is no control plane to talk to.
pub(crate) fn nothing_runs() -> Failure {
    Failure::new(
        "there is no control plane in this state directory",
        "`picoshift up` starts one; or name another state directory by --state-dir",
    )
}

/// Prints to standard output. A reader that has gone, as `head` does, is no failure.
pub(crate) fn say(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(err) if err.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot print"),
    }
}
