//! Writes lines to a file, or to standard output, on a thread of its own: no request waits for a disk. What does not
//! fit into the buffer, or cannot be written, is lost and counted.
//!
//! Whoever rotates the file moves it away and sends SIGHUP; the next line goes to a new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Bytes that may wait to be written.
const BUFFER: usize = 32 << 20;

/// Where an event was lost; the names are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Plugin {
    plugin: &'static str,
}

const BUFFERED: Plugin = Plugin { plugin: "buffered" };
const WRITTEN: Plugin = Plugin { plugin: "log" };

#[derive(Default)]
struct Pending {
    lines: Vec<u8>,
    count: u64,
    reopen: bool,
    closed: bool,
}

/// A log file that is written behind the requests.
pub struct Log {
    pending: Mutex<Pending>,
    there_is_work: Condvar,
    limit: usize,
    lost: Family<Plugin, Counter>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

enum Target {
    Stdout,
    File { path: PathBuf, file: Option<File> },
}

impl Log {
    /// Opens a file to append to, `-` for standard output, and starts writing.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not started.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        Self::with_limit(path, BUFFER)
    }

    pub(super) fn with_limit(path: &Path, limit: usize) -> io::Result<Arc<Self>> {
        let target = if path.as_os_str() == "-" {
            Target::Stdout
        } else {
            Target::File { path: path.to_owned(), file: Some(append_to(path)?) }
        };
        let log = Arc::new(Self {
            pending: Mutex::default(),
            there_is_work: Condvar::new(),
            limit,
            lost: Family::default(),
            writer: Mutex::default(),
        });
        let writes = Arc::clone(&log);
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(move || writes.run(target))?;
        *log.writer.lock() = Some(writer);
        Ok(log)
    }

    pub(super) fn lost(&self) -> Family<Plugin, Counter> {
        self.lost.clone()
    }

    /// Takes a line, with its end. Never waits.
    pub(super) fn write(&self, line: &[u8]) {
        let mut pending = self.pending.lock();
        if pending.closed || pending.lines.len() + line.len() > self.limit {
            drop(pending);
            self.lost.get_or_create(&BUFFERED).inc();
            return;
        }
        pending.lines.extend_from_slice(line);
        pending.count += 1;
        self.there_is_work.notify_one();
    }

    /// The file has been moved: what is written from now on goes to a new one of the same name.
    pub fn reopen(&self) {
        self.pending.lock().reopen = true;
        self.there_is_work.notify_one();
    }

    /// Writes what is there, and ends. Blocks.
    pub fn close(&self) {
        self.pending.lock().closed = true;
        self.there_is_work.notify_one();
        if let Some(writer) = self.writer.lock().take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the audit log panicked");
        }
    }

    fn run(&self, mut target: Target) {
        let mut failing = false;
        loop {
            let (mut lines, count, reopen, closed) = {
                let mut pending = self.pending.lock();
                while pending.lines.is_empty() && !pending.reopen && !pending.closed {
                    self.there_is_work.wait(&mut pending);
                }
                let count = mem::take(&mut pending.count);
                (mem::take(&mut pending.lines), count, mem::take(&mut pending.reopen), pending.closed)
            };
            if reopen {
                target.forget();
            }
            let written = if lines.is_empty() { Ok(()) } else { target.write(&lines) };
            match written {
                Ok(()) => failing = false,
                Err(error) => {
                    self.lost.get_or_create(&WRITTEN).inc_by(count);
                    // Once, not for every batch.
                    if !mem::replace(&mut failing, true) {
                        tracing::error!(%error, "audit events are lost");
                    }
                }
            }
            if closed {
                return;
            }
            // Its room is used again, unless a flood has made it large.
            lines.clear();
            let mut pending = self.pending.lock();
            if pending.lines.capacity() == 0 && lines.capacity() <= 1 << 20 {
                pending.lines = lines;
            }
        }
    }
}

impl Target {
    fn forget(&mut self) {
        if let Self::File { file, .. } = self {
            *file = None;
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines)?;
                out.flush()
            }
            Self::File { path, file } => {
                let open = match file.take() {
                    Some(open) => open,
                    None => append_to(path)?,
                };
                let written = (&open).write_all(lines);
                *file = Some(open);
                written
            }
        }
    }
}

/// Only its owner may read who does what.
fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_and_a_moved_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = Log::open(&path).unwrap();
        log.write(b"one\n");
        while std::fs::read_to_string(&path).unwrap() != "one\n" {
            thread::yield_now();
        }
        let moved = folder.path().join("audit.log.1");
        std::fs::rename(&path, &moved).unwrap();
        log.write(b"two\n");
        while std::fs::read_to_string(&moved).unwrap() != "one\ntwo\n" {
            thread::yield_now();
        }
        log.reopen();
        while log.pending.lock().reopen {
            thread::yield_now();
        }
        log.write(b"three\n");
        log.close();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\ntwo\n");
        log.write(b"too late\n");
        assert_eq!(log.lost.get_or_create(&BUFFERED).get(), 1);
    }

    #[test]
    fn what_does_not_fit_or_cannot_be_written_is_counted() {
        let log = Log::with_limit(Path::new("/dev/full"), 100).unwrap();
        log.write(&[b'x'; 101]);
        assert_eq!(log.lost.get_or_create(&BUFFERED).get(), 1);
        log.write(b"one\n");
        log.close();
        assert_eq!(log.lost.get_or_create(&WRITTEN).get(), 1);
        assert!(Log::open(Path::new("/nowhere/audit.log")).is_err());
    }
}
