//! The file and its directory: who may read it, how it comes to be, who holds it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::{Refusal, open};

/// The backend of the store's file, which is made first where there is none. It appears under its name only when it is
/// whole and synced; so an empty or half-written file is damage, never a new store.
///
/// # Errors
/// [`Refusal::Locked`] when another process is just making it; [`Refusal::Io`].
pub(super) fn backend(path: &Path) -> Result<Box<dyn StorageBackend>, Refusal> {
    if !fs::exists(path)? {
        create(path)?;
    }
    file_backend(OpenOptions::new().read(true).write(true).open(path)?)
}

fn file_backend(file: File) -> Result<Box<dyn StorageBackend>, Refusal> {
    Ok(Box::new(FileBackend::new(file)?))
}

fn create(path: &Path) -> Result<(), Refusal> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !fs::exists(parent)? {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        if let Some(above) = parent.parent().filter(|above| !above.as_os_str().is_empty()) {
            File::open(above)?.sync_all()?;
        }
    }
    let directory = File::open(parent)?;
    match directory.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Refusal::Locked),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    // Made by another process while this one came here.
    if fs::exists(path)? {
        return Ok(());
    }
    let unfinished = beside(path);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&unfinished)?;
    open::initialize(file_backend(file)?)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(&unfinished, path)?;
    directory.sync_all()?;
    Ok(())
}

/// Where the file is made.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}
