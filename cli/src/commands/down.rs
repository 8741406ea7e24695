//! `down`: ends what `up` started, in the order of who needs whom.

use std::fs;
use std::io;

use anyhow::{Context, Result};
use futures::future::try_join_all;

use super::lock_state;
use crate::components::Component;
use crate::kubeconfig::{Access, NAME, user_file};
use crate::paths::{Paths, STATE_DIRS};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::supervisor;

/// Runs `down`.
pub(crate) async fn run(paths: &Paths, purge: bool) -> Result<()> {
    let progress = Progress::new();
    if !paths.run("").is_dir() {
        progress.say(&format!("there is nothing in {}", paths.state.display()));
        return Ok(());
    }
    let _lock = lock_state(paths, &progress).await?;
    let mut ended = 0;
    for group in Component::STOP_ORDER {
        let stops = group.iter().map(|component| stop(*component, paths, &progress));
        ended += try_join_all(stops).await?.into_iter().filter(|ended| *ended).count();
    }
    if ended == 0 {
        progress.say("nothing was running");
    }
    // Should it fail, the rest is done all the same.
    let restored = restore_kubeconfig(paths, &progress).await;
    if purge {
        let step = progress.step(&format!("remove {}", paths.state.display()));
        remove_state(paths)?;
        step.done();
    }
    match restored {
        // What was to be undone cannot be known any more, or the file is broken: no reason to keep the rest.
        Err(err) if purge => progress.say(&format!("the kubeconfig was left as it is: {err:#}")),
        restored => restored?,
    }
    Ok(())
}

async fn stop(component: Component, paths: &Paths, progress: &Progress) -> Result<bool> {
    let step = progress.step(&format!("stop {}", component.name()));
    let ended = supervisor::stop(component, paths).await?;
    if ended {
        step.done();
    }
    Ok(ended)
}

/// Takes our context out of the file that `up` put it into.
async fn restore_kubeconfig(paths: &Paths, progress: &Progress) -> Result<()> {
    let mut settings = Settings::load(paths)?;
    let Some(merged) = settings.kubeconfig.take() else {
        return Ok(());
    };
    let access = Access::new("", "admin", paths)?;
    let step = progress.step(&format!("context {NAME} out of {}", merged.path.display()));
    if user_file::remove(&merged, &access.cluster).await? {
        step.done();
    }
    settings.save(paths)
}

/// Removes what we made, and nothing that somebody else put there.
fn remove_state(paths: &Paths) -> Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    };
    for dir in STATE_DIRS {
        gone(fs::remove_dir_all(paths.state.join(dir)))
            .with_context(|| format!("cannot remove {dir} in {}", paths.state.display()))?;
    }
    gone(fs::remove_file(paths.state.join("lock")))?;
    match fs::remove_dir(&paths.state) {
        Err(err) if err.kind() != io::ErrorKind::DirectoryNotEmpty => gone(Err(err)).map_err(Into::into),
        _ => Ok(()),
    }
}
