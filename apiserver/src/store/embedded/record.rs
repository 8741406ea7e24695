//! The bytes of one record: in, a change of one key; out, what the file keeps of it, and back.
//!
//! Layout, little endian: CRC-32 (4) of the revision and all that follows, flags (1), create revision (8), previous
//! revision (8; 0 is none), length of the key (2), key, value. The revision itself is the key in the table.

use crate::store::Revision;

/// Longest key in bytes.
pub(super) const MAX_KEY: usize = 1024;
/// Largest value in bytes: what etcd takes in one request by default.
pub(super) const MAX_VALUE: usize = 1_572_864;

const TOMBSTONE: u8 = 1;
const CHECKSUM: usize = 4;
const HEADER: usize = CHECKSUM + 1 + 8 + 8 + 2;

/// A stored change, borrowed from the bytes that hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored<'a> {
    /// The key that changed.
    pub(super) key: &'a str,
    /// Revision that created the key.
    pub(super) create_revision: Revision,
    /// Revision of the record before; `None` for a creation.
    pub(super) previous: Option<Revision>,
    /// The value; `None` for a deletion.
    pub(super) value: Option<&'a [u8]>,
}

/// What was wrong with the bytes of a record.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadRecord {
    #[error("record {0} is cut short")]
    Short(Revision),
    #[error("record {0} has a wrong checksum")]
    Checksum(Revision),
    #[error("record {0} cannot be read")]
    Malformed(Revision),
}

/// Encodes a record. Its key is within [`MAX_KEY`]: submission checks that.
pub(super) fn encode(revision: Revision, stored: Stored<'_>) -> Vec<u8> {
    let value = stored.value.unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER + stored.key.len() + value.len());
    bytes.extend_from_slice(&[0; CHECKSUM]);
    bytes.push(if stored.value.is_none() { TOMBSTONE } else { 0 });
    bytes.extend_from_slice(&stored.create_revision.to_le_bytes());
    bytes.extend_from_slice(&stored.previous.unwrap_or(0).to_le_bytes());
    let key_length = u16::try_from(stored.key.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&key_length.to_le_bytes());
    bytes.extend_from_slice(stored.key.as_bytes());
    bytes.extend_from_slice(value);
    let checksum = checksum(revision, &bytes);
    bytes[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Decodes the record of `revision`.
///
/// # Errors
/// [`BadRecord`] for any bytes that [`encode`] did not make for this revision.
pub(super) fn decode(revision: Revision, bytes: &[u8]) -> Result<Stored<'_>, BadRecord> {
    let short = || BadRecord::Short(revision);
    let malformed = || BadRecord::Malformed(revision);
    let (found, mut rest) = bytes.split_first_chunk::<CHECKSUM>().ok_or_else(short)?;
    if u32::from_le_bytes(*found) != checksum(revision, bytes) {
        return Err(BadRecord::Checksum(revision));
    }
    let flags;
    let (create, previous, length);
    (flags, rest) = rest.split_first().ok_or_else(short)?;
    (create, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    (previous, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    (length, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (key, value) = rest.split_at_checked(length).ok_or_else(short)?;
    let previous = u64::from_le_bytes(*previous);
    if flags & !TOMBSTONE != 0 || (flags & TOMBSTONE != 0 && !value.is_empty()) {
        return Err(malformed());
    }
    Ok(Stored {
        key: std::str::from_utf8(key).map_err(|_| malformed())?,
        create_revision: u64::from_le_bytes(*create),
        previous: (previous != 0).then_some(previous),
        value: (flags & TOMBSTONE == 0).then_some(value),
    })
}

/// CRC of the revision and of everything behind the checksum's own place.
fn checksum(revision: Revision, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&revision.to_le_bytes());
    hasher.update(bytes.get(CHECKSUM..).unwrap_or_default());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            revision in 1..u64::MAX, create in any::<u64>(), previous in proptest::option::of(1..u64::MAX),
            key in "\\PC{0,40}", value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
        ) {
            let stored = Stored { key: &key, create_revision: create, previous, value: value.as_deref() };
            let bytes = encode(revision, stored);
            prop_assert_eq!(decode(revision, &bytes).unwrap(), stored);
            prop_assert!(decode(revision.wrapping_add(1), &bytes).is_err());
        }

        #[test]
        fn any_flipped_bit_is_noticed(value in proptest::collection::vec(any::<u8>(), 0..64), at in any::<usize>()) {
            let stored = Stored { key: "routes/a/b", create_revision: 3, previous: Some(4), value: Some(&value) };
            let mut bytes = encode(9, stored);
            let bit = at % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(9, &bytes).is_err());
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(1, &bytes);
            let mut sealed = bytes;
            if sealed.len() >= CHECKSUM {
                let sum = checksum(1, &sealed);
                sealed[..CHECKSUM].copy_from_slice(&sum.to_le_bytes());
                let _ = decode(1, &sealed);
            }
        }
    }
}
