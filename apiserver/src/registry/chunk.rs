//! A run of neighbouring items whose list encoding is made once and kept: plain, and deflated.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};

use crate::rest::Item;

/// Items that stand next to each other in a list.
#[derive(Debug)]
pub struct Chunk {
    items: Vec<Arc<Item>>,
    joined: OnceLock<Bytes>,
}

impl Chunk {
    /// A chunk of items, in order; never empty.
    #[must_use]
    pub fn new(items: Vec<Arc<Item>>) -> Self {
        Self { items, joined: OnceLock::new() }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The items' bytes, joined by commas.
    pub fn joined(&self) -> &Bytes {
        self.joined.get_or_init(|| {
            let size = self.items.iter().map(|i| i.bytes.len() + 1).sum();
            let mut out = BytesMut::with_capacity(size);
            for (at, item) in self.items.iter().enumerate() {
                if at > 0 {
                    out.put_u8(b',');
                }
                out.put_slice(&item.bytes);
            }
            out.freeze()
        })
    }
}
