//! A disk in memory that remembers in which order it was written, can fill up, and can be cut.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use crate::store::Revision;

/// One thing that happened to the disk.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
    /// A revision became visible.
    Seen(Revision),
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    events: Vec<Event>,
    /// Bytes that may still be written.
    room: Option<usize>,
    syncs_fail: bool,
}

/// The disk; clones are the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

impl Disk {
    pub(super) fn with(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State { bytes, ..State::default() })))
    }

    /// What a reader sees now.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().bytes.clone()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.0.lock().events.clone()
    }

    pub(super) fn syncs(&self) -> usize {
        self.0.lock().events.iter().filter(|event| matches!(event, Event::Sync)).count()
    }

    pub(super) fn seen(&self, revision: Revision) {
        self.0.lock().events.push(Event::Seen(revision));
    }

    /// Lets so many more bytes be written, then it is full.
    pub(super) fn fill_after(&self, room: usize) {
        self.0.lock().room = Some(room);
    }

    pub(super) fn fail_syncs(&self) {
        self.0.lock().syncs_fail = true;
    }

    pub(super) fn backend(&self) -> Box<dyn StorageBackend> {
        Box::new(self.clone())
    }
}

/// Does an event to bytes.
pub(super) fn apply(bytes: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write(offset, data) => {
            let start = *offset as usize;
            let end = start + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(data);
        }
        Event::SetLen(length) => bytes.resize(*length as usize, 0),
        Event::Sync | Event::Seen(_) => {}
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock();
        let start = offset as usize;
        let found = state.bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        let event = Event::SetLen(length);
        apply(&mut state.bytes, &event);
        state.events.push(event);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.syncs_fail {
            return Err(io::Error::other("the disk went away"));
        }
        state.events.push(Event::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        let fits = state.room.map_or(data.len(), |room| room.min(data.len()));
        if let Some(room) = &mut state.room {
            *room -= fits;
        }
        let event = Event::Write(offset, data[..fits].to_vec());
        apply(&mut state.bytes, &event);
        state.events.push(event);
        if fits < data.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}
