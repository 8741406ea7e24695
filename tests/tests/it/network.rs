//! An unprivileged user in a network namespace that has nothing but `lo` runs the whole thing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use nix::unistd::Uid;
use picoshift_tests::home::{TemporaryHome, picoshift_program, programs_cache};

/// What runs inside: everything has to happen there, since nothing outside can reach it.
const INSIDE: &str = r#"
set -eu
"$PICOSHIFT" up
trap '"$PICOSHIFT" down --purge' EXIT
"$KUBECTL" get projects default -o name
"$KUBECTL" create namespace alone
printf '%s' '{"apiVersion":"route.openshift.io/v1","kind":"Route","metadata":{"name":"web"},"spec":{"to":{"kind":"Service","name":"web"}}}' |
  "$KUBECTL" create -n alone -f - -o name
"$KUBECTL" delete namespace alone
"#;

/// An ordinary user who is nobody else's.
const NOBODY: &str = "65534";

fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-rL").arg(from).arg(to).status()?;
    ensure!(status.success(), "cannot copy {} to {}", from.display(), to.display());
    Ok(())
}

/// The command that leads into a namespace of its own as somebody without privileges.
fn isolated() -> Command {
    let enter = r#"ip link set lo up && exec "$@""#;
    let mut command = Command::new("unshare");
    if Uid::effective().is_root() {
        command.args(["--net", "sh", "-c", enter, "sh", "setpriv", "--reuid", NOBODY, "--regid", NOBODY]);
        command.args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]);
    } else {
        command.args(["--user", "--map-root-user", "--net", "sh", "-c", enter, "sh"]);
    }
    command
}

#[test]
fn an_unprivileged_user_with_loopback_only() -> anyhow::Result<()> {
    let temporary = TemporaryHome::new(picoshift_program()?)?;
    let root = &temporary.home.root;
    // Nobody may not be able to look into this user's home: programs and caches go where he can.
    let programs = temporary.home.picoshift.parent().context("picoshift lies nowhere")?;
    std::fs::create_dir(root.join("bin"))?;
    for program in ["picoshift", "picoshift-apiserver", "picoshift-controllers", "picoshift-shim"] {
        std::fs::copy(programs.join(program), root.join("bin").join(program))
            .with_context(|| program.to_owned())?;
    }
    let cache = programs_cache()?;
    std::fs::create_dir(root.join("cache"))?;
    copy_tree(&cache, &root.join("cache"))?;
    for directory in ["state", "home"] {
        std::fs::create_dir(root.join(directory))?;
    }
    let kubectl = temporary.home.kubectl()?;
    if let Ok(inside) = kubectl.strip_prefix(&cache) {
        ensure!(root.join("cache/picoshift").join(inside).is_file(), "kubectl was not copied");
    }
    let program = kubectl.strip_prefix(&cache).map(|inside| root.join("cache/picoshift").join(inside));
    if Uid::effective().is_root() {
        let owner = format!("{NOBODY}:{NOBODY}");
        let status = Command::new("chown").args(["-R", &owner]).arg(root).status()?;
        ensure!(status.success(), "cannot give the directory away");
    }
    let output = isolated()
        .args(["sh", "-c", INSIDE])
        .env("PICOSHIFT", root.join("bin/picoshift"))
        .env("KUBECTL", program.unwrap_or(kubectl))
        .env("HOME", root.join("home"))
        .env("XDG_STATE_HOME", root.join("state"))
        .env("XDG_CACHE_HOME", root.join("cache"))
        .env_remove("PICOSHIFT_STATE_DIR")
        .env("KUBECONFIG", root.join("kubeconfig"))
        .current_dir("/")
        .output()
        .context("unshare is needed: util-linux, and user namespaces for who is not root")?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "failed ({}):\n{out}{err}", output.status);
    for line in ["project.project.openshift.io/default", "route.route.openshift.io/web", "\"alone\" deleted"]
    {
        ensure!(out.contains(line), "{line} is missing in:\n{out}{err}");
    }
    Ok(())
}
