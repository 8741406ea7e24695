//! Builds pinned Go modules into the cache.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{Binary, Program, find_all, missing};
use crate::failure::Failure;
use crate::lock::Lock;
use crate::paths::{Paths, create_private_dir};
use crate::progress::{Progress, Step};
use crate::versions;

const GO_MODULES: [Module; 2] = [
    Module {
        title: "etcd",
        go_mod: include_str!("../../../hack/control-plane/etcd/go.mod"),
        go_sum: include_str!("../../../hack/control-plane/etcd/go.sum"),
        builds: |program| program == Program::Etcd,
    },
    Module {
        title: "Kubernetes",
        go_mod: include_str!("../../../hack/control-plane/kubernetes/go.mod"),
        go_sum: include_str!("../../../hack/control-plane/kubernetes/go.sum"),
        builds: |program| program != Program::Etcd,
    },
];

/// How many lines of a failed build are shown.
const TAIL: usize = 20;

struct Module {
    title: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    builds: fn(Program) -> bool,
}

/// Builds programs that were not found, unless another build makes them meanwhile.
pub(super) async fn build(wanted: &[Program], paths: &Paths, progress: &Progress) -> Result<()> {
    create_private_dir(&paths.cache)?;
    let _lock = Lock::acquire(&paths.cache.join("build.lock"), |holder| {
        progress.say(&format!("another build (process {holder}) is running: waiting for it"));
    })
    .await?;
    let found: Vec<Binary> = find_all(paths).await;
    let missing = missing(&found);
    remove_leftovers(&paths.cache);
    for module in GO_MODULES {
        let programs: Vec<Program> = wanted
            .iter()
            .copied()
            .filter(|program| missing.contains(program) && (module.builds)(*program))
            .collect();
        if !programs.is_empty() {
            build_module(&module, &programs, paths, progress).await?;
        }
    }
    Ok(())
}

/// Removes what interrupted builds left behind; the lock is held.
fn remove_leftovers(cache: &Path) {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".build-")) {
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

async fn build_module(
    module: &Module,
    programs: &[Program],
    paths: &Paths,
    progress: &Progress,
) -> Result<()> {
    let names: Vec<&str> = programs.iter().map(|program| program.name()).collect();
    let step = progress.step(&format!("build {} of {}", names.join(", "), module.title));
    step.detail("the first time this takes minutes");
    let dir = tempfile::Builder::new().prefix(".build-").tempdir_in(&paths.cache)?;
    std::fs::write(dir.path().join("go.mod"), module.go_mod)?;
    std::fs::write(dir.path().join("go.sum"), module.go_sum)?;
    let output = dir.path().join("out");
    std::fs::create_dir(&output)?;
    run_go(programs, dir.path(), &output, &step).await?;
    for program in programs {
        let built = output.join(program.name());
        // Without this, a power cut could leave the name of a file that has no content.
        File::open(&built).and_then(|file| file.sync_all()).context("the build wrote no program")?;
        let installed = program.cached(paths);
        create_private_dir(installed.parent().context("the cache has no parent")?)?;
        std::fs::rename(&built, &installed)
            .with_context(|| format!("cannot install {}", installed.display()))?;
    }
    step.done();
    Ok(())
}

async fn run_go(programs: &[Program], dir: &Path, output: &Path, step: &Step) -> Result<()> {
    let mut command = tokio::process::Command::new("go");
    command.args(["build", "-v", "-trimpath", "-buildvcs=false"]);
    command.arg("-ldflags").arg(linker_flags(programs));
    // With one program, `-o` names the file: `go` would call etcd's "server".
    let output = match programs {
        [program] => output.join(program.name()),
        _ => output.join(""),
    };
    command.arg("-o").arg(output).args(programs.iter().map(|program| package(*program)));
    let mut child = command
        .current_dir(dir)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(no_go)?;
    let mut lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
    let (mut packages, mut tail) = (0_usize, Vec::new());
    while let Some(line) = lines.next_line().await? {
        if is_package(&line) {
            packages += 1;
            step.detail(&format!("{packages} packages compiled"));
        } else if line.starts_with("go: downloading ") {
            step.detail(line.trim_start_matches("go: "));
        } else {
            tail.push(line);
        }
    }
    if child.wait().await?.success() {
        return Ok(());
    }
    let tail = tail[tail.len().saturating_sub(TAIL)..].join("\n  ");
    Err(Failure::new(
        format!("go build failed:\n  {tail}"),
        "Go 1.26 or newer, access to the Go module proxy, 6 GB of disk and 4 GB of memory are needed; \
         or set KUBEBUILDER_ASSETS to a directory that holds the programs",
    )
    .into())
}

fn no_go(err: std::io::Error) -> anyhow::Error {
    if err.kind() != std::io::ErrorKind::NotFound {
        return err.into();
    }
    Failure::new(
        "the programs of the control plane are to be built, and `go` is not on PATH",
        "install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a directory that holds the programs",
    )
    .into()
}

/// `go build -v` prints the path of each package that it compiles.
fn is_package(line: &str) -> bool {
    !line.starts_with('#') && !line.contains([' ', ':']) && !line.is_empty()
}

fn package(program: Program) -> String {
    match program {
        Program::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
        _ => format!("k8s.io/kubernetes/cmd/{}", program.name()),
    }
}

/// A plain module build of Kubernetes calls itself `v0.0.0-master+$Format`, which clients cannot parse.
fn linker_flags(programs: &[Program]) -> String {
    let mut flags = "-s -w".to_owned();
    if programs == [Program::Etcd] {
        return flags;
    }
    let mut numbers = versions::KUBERNETES.trim_start_matches('v').split('.');
    let values = [
        ("gitVersion", versions::KUBERNETES),
        ("gitMajor", numbers.next().unwrap_or_default()),
        ("gitMinor", numbers.next().unwrap_or_default()),
        // A module does not say which commit it is of; this is what clients print for none.
        ("gitCommit", "unknown"),
        ("gitTreeState", "clean"),
        ("buildDate", versions::KUBERNETES_DATE),
    ];
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in values {
            flags.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_stamped() {
        let flags = linker_flags(&[Program::KubeApiserver]);
        assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.34.4 "));
        assert!(flags.contains("-X k8s.io/client-go/pkg/version.gitMinor=34 "));
        assert_eq!(linker_flags(&[Program::Etcd]), "-s -w");
    }

    #[test]
    fn progress_counts_packages_only() {
        assert!(is_package("k8s.io/api/core/v1"));
        assert!(!is_package("go: downloading k8s.io/api v0.34.4"));
        assert!(!is_package("# k8s.io/api/core/v1"));
        assert!(!is_package("x.go:3:1: syntax error"));
    }

    #[test]
    fn leftovers_go_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".build-x/out")).unwrap();
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        remove_leftovers(dir.path());
        assert!(!dir.path().join(".build-x").exists());
        assert!(dir.path().join("bin").exists());
    }
}
