//! Writes that are kept in memory on top of a medium that is only read.

use std::collections::BTreeMap;
use std::io;

use redb::StorageBackend;

const PAGE: u64 = 4096;

/// Pages in memory that hide those of the medium below.
pub(super) struct Overlay {
    pages: BTreeMap<u64, Vec<u8>>,
    length: u64,
    /// Bytes of the medium that still count; behind it a shorter length was set, so it reads as zeros.
    below: u64,
}

impl Overlay {
    /// Nothing is hidden yet.
    pub(super) fn new(medium_length: u64) -> Self {
        Self { pages: BTreeMap::new(), length: medium_length, below: medium_length }
    }

    /// Length of what is seen.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Reads what is seen at `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` behind the end, and what the medium says.
    pub(super) fn read(&self, medium: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.length);
        if end.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_below(medium, offset, out)?;
        for (index, in_page, in_out, length) in spans(offset, out.len()) {
            if let Some(page) = self.pages.get(&index) {
                out[in_out..in_out + length].copy_from_slice(&page[in_page..in_page + length]);
            }
        }
        Ok(())
    }

    /// Keeps a write.
    ///
    /// # Errors
    /// What the medium says when the rest of a page is read.
    pub(super) fn write(&mut self, medium: &dyn StorageBackend, offset: u64, data: &[u8]) -> io::Result<()> {
        for (index, in_page, in_data, length) in spans(offset, data.len()) {
            if !self.pages.contains_key(&index) {
                let mut page = vec![0; PAGE as usize];
                self.read_below(medium, index * PAGE, &mut page)?;
                self.pages.insert(index, page);
            }
            if let Some(page) = self.pages.get_mut(&index) {
                page[in_page..in_page + length].copy_from_slice(&data[in_data..in_data + length]);
            }
        }
        self.length = self.length.max(offset.saturating_add(data.len() as u64));
        Ok(())
    }

    /// Cuts or grows; what grows is zero.
    pub(super) fn set_len(&mut self, length: u64) {
        if length < self.length {
            self.below = self.below.min(length);
            self.pages.split_off(&length.div_ceil(PAGE));
            let cut = (length % PAGE) as usize;
            if let Some(page) = self.pages.get_mut(&(length / PAGE)) {
                page[cut..].fill(0);
            }
        }
        self.length = length;
    }

    /// Reads the medium where it still counts; the rest is zero.
    fn read_below(&self, medium: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.below.saturating_sub(offset).min(out.len() as u64) as usize;
        out[there..].fill(0);
        if there > 0 {
            medium.read(offset, &mut out[..there])?;
        }
        Ok(())
    }
}

/// Cuts a range of bytes at page borders: (page, offset in the page, offset in the range, length).
fn spans(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let at = offset + done as u64;
        let in_page = (at % PAGE) as usize;
        let part = (PAGE as usize - in_page).min(length - done);
        let span = (at / PAGE, in_page, done, part);
        done += part;
        Some(span)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    use super::*;

    proptest! {
        /// Any sequence of writes and lengths reads as it would on a plain array, and leaves the medium alone.
        #[test]
        fn reads_as_an_array_would(
            start in 0usize..20_000,
            steps in proptest::collection::vec((any::<bool>(), 0usize..20_000, 0usize..9_000, any::<u8>()), 0..20),
        ) {
            let medium = InMemoryBackend::new();
            let mut model = vec![7; start];
            medium.set_len(start as u64).unwrap();
            medium.write(0, &model).unwrap();
            let mut overlay = Overlay::new(start as u64);
            for (cut, offset, length, byte) in steps {
                if cut {
                    overlay.set_len(offset as u64);
                    model.resize(offset, 0);
                } else if offset + length <= model.len() {
                    overlay.write(&medium, offset as u64, &vec![byte; length]).unwrap();
                    model[offset..offset + length].fill(byte);
                }
                let mut seen = vec![1; model.len()];
                overlay.read(&medium, 0, &mut seen).unwrap();
                prop_assert!(seen == model);
                prop_assert!(overlay.read(&medium, model.len() as u64, &mut [0]).is_err());
            }
            let mut below = vec![0; start];
            medium.read(0, &mut below).unwrap();
            prop_assert!(below.iter().all(|byte| *byte == 7));
        }
    }
}
