//! How much superseded data the file still holds, and how far to forget it.

use std::collections::VecDeque;

use crate::store::Revision;

/// The kept changes, oldest first, as the bytes that forgetting each one would free.
#[derive(Debug)]
pub(super) struct History {
    swept: Revision,
    freed: VecDeque<u32>,
    bytes: u64,
}

impl History {
    /// An empty history from `swept` on.
    pub(super) fn new(swept: Revision) -> Self {
        Self { swept, freed: VecDeque::new(), bytes: 0 }
    }

    /// Revision up to which everything superseded is gone from the file.
    pub(super) fn swept(&self) -> Revision {
        self.swept
    }

    /// The newest change.
    pub(super) fn newest(&self) -> Revision {
        self.swept + self.freed.len() as Revision
    }

    /// Adds the next change; `freed` bytes go when it is forgotten.
    pub(super) fn push(&mut self, freed: u32) {
        self.freed.push_back(freed);
        self.bytes += u64::from(freed);
    }

    /// Forgets the changes up to `revision`.
    pub(super) fn sweep(&mut self, revision: Revision) {
        while self.swept < revision
            && let Some(freed) = self.freed.pop_front()
        {
            self.bytes -= u64::from(freed);
            self.swept += 1;
        }
    }

    /// Up to where to forget so that at most `changes` changes and `bytes` bytes stay. Nothing is asked for until a
    /// limit is passed by an eighth, so that the work comes in pieces worth a commit.
    pub(super) fn excess(&self, changes: usize, bytes: u64) -> Revision {
        let mut kept = self.freed.len();
        let mut kept_bytes = self.bytes;
        if kept <= changes.saturating_add(changes / 8) && kept_bytes <= bytes.saturating_add(bytes / 8) {
            return self.swept;
        }
        let mut target = self.swept;
        for freed in &self.freed {
            if kept <= changes && kept_bytes <= bytes {
                break;
            }
            kept -= 1;
            kept_bytes -= u64::from(*freed);
            target += 1;
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_the_limits_allow() {
        let mut history = History::new(100);
        for _ in 0..90 {
            history.push(10);
        }
        assert_eq!(history.newest(), 190);
        assert_eq!(history.excess(80, 10_000), 100, "no more than an eighth over: nothing to do yet");
        history.push(10);
        assert_eq!(history.excess(80, 10_000), 111);
        assert_eq!(history.excess(1_000, 100), 181, "bytes bound it too");
        history.sweep(111);
        assert_eq!((history.swept(), history.newest()), (111, 191));
        assert_eq!(history.excess(80, 10_000), 111);
        history.sweep(10_000);
        assert_eq!((history.swept(), history.newest()), (191, 191));
    }
}
