//! `picoshift`: an OpenShift-like control plane on this machine, by one command.
//!
//! In come the command line, the environment and the state directory; out go processes (etcd, kube-apiserver,
//! kube-controller-manager, kube-scheduler, picoshift-apiserver, picoshift-controllers), their certificates and
//! configuration, objects in the cluster, and a context in the user's kubeconfig. Every command converges: it looks at
//! what is there and does the rest.

mod apply;
mod args;
mod binaries;
mod commands;
mod components;
mod content;
mod failure;
mod guard;
mod health;
mod kubeconfig;
mod lock;
mod logs;
mod manifests;
mod oauth;
mod paths;
mod pki;
mod ports;
mod process;
mod progress;
mod removal;
mod settings;
mod supervisor;
mod users;
mod versions;
mod yaml;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::paths::Paths;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // A second call would be refused; there is only this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match run(Args::parse()).await {
        Ok(code) => code,
        Err(err) => {
            report(&err);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<ExitCode> {
    let paths = || Paths::from_env(args.state_dir.clone());
    match args.command {
        Command::Up(options) => commands::up::run(&paths()?, options).await?,
        Command::Down { purge } => commands::down::run(&paths()?, purge).await?,
        Command::Status { output } => return commands::status::run(&paths()?, output).await,
        Command::Logs { component, follow, tail } => {
            commands::logs::run(&paths()?, component, follow, tail).await?;
        }
        Command::Login(options) => commands::login::run(&paths()?, options).await?,
        Command::User(command) => commands::user::run(&paths()?, command).await?,
        Command::Kubeconfig { path } => commands::kubeconfig(&paths()?, path)?,
        Command::Uninstall(options) => commands::uninstall::run(options).await?,
        Command::Build => commands::build(&paths()?).await?,
        Command::Version => commands::version()?,
        Command::Completion { shell } => commands::completion(shell)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn report(err: &anyhow::Error) {
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (red, bold, plain) = if colours { ("\x1b[31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    eprintln!("{red}error:{plain} {err:#}");
    if let Some(failure) = err.downcast_ref::<Failure>() {
        eprintln!("{bold}what to do:{plain} {}", failure.remedy());
    }
}
