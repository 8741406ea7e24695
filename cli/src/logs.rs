//! Reads the components' logs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How much of a log's end is looked at for its last lines.
const TAIL_BYTES: u64 = 256 << 10;

/// The last lines of a log after a position.
pub(crate) fn tail(path: &Path, from: u64, lines: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    let start = from.min(end).max(end.saturating_sub(TAIL_BYTES));
    file.seek(SeekFrom::Start(start))?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let content = String::from_utf8_lossy(&content);
    let mut all: Vec<String> = content.lines().map(str::to_owned).collect();
    if start > from && !all.is_empty() {
        // It begins in the middle of a line.
        all.remove(0);
    }
    Ok(all.split_off(all.len().saturating_sub(lines)))
}

/// A log from which what is new is read again and again, also after it was put aside for a new one.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    prefix: String,
    position: u64,
    /// The beginning of a line whose end is not there yet.
    partial: Vec<u8>,
}

impl Follower {
    /// Follows a log from a position; each line gets the prefix.
    pub(crate) fn new(path: PathBuf, prefix: String, position: u64) -> Self {
        Self { path, prefix, position, partial: Vec::new() }
    }

    /// Prints the whole lines that are new; the last one also if it has no end, when `last` says that no more is read.
    pub(crate) fn print_new(&mut self, output: &mut impl Write, last: bool) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(err),
        };
        if file.metadata()?.len() < self.position {
            self.position = 0;
            self.partial.clear();
        }
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read_to_end(&mut self.partial)?;
        self.position += read as u64;
        let mut rest = self.partial.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            output.write_all(self.prefix.as_bytes())?;
            output.write_all(&rest[..=end])?;
            rest = &rest[end + 1..];
        }
        if last && !rest.is_empty() {
            output.write_all(self.prefix.as_bytes())?;
            output.write_all(rest)?;
            output.write_all(b"\n")?;
            rest = &[];
        }
        self.partial = rest.to_vec();
        Ok(())
    }
}

/// The position at which the last lines of a log begin.
pub(crate) fn tail_position(path: &Path, lines: usize) -> u64 {
    let length = |line: &String| line.len() as u64 + 1;
    let end = std::fs::metadata(path).map_or(0, |file| file.len());
    let bytes: u64 = tail(path, 0, lines).unwrap_or_default().iter().map(length).sum();
    end.saturating_sub(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 0, 2).unwrap(), ["b", "c"]);
        assert_eq!(tail(&path, 4, 2).unwrap(), ["c"]);
        assert_eq!(tail(&path, 99, 2).unwrap(), [""; 0]);
        assert_eq!(tail_position(&path, 1), 4);
        let long: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&path, long).unwrap();
        assert_eq!(tail(&path, 0, 1).unwrap(), ["line 99999"]);
    }

    #[test]
    fn follows_appended_lines_and_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut follower = Follower::new(path.clone(), "x | ".to_owned(), 0);
        let mut printed = |last: bool| {
            let mut output = Vec::new();
            follower.print_new(&mut output, last).unwrap();
            String::from_utf8(output).unwrap()
        };
        assert_eq!(printed(false), "");
        std::fs::write(&path, "one\ntw").unwrap();
        assert_eq!(printed(false), "x | one\n");
        std::fs::write(&path, "one\ntwo\nthree").unwrap();
        assert_eq!(printed(false), "x | two\n");
        assert_eq!(printed(true), "x | three\n");
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(printed(false), "x | new\n");
    }
}
