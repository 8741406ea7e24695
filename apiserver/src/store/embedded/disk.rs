//! The tables of the file: what one commit writes, and what a reader sees.
//!
//! `records`: revision → [`record`], one for each change that is live or still history. `meta`: `format`, `revision`
//! (the newest change), `compacted` (up to where superseded records are gone). There is no table of keys: each live
//! key has its record, so the keys are known from `records` and the two cannot disagree.

use std::ops::RangeInclusive;

use bytes::Bytes;
use parking_lot::RwLock;
use redb::{
    Database, Error, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction,
};

use super::medium::Medium;
use super::queue::Job;
use super::record::{self, Stored};
use crate::store::{Change, Key, Record, Revision};

pub(super) const RECORDS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("records");
pub(super) const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
pub(super) const FORMAT: &str = "format";
pub(super) const REVISION: &str = "revision";
pub(super) const COMPACTED: &str = "compacted";

/// The open database.
pub(super) struct Disk {
    database: RwLock<Option<Database>>,
    pub(super) medium: Medium,
}

impl Disk {
    pub(super) fn new(database: Database, medium: Medium) -> Self {
        Self { database: RwLock::new(Some(database)), medium }
    }

    /// A reader of what is committed now.
    ///
    /// # Errors
    /// Of the medium; [`Error::DatabaseClosed`].
    pub(super) fn view(&self) -> Result<View, Error> {
        let database = self.database.read();
        let transaction = database.as_ref().ok_or(Error::DatabaseClosed)?.begin_read()?;
        let compacted = transaction.open_table(META)?.get(COMPACTED)?.map_or(0, |revision| revision.value());
        Ok(View { records: transaction.open_table(RECORDS)?, compacted })
    }

    /// Writes `jobs` and removes what the changes in `sweep` superseded, all or nothing, durable on return.
    ///
    /// # Errors
    /// Of the medium. Whether the commit is in the file is then unknown until the next open.
    pub(super) fn commit(
        &self,
        jobs: &[Job],
        sweep: Option<&RangeInclusive<Revision>>,
    ) -> Result<Vec<Change>, Error> {
        let transaction = self.begin_write()?;
        let mut changes = Vec::with_capacity(jobs.len());
        {
            let mut records = transaction.open_table(RECORDS)?;
            let mut meta = transaction.open_table(META)?;
            for job in jobs {
                changes.push(put(&mut records, job)?);
            }
            if let Some(job) = jobs.last() {
                meta.insert(REVISION, job.revision)?;
            }
            if let Some(sweep) = sweep {
                for revision in sweep.clone() {
                    remove_superseded(&mut records, revision)?;
                }
                meta.insert(COMPACTED, *sweep.end())?;
            }
        }
        transaction.commit()?;
        match self.medium.failure() {
            None => Ok(changes),
            Some(why) => Err(Error::Io(std::io::Error::other(why.to_string()))),
        }
    }

    /// Closes the file and gives up its lock; views fail from then on.
    ///
    /// # Errors
    /// Of the medium.
    pub(super) fn close(&self) -> Result<(), Error> {
        match self.database.write().take() {
            Some(database) => Ok(database.close()?),
            None => Ok(()),
        }
    }

    fn begin_write(&self) -> Result<WriteTransaction, Error> {
        let database = self.database.read();
        Ok(database.as_ref().ok_or(Error::DatabaseClosed)?.begin_write()?)
    }
}

/// Writes one change.
fn put(records: &mut Table<'_, u64, &[u8]>, job: &Job) -> Result<Change, Error> {
    let stored = Stored {
        key: &job.key,
        create_revision: job.create_revision,
        previous: job.previous,
        value: job.value.as_deref(),
    };
    records.insert(job.revision, record::encode(job.revision, stored).as_slice())?;
    let current = job.value.as_ref().map(|value| Record {
        key: Key::clone(&job.key),
        create_revision: job.create_revision,
        revision: job.revision,
        value: Bytes::clone(value),
    });
    Ok(Change { key: Key::clone(&job.key), revision: job.revision, current })
}

/// Removes what the change at `revision` superseded: the record before it, and itself where it is a deletion.
fn remove_superseded(records: &mut Table<'_, u64, &[u8]>, revision: Revision) -> Result<(), Error> {
    let (previous, deletion) = match records.get(revision)? {
        None => return Err(missing(revision)),
        Some(bytes) => {
            let stored =
                record::decode(revision, bytes.value()).map_err(|bad| Error::Corrupted(bad.to_string()))?;
            (stored.previous, stored.value.is_none())
        }
    };
    if let Some(previous) = previous {
        records.remove(previous)?;
    }
    if deletion {
        records.remove(revision)?;
    }
    Ok(())
}

fn missing(revision: Revision) -> Error {
    Error::Corrupted(format!("record {revision} is missing"))
}

/// Reads the record of a key that is known to be there.
fn read(
    records: &impl ReadableTable<u64, &'static [u8]>,
    key: &Key,
    revision: Revision,
) -> Result<Record, Error> {
    let bytes = records.get(revision)?.ok_or_else(|| missing(revision))?;
    let stored = record::decode(revision, bytes.value()).map_err(|bad| Error::Corrupted(bad.to_string()))?;
    match stored.value {
        Some(value) if stored.key == &**key => Ok(Record {
            key: Key::clone(key),
            create_revision: stored.create_revision,
            revision,
            value: Bytes::copy_from_slice(value),
        }),
        _ => Err(Error::Corrupted(format!("record {revision} is not the one of {key}"))),
    }
}

/// What was committed when the view was made.
pub(super) struct View {
    records: ReadOnlyTable<u64, &'static [u8]>,
    /// Up to where superseded records are gone from this view.
    pub(super) compacted: Revision,
}

impl View {
    /// The record that `key` has at `revision`.
    ///
    /// # Errors
    /// Of the medium, or [`Error::Corrupted`] where it is not there.
    pub(super) fn record(&self, key: &Key, revision: Revision) -> Result<Record, Error> {
        read(&self.records, key, revision)
    }

    /// Calls `visit` with each change in `revisions`, newest first where `backwards`.
    ///
    /// # Errors
    /// Of the medium, or [`Error::Corrupted`].
    pub(super) fn changes(
        &self,
        revisions: RangeInclusive<Revision>,
        backwards: bool,
        mut visit: impl FnMut(Revision, Stored<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut range = self.records.range(revisions)?;
        while let Some(entry) = if backwards { range.next_back() } else { range.next() } {
            let (revision, bytes) = entry?;
            let revision = revision.value();
            visit(
                revision,
                record::decode(revision, bytes.value()).map_err(|bad| Error::Corrupted(bad.to_string()))?,
            )?;
        }
        Ok(())
    }
}
