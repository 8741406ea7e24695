//! What is made from files, and made again when they change: certificates, authorities.
//!
//! [`Followed::keep_fresh`] looks at size and modification time of the files every few seconds (a `stat` call each) and a
//! caller may ask at once, on SIGHUP. Files from which nothing can be made, as seen in the middle of a replacement, change
//! nothing: the old value stays and the next look tries again.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// What a file looked like when it was read.
type Stamp = (u64, SystemTime);

type Make<T, E> = Box<dyn Fn() -> Result<T, E> + Send + Sync>;

/// A value that follows its files.
pub struct Followed<T, E> {
    what: &'static str,
    files: Vec<PathBuf>,
    make: Make<T, E>,
    current: ArcSwap<T>,
    stamps: Mutex<Option<Vec<Stamp>>>,
}

impl<T, E: Error> Followed<T, E> {
    /// Makes the value. `what` names it in the log.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(
        what: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        let seen = stamps(&files);
        let current = ArcSwap::from_pointee(make()?);
        Ok(Self { what, files, make: Box::new(make), current, stamps: Mutex::new(seen) })
    }

    /// The value now.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Makes the value again if a file changed; says whether there is a new one.
    ///
    /// # Errors
    /// Those of `make`; the old value stays.
    pub fn reload_if_changed(&self) -> Result<bool, E> {
        let seen = stamps(&self.files);
        if seen.is_some() && *self.stamps.lock() == seen {
            return Ok(false);
        }
        self.current.store(Arc::new((self.make)()?));
        *self.stamps.lock() = seen;
        Ok(true)
    }

    /// Looks at the files now, and says in the log what came of it: for SIGHUP.
    pub fn look(&self) {
        match self.reload_if_changed() {
            Ok(new) => tracing::info!(what = self.what, new, "files looked at"),
            Err(error) => self.stays(&error),
        }
    }

    /// Looks at the files every `period`, for ever.
    pub async fn keep_fresh(&self, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            match self.reload_if_changed() {
                Ok(true) => tracing::info!(what = self.what, "new files"),
                Ok(false) => {}
                Err(error) => self.stays(&error),
            }
        }
    }

    fn stays(&self, error: &E) {
        tracing::warn!(what = self.what, %error, "it stays as it was");
    }
}

impl<T, E> std::fmt::Debug for Followed<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followed")
            .field("what", &self.what)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

fn stamps(files: &[PathBuf]) -> Option<Vec<Stamp>> {
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    files.iter().map(stamp).collect()
}
