//! One `up`, `down` or build at a time: locks that end with their process.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// A held lock; dropping it, or dying, releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock in `path`, saying so by `waiting` (called with the holder's process id) if it is taken.
    pub(crate) async fn acquire(path: &Path, waiting: impl FnOnce(&str)) -> Result<Self> {
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                waiting(holder.trim());
                file = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await??;
            }
            Err(TryLockError::Error(err)) => {
                return Err(err).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = Lock::acquire(&path, |_| panic!("nobody holds it")).await.unwrap();
        let (told, hears) = tokio::sync::oneshot::channel();
        let second = tokio::spawn({
            let path = path.clone();
            async move { Lock::acquire(&path, |holder| told.send(holder.to_owned()).unwrap()).await }
        });
        assert_eq!(hears.await.unwrap(), std::process::id().to_string());
        assert!(!second.is_finished());
        drop(first);
        tokio::time::timeout(Duration::from_secs(5), second).await.unwrap().unwrap().unwrap();
    }
}
