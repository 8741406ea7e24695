//! `up`, `down` and the user's kubeconfig, on a control plane of its own beside the one that runs.

use std::path::Path;

use anyhow::{Context as _, ensure};
use kube::config::Kubeconfig;
use picoshift_tests::ControlPlane;
use picoshift_tests::home::{TemporaryHome, picoshift_program};
use picoshift_tests::objects::{PROJECT_REQUESTS, project_path, project_request};
use serde_json::{Value, json};

fn read(path: &Path) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(Kubeconfig::read_from(path)?)?)
}

/// What the user had before: a context of another cluster, made current.
fn users_own() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "work", "preferences": {},
        "clusters": [{"name": "work", "cluster": {"server": "https://work.example.org:6443"}}],
        "users": [{"name": "me", "user": {"token": "not-a-secret"}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me", "namespace": "mine"}}],
    })
}

#[tokio::test]
async fn up_and_down_leave_everything_else_as_it_was() -> anyhow::Result<()> {
    let temporary = TemporaryHome::new(picoshift_program()?)?;
    let home = &temporary.home;
    let file = home.user_kubeconfig();
    std::fs::write(&file, serde_json::to_vec_pretty(&users_own())?)?;
    let before = read(&file)?;

    home.run(&["up"])?;
    let during = read(&file)?;
    assert_eq!(during["current-context"], "picoshift");
    for list in ["clusters", "users", "contexts"] {
        let entries = during[list].as_array().context("no list")?;
        ensure!(entries.contains(&before[list][0]), "the user's own entry of {list} has changed");
    }
    let first = home.components()?;
    ensure!(first.iter().all(|component| component.healthy && component.runs()), "{first:?}");

    // Again: nothing is started, nothing restarted.
    home.run(&["up"])?;
    assert_eq!(home.components()?, first);

    {
        let plane = ControlPlane::open(home.clone()).await?;
        let alice = plane.by_certificate("alice", Some(picoshift_tests::objects::OAUTH_GROUP))?;
        alice.api.post(PROJECT_REQUESTS, &project_request("kept")).await?.expect_code(201)?;
    }
    home.run(&["down"])?;
    ensure!(!first.iter().any(picoshift_tests::process::Component::runs), "down left something running");
    assert_eq!(read(&file)?, before);
    home.run(&["down"])?;

    // Data survive `down` and `up`, and `down --purge` removes them.
    home.run(&["up"])?;
    {
        let plane = ControlPlane::open(home.clone()).await?;
        plane.admin()?.api.get(&project_path("kept")).await?.expect_code(200)?;
    }
    let second = home.components()?;
    home.run(&["down", "--purge"])?;
    ensure!(!second.iter().any(picoshift_tests::process::Component::runs), "down left something running");
    ensure!(!home.state().exists(), "down --purge left {}", home.state().display());
    assert_eq!(read(&file)?, before);
    Ok(())
}

#[tokio::test]
async fn private_keys_are_private() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let plane = ControlPlane::shared().await?;
    let mut folders = vec![plane.home.state()];
    let mut keys = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
            if text.contains("PRIVATE KEY-----") || text.contains("client-key-data") {
                keys += 1;
                let mode = entry.metadata()?.permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{} has mode {mode:o}", entry.path().display());
            }
        }
    }
    ensure!(keys >= 5, "found only {keys} keys");
    Ok(())
}
