//! A run of neighbouring items whose list encoding is made once and kept: plain, and deflated.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;

use crate::gzip::Piece;
use crate::rest::Item;

/// Items that stand next to each other in a list.
#[derive(Debug)]
pub struct Chunk {
    items: Vec<Arc<Item>>,
    joined: OnceLock<Bytes>,
    deflated: OnceLock<Piece>,
    /// What was asked of single namespaces, where the chunk holds several.
    parts: Mutex<Vec<Arc<Chunk>>>,
}

impl Chunk {
    /// A chunk of items, in order; never empty.
    #[must_use]
    pub fn new(items: Vec<Arc<Item>>) -> Self {
        Self { items, joined: OnceLock::new(), deflated: OnceLock::new(), parts: Mutex::default() }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// Length of [`Chunk::joined`], without making it.
    #[must_use]
    pub fn joined_len(&self) -> usize {
        self.items.iter().map(|item| item.listed().len() + 2).sum::<usize>().saturating_sub(1)
    }

    /// The items' bytes, joined by commas.
    pub fn joined(&self) -> &Bytes {
        self.joined.get_or_init(|| self.join())
    }

    /// [`Chunk::joined`], deflated: a piece of a gzip member. Clients that read gzip need the plain bytes no more, so
    /// those are not kept for them.
    pub fn deflated(&self) -> &Piece {
        self.deflated.get_or_init(|| match self.joined.get() {
            Some(joined) => Piece::deflate(joined),
            None => Piece::deflate(&self.join()),
        })
    }

    /// The items of one namespace; the chunk itself where there are no others. Kept as long as the chunk is.
    #[must_use]
    pub fn of_namespace(self: &Arc<Self>, namespace: &str) -> Option<Arc<Self>> {
        let is_of = |item: &Arc<Item>| *item.namespace == *namespace;
        let first = self.items.iter().position(is_of)?;
        // Namespaces are not mixed: what lies between two items of one is of it too.
        if first == 0 && self.items.last().is_some_and(is_of) {
            return Some(Arc::clone(self));
        }
        let mut parts = self.parts.lock();
        if let Some(part) = parts.iter().find(|part| part.items.first().is_some_and(is_of)) {
            return Some(Arc::clone(part));
        }
        let items = self.items.iter().skip(first).take_while(|item| is_of(item)).cloned().collect();
        let part = Arc::new(Self::new(items));
        parts.push(Arc::clone(&part));
        Some(part)
    }

    fn join(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.joined_len());
        for (at, item) in self.items.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            out.put_u8(b'{');
            out.put_slice(item.listed());
        }
        out.freeze()
    }
}
