//! `uninstall`: removes what is ours from a cluster that a kubeconfig names.

use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::args::UninstallArgs;
use crate::failure::Failure;
use crate::guard;
use crate::progress::Progress;
use crate::removal::Removal;

/// Runs `uninstall`.
pub(crate) async fn run(args: UninstallArgs) -> Result<()> {
    let progress = Progress::new();
    let (client, server) = client(args.kubeconfig, args.context).await?;
    guard::ours_or_nobodys(&client).await?;
    let step = progress.step(&format!("look for what is ours at {server}"));
    let removal = Removal::plan(&client).await?;
    step.done_with(&format!("{} objects", removal.count()));
    for kept in removal.kept() {
        progress.say(&format!("  {kept}"));
    }
    let step = progress.step("remove it");
    let removed = removal.run(&client).await?;
    step.done_with(&format!("{removed} objects removed"));
    Ok(())
}

/// A client of the cluster, and where that is.
async fn client(kubeconfig: Option<PathBuf>, context: Option<String>) -> Result<(Client, String)> {
    let read = match &kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let read = read.map_err(|err| {
        Failure::new(format!("cannot read the kubeconfig: {err}"), "name it by --kubeconfig or KUBECONFIG")
    })?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config =
        Config::from_custom_kubeconfig(read, &options).await.context("the kubeconfig names no cluster")?;
    let server = config.cluster_url.to_string();
    Ok((Client::try_from(config)?, server))
}
