//! Where things are: the state directory and the cache directory.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::failure::Failure;

/// The directories below the state directory, all of them ours alone.
pub(crate) const STATE_DIRS: [&str; 7] = ["pki", "etcd", "apiserver", "logs", "run", "kubeconfig", "config"];

/// The state directory and the cache directory.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Certificates, data, logs, kubeconfigs.
    pub(crate) state: PathBuf,
    /// Programs that were built.
    pub(crate) cache: PathBuf,
}

impl Paths {
    /// The directories that the environment says, or the one given for the state.
    pub(crate) fn from_env(state_dir: Option<PathBuf>) -> Result<Self> {
        let state = match state_dir {
            Some(dir) => std::path::absolute(dir)?,
            None => xdg("XDG_STATE_HOME", ".local/state")?,
        };
        Ok(Self { state, cache: xdg("XDG_CACHE_HOME", ".cache")? })
    }

    /// A file of the PKI, e.g. `cluster-ca.crt`.
    pub(crate) fn pki(&self, file: &str) -> PathBuf {
        self.state.join("pki").join(file)
    }

    /// A component's data directory or file.
    pub(crate) fn data(&self, path: &str) -> PathBuf {
        self.state.join(path)
    }

    /// A kubeconfig by the name of its user.
    pub(crate) fn kubeconfig(&self, name: &str) -> PathBuf {
        self.state.join("kubeconfig").join(format!("{name}.kubeconfig"))
    }

    /// A component's log.
    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.state.join("logs").join(format!("{component}.log"))
    }

    /// A file that says what runs.
    pub(crate) fn run(&self, file: &str) -> PathBuf {
        self.state.join("run").join(file)
    }

    /// A configuration file that a component reads.
    pub(crate) fn config(&self, file: &str) -> PathBuf {
        self.state.join("config").join(file)
    }

    /// Makes the state directories, readable by their owner only.
    pub(crate) fn create_state(&self) -> Result<()> {
        for dir in STATE_DIRS {
            create_private_dir(&self.state.join(dir))?;
        }
        Ok(())
    }
}

fn xdg(variable: &str, below_home: &str) -> Result<PathBuf> {
    // The XDG specification: a relative path is to be ignored.
    if let Some(dir) = std::env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        return Ok(dir.join("picoshift"));
    }
    let home = std::env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        Failure::new(
            "there is no home directory",
            format!("set HOME or {variable} to a directory that you can write"),
        )
    })?;
    Ok(home.join(below_home).join("picoshift"))
}

/// Makes a directory and its parents; those that are made get mode 0700.
pub(crate) fn create_private_dir(dir: &Path) -> Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|err| {
        let remedy = match err.kind() {
            io::ErrorKind::PermissionDenied => {
                "choose another place by --state-dir, XDG_STATE_HOME or XDG_CACHE_HOME"
            }
            _ => "check that the path is a directory on a disk with space",
        };
        Failure::new(format!("cannot create {}: {err}", dir.display()), remedy)
    })?;
    Ok(())
}

/// Replaces a file as a whole: readers see the old or the new one, a crash leaves one of them.
pub(crate) fn write_atomically(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    let write = || -> io::Result<()> {
        let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let mut temporary = tempfile::Builder::new()
            .prefix(".picoshift-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
            .tempfile_in(dir)?;
        io::Write::write_all(&mut temporary, content)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|err| err.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// As [`write_atomically`], unless the file has that content already.
pub(crate) fn write_if_changed(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    write_atomically(path, content, mode)
}

/// Opens a log to append to, readable by its owner only.
pub(crate) fn open_log(path: &Path) -> Result<std::fs::File> {
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn private_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { state: dir.path().join("a/b"), cache: dir.path().join("cache") };
        paths.create_state().unwrap();
        paths.create_state().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&paths.state.join("pki")), 0o700);
        let key = paths.pki("x.key");
        write_atomically(&key, b"secret", 0o600).unwrap();
        assert_eq!(mode(&key), 0o600);
        assert_eq!(std::fs::read(&key).unwrap(), b"secret");
        assert_eq!(std::fs::read_dir(paths.state.join("pki")).unwrap().count(), 1);
    }
}
