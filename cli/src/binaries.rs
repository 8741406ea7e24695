//! The upstream programs: found in the cache, in `KUBEBUILDER_ASSETS` or on `PATH`, else built.

mod build;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Result;

use crate::paths::Paths;
use crate::progress::Progress;
use crate::versions::{self, Version};

/// A program that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Program {
    /// Kubernetes' store.
    Etcd,
    /// The Kubernetes API.
    KubeApiserver,
    /// Its controllers.
    KubeControllerManager,
    /// Its scheduler.
    KubeScheduler,
    /// The client for people.
    Kubectl,
}

impl Program {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager, Self::KubeScheduler, Self::Kubectl];

    /// The file name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
        }
    }

    /// Where the cache keeps the build of the pinned version.
    fn cached(self, paths: &Paths) -> PathBuf {
        let release = match self {
            Self::Etcd => format!("etcd-{}", versions::ETCD),
            _ => format!("kubernetes-{}", versions::KUBERNETES),
        };
        paths.cache.join("bin").join(release).join(self.name())
    }

    fn pinned(self) -> &'static str {
        match self {
            Self::Etcd => versions::ETCD,
            _ => versions::KUBERNETES,
        }
    }

    fn version_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Kubectl => &["version", "--client"],
            _ => &["--version"],
        }
    }
}

/// A program that will do.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    /// Which one.
    pub(crate) program: Program,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it is, e.g. `v1.34.4`.
    pub(crate) version: String,
}

/// All programs, each at a supported version.
#[derive(Debug, Clone)]
pub(crate) struct Binaries(Vec<Binary>);

impl Binaries {
    /// Finds all programs; builds those that are nowhere.
    pub(crate) async fn ensure(paths: &Paths, progress: &Progress) -> Result<Self> {
        let step = progress.step("look for etcd, Kubernetes and kubectl");
        let found = find_all(paths).await;
        drop(step);
        let missing = missing(&found);
        if missing.is_empty() {
            return Ok(Self(found));
        }
        build::build(&missing, paths, progress).await?;
        Ok(Self(find_all(paths).await))
    }

    /// One program.
    pub(crate) fn get(&self, program: Program) -> Result<&Binary> {
        let found = self.0.iter().find(|binary| binary.program == program);
        found.ok_or_else(|| anyhow::anyhow!("{} is missing after a build", program.name()))
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Binary> {
        self.0.iter()
    }
}

fn missing(found: &[Binary]) -> Vec<Program> {
    let is_found = |program: &Program| found.iter().any(|binary| binary.program == *program);
    Program::ALL.into_iter().filter(|program| !is_found(program)).collect()
}

async fn find_all(paths: &Paths) -> Vec<Binary> {
    let found = futures::future::join_all(Program::ALL.map(|program| find(program, paths))).await;
    found.into_iter().flatten().collect()
}

async fn find(program: Program, paths: &Paths) -> Option<Binary> {
    let cached = program.cached(paths);
    if is_executable(&cached) {
        let version = program.pinned().to_owned();
        return Some(Binary { program, path: cached, version });
    }
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let search = std::env::var_os("PATH").unwrap_or_default();
    for dir in assets.into_iter().chain(std::env::split_paths(&search)) {
        let path = dir.join(program.name());
        if !path.is_absolute() || !is_executable(&path) {
            continue;
        }
        if let Some(version) =
            probe(program, &path).await.filter(|version| versions::supported(program, *version))
        {
            let version = version.to_string();
            return Some(Binary { program, path, version });
        }
    }
    None
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Asks a program for its version; one that does not answer soon has none.
pub(crate) async fn probe(program: Program, path: &Path) -> Option<Version> {
    let output = tokio::process::Command::new(path)
        .args(program.version_arguments())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(10), output).await.ok()?.ok()?;
    Version::in_output(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[tokio::test]
    async fn asks_programs_for_their_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kube-apiserver");
        script(&path, "#!/bin/sh\n[ \"$1\" = --version ] && echo Kubernetes v1.34.1\n");
        let version = probe(Program::KubeApiserver, &path).await.unwrap();
        assert_eq!(version.to_string(), "v1.34.1");
        assert!(probe(Program::Kubectl, &path).await.is_none());
    }

    #[tokio::test]
    async fn cache_comes_first_and_is_not_asked() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { state: dir.path().join("state"), cache: dir.path().to_path_buf() };
        script(&Program::Etcd.cached(&paths), "#!/bin/sh\nexit 1\n");
        let etcd = find(Program::Etcd, &paths).await.unwrap();
        assert_eq!(etcd.version, versions::ETCD);
        assert!(etcd.path.starts_with(dir.path()));
    }
}
