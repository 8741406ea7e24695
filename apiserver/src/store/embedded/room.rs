//! Room on the disk, asked for before a write is taken: a write that redb cannot finish makes the file read-only until
//! a restart, one that was never begun leaves nothing behind, and the next is taken as soon as there is room again.

use std::fs::File;

use crate::store::StoreError;

/// Bytes that stay free: for pages that a commit copies, and for what is forgotten meanwhile.
const MARGIN: u64 = 4 << 20;
/// Bytes that a commit may take for each byte of its writes: pages are filled in part, and copied.
const FACTOR: u64 = 4;

/// The room on the disk of one file.
#[derive(Debug)]
pub(super) enum Room {
    /// Of a medium in memory.
    #[cfg(test)]
    Endless,
    /// What the file's file system says.
    Of(File),
    /// What a test says.
    #[cfg(test)]
    Said(parking_lot::Mutex<u64>),
}

impl Room {
    /// Whether so many bytes of writes can be taken, all that wait counted. Deletions count too: they are written.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub(super) fn check(&self, waiting: usize) -> Result<(), StoreError> {
        let free = match self {
            #[cfg(test)]
            Self::Endless => return Ok(()),
            #[cfg(test)]
            Self::Said(free) => *free.lock(),
            // A file system that does not say is written to as ever.
            Self::Of(file) => match rustix::fs::fstatvfs(file) {
                Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
                Err(_) => return Ok(()),
            },
        };
        let needed = MARGIN.saturating_add(FACTOR.saturating_mul(waiting as u64));
        if free < needed { Err(StoreError::Full { free, needed }) } else { Ok(()) }
    }
}
