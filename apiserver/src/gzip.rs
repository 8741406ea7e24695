//! Gzip members put together from pieces that were deflated apart, so that a list of kept pieces costs no
//! compression. Each piece ends on a byte border and refers to nothing before it; the checksum of the whole is
//! combined from the pieces' own.

use bytes::{BufMut, Bytes, BytesMut};
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Header of a member: deflate, no name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last block.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// Most bytes of a stored block.
const STORED_MAX: usize = 0xffff;

/// A run of deflate blocks and what the trailer needs of its plain text.
#[derive(Clone, Debug)]
pub struct Piece {
    blocks: Bytes,
    checksum: Hasher,
    plain_len: usize,
}

impl Piece {
    /// Compresses at level 1, as kube-apiserver does.
    #[must_use]
    pub fn deflate(plain: &[u8]) -> Self {
        let mut compress = Compress::new(Compression::fast(), false);
        let mut out = Vec::with_capacity(plain.len() / 8 + 64);
        loop {
            let done = usize::try_from(compress.total_in()).unwrap_or(plain.len()).min(plain.len());
            out.reserve(4096);
            let before = compress.total_out();
            let status = compress.compress_vec(&plain[done..], &mut out, FlushCompress::Full);
            let all_in = usize::try_from(compress.total_in()).unwrap_or(0) >= plain.len();
            let room_left = out.len() < out.capacity();
            let stuck = compress.total_out() == before && all_in;
            if !matches!(status, Ok(Status::Ok | Status::BufError)) || (all_in && room_left) || stuck {
                break;
            }
        }
        Self::of(plain, out.into())
    }

    /// Takes short text as it is, in stored blocks.
    #[must_use]
    pub fn stored(plain: &[u8]) -> Self {
        let mut out = BytesMut::with_capacity(plain.len() + 5 * (plain.len() / STORED_MAX + 1));
        for block in plain.chunks(STORED_MAX) {
            let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
            out.put_u8(0);
            out.put_u16_le(len);
            out.put_u16_le(!len);
            out.put_slice(block);
        }
        Self::of(plain, out.freeze())
    }

    fn of(plain: &[u8], blocks: Bytes) -> Self {
        let mut checksum = Hasher::new();
        checksum.update(plain);
        Self { blocks, checksum, plain_len: plain.len() }
    }
}

/// The parts of one gzip member, in order.
#[must_use]
pub fn member<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> Vec<Bytes> {
    let mut parts = vec![Bytes::from_static(&HEADER)];
    let mut checksum = Hasher::new();
    let mut length: usize = 0;
    for piece in pieces {
        parts.push(piece.blocks.clone());
        checksum.combine(&piece.checksum);
        length = length.wrapping_add(piece.plain_len);
    }
    let mut trailer = BytesMut::with_capacity(10);
    trailer.put_slice(&LAST_BLOCK);
    trailer.put_u32_le(checksum.finalize());
    // The trailer holds the length modulo 2^32.
    trailer.put_u32_le(u32::try_from(length & 0xffff_ffff).unwrap_or(0));
    parts.push(trailer.freeze());
    parts
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any mix of pieces is one member that any reader reads back whole.
        #[test]
        fn members_read_back(texts in prop::collection::vec(
            (any::<bool>(), prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                "[a-z{}\":,]{0,40}".prop_map(|s| s.repeat(2000).into_bytes()),
            ]), 0..6)) {
            let pieces: Vec<Piece> = texts.iter()
                .map(|(stored, text)| if *stored { Piece::stored(text) } else { Piece::deflate(text) })
                .collect();
            let bytes = member(&pieces).concat();
            let mut plain = Vec::new();
            let mut reader = flate2::bufread::GzDecoder::new(bytes.as_slice());
            reader.read_to_end(&mut plain).unwrap();
            prop_assert_eq!(plain, texts.iter().flat_map(|(_, t)| t.clone()).collect::<Vec<_>>());
            prop_assert!(reader.into_inner().is_empty(), "one member and nothing behind it");
        }
    }
}
