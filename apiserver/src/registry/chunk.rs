//! A run of neighbouring items whose list encoding is made once and kept: plain, and deflated.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};

use crate::gzip::Piece;
use crate::rest::Item;

/// Items that stand next to each other in a list.
#[derive(Debug)]
pub struct Chunk {
    items: Vec<Arc<Item>>,
    joined: OnceLock<Bytes>,
    deflated: OnceLock<Piece>,
}

impl Chunk {
    /// A chunk of items, in order; never empty.
    #[must_use]
    pub fn new(items: Vec<Arc<Item>>) -> Self {
        Self { items, joined: OnceLock::new(), deflated: OnceLock::new() }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// Length of [`Chunk::joined`], without making it.
    #[must_use]
    pub fn joined_len(&self) -> usize {
        self.items.iter().map(|item| item.bytes.len() + 1).sum::<usize>().saturating_sub(1)
    }

    /// The items' bytes, joined by commas.
    pub fn joined(&self) -> &Bytes {
        self.joined.get_or_init(|| {
            let mut out = BytesMut::with_capacity(self.joined_len());
            for (at, item) in self.items.iter().enumerate() {
                if at > 0 {
                    out.put_u8(b',');
                }
                out.put_slice(&item.bytes);
            }
            out.freeze()
        })
    }

    /// [`Chunk::joined`], deflated: a piece of a gzip member.
    pub fn deflated(&self) -> &Piece {
        self.deflated.get_or_init(|| Piece::deflate(self.joined()))
    }
}
