//! From bytes on a medium to a checked database: nothing is written before everything has been read and found sound.

use std::collections::btree_map::Entry;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{
    Builder, Database, DatabaseError, Error, ReadableDatabase, ReadableTable, StorageBackend, StorageError,
};

use super::Refusal;
use super::disk::{COMPACTED, Disk, FORMAT, META, RECORDS, REVISION};
use super::history::History;
use super::medium::Medium;
use super::record::{self, Stored};
use super::state::{Keys, Live, record_size};
use crate::store::{Key, Revision};

/// Revision of a store without a write. Not 0, which to clients means "any".
pub(super) const FIRST_REVISION: Revision = 1;
/// The format of tables and records that this program writes; 1 is the first.
pub(super) const FORMAT_VERSION: u64 = 1;
/// Below this size of the file, unused space in it does not matter.
const SMALL_FILE: u64 = 64 << 20;

/// A database that was found sound.
pub(super) struct Loaded {
    pub(super) disk: Disk,
    pub(super) keys: Keys,
    pub(super) history: History,
}

/// Makes an empty store on an empty medium.
///
/// # Errors
/// [`Refusal::Locked`], [`Refusal::Io`].
pub(super) fn initialize(backend: Box<dyn StorageBackend>) -> Result<(), Refusal> {
    let medium = Medium::staged(backend)?;
    medium.release()?;
    let database = Builder::new().create_with_backend(medium.clone())?;
    let written = write_empty(&database);
    let closed = database.close();
    written?;
    closed?;
    medium.failure().map_or(Ok(()), |why| Err(Refusal::Io(io::Error::other(why.to_string()))))
}

fn write_empty(database: &Database) -> Result<(), Refusal> {
    let transaction = database.begin_write().map_err(Error::from)?;
    {
        transaction.open_table(RECORDS).map_err(Error::from)?;
        let mut meta = transaction.open_table(META).map_err(Error::from)?;
        for (name, value) in
            [(FORMAT, FORMAT_VERSION), (REVISION, FIRST_REVISION), (COMPACTED, FIRST_REVISION)]
        {
            meta.insert(name, value).map_err(Error::from)?;
        }
    }
    transaction.commit().map_err(Error::from)?;
    Ok(())
}

/// Opens what [`initialize`] made. Recovers from a crash; every page and every record is checked.
///
/// # Errors
/// [`Refusal`]; nothing was written then, unless the medium itself failed ([`Refusal::Io`]).
pub(super) fn load(backend: Box<dyn StorageBackend>, cache_bytes: usize) -> Result<Loaded, Refusal> {
    // redb promises errors, not panics, for altered files when it checks on open; that promise is kept here.
    let outcome = catch_unwind(AssertUnwindSafe(|| check(backend, cache_bytes)));
    outcome.unwrap_or_else(|_| Err(Refusal::Damaged("its pages do not fit together".into())))
}

fn check(backend: Box<dyn StorageBackend>, cache_bytes: usize) -> Result<Loaded, Refusal> {
    let medium = Medium::staged(backend)?;
    if StorageBackend::len(&medium)? == 0 {
        return Err(Refusal::Damaged("it is empty".into()));
    }
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_check_integrity_on_open(true);
    let mut database = builder.create_with_backend(medium.clone())?;
    let (keys, history, stored_bytes) = scan(&database)?;
    medium.release()?;
    let length = StorageBackend::len(&medium)?;
    if length > SMALL_FILE && length / 4 > stored_bytes {
        tracing::info!(length, stored_bytes, "compacting the store's file");
        database.compact().map_err(Error::from)?;
    }
    if let Some(why) = medium.failure() {
        return Err(Refusal::Io(io::Error::other(why.to_string())));
    }
    Ok(Loaded { disk: Disk::new(database, medium), keys, history })
}

/// Reads everything and checks that it makes one history.
fn scan(database: &Database) -> Result<(Keys, History, u64), Refusal> {
    let transaction = database.begin_read().map_err(Error::from)?;
    let meta = transaction.open_table(META).map_err(|_| foreign())?;
    let number = |name: &str| -> Result<u64, Refusal> {
        let value = meta.get(name).map_err(Error::from)?;
        value.map(|value| value.value()).ok_or_else(foreign)
    };
    let format = number(FORMAT)?;
    if format > FORMAT_VERSION {
        return Err(Refusal::Newer { found: format, supported: FORMAT_VERSION });
    }
    if format == 0 {
        return Err(foreign());
    }
    let (revision, compacted) = (number(REVISION)?, number(COMPACTED)?);
    let records = transaction.open_table(RECORDS).map_err(|_| foreign())?;
    let mut scan = Scan { keys: Keys::default(), history: History::new(compacted), bytes: 0 };
    for entry in records.iter().map_err(Error::from)? {
        let (at, bytes) = entry.map_err(Error::from)?;
        let at = at.value();
        let stored = record::decode(at, bytes.value()).map_err(|bad| Refusal::Damaged(bad.to_string()))?;
        scan.add(at, stored)?;
    }
    if scan.history.newest() != revision {
        let found = scan.history.newest();
        return Err(Refusal::Damaged(format!("its history ends at {found}, not at {revision}")));
    }
    scan.keys.revision = revision;
    Ok((scan.keys, scan.history, scan.bytes))
}

fn foreign() -> Refusal {
    Refusal::Damaged("it is not a picoshift store".into())
}

struct Scan {
    keys: Keys,
    history: History,
    bytes: u64,
}

impl Scan {
    /// Adds the next record; what a correct engine cannot have written is refused.
    fn add(&mut self, at: Revision, stored: Stored<'_>) -> Result<(), Refusal> {
        let wrong = |what: &str| Refusal::Damaged(format!("record {at} {what}"));
        let kept = at > self.history.swept();
        if kept && at != self.history.newest() + 1 {
            return Err(wrong("does not follow the one before"));
        }
        let size = record_size(stored.key, stored.value.map_or(0, <[u8]>::len));
        self.bytes += u64::from(size);
        let mut freed = if stored.value.is_none() { size } else { 0 };
        let live = Live { create_revision: stored.create_revision, revision: at, size };
        match self.keys.live.entry(Key::from(stored.key)) {
            Entry::Vacant(vacant) => {
                if stored.value.is_none()
                    || (kept && (stored.previous.is_some() || stored.create_revision != at))
                {
                    return Err(wrong("has lost the one before"));
                }
                vacant.insert(live);
            }
            Entry::Occupied(mut occupied) => {
                let before = *occupied.get();
                if !kept || stored.previous != Some(before.revision) {
                    return Err(wrong("does not follow the one of its key"));
                }
                if stored.create_revision != before.create_revision {
                    return Err(wrong("has another creation than the one before"));
                }
                freed = freed.saturating_add(before.size);
                if stored.value.is_none() {
                    occupied.remove();
                } else {
                    occupied.insert(live);
                }
            }
        }
        if kept {
            self.history.push(freed);
        }
        Ok(())
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::Damaged(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::Locked,
            DatabaseError::Storage(StorageError::Io(error)) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => Self::Locked,
            Error::Io(error) => error.into(),
            other => Self::Damaged(other.to_string()),
        }
    }
}
