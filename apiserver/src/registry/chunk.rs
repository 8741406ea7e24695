//! A run of neighbouring items. Its deflated list encoding is made once and kept; the plain one is copied together for
//! each answer, since keeping it would hold every object in memory twice.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, BytesMut};
use parking_lot::Mutex;

use crate::gzip::Piece;
use crate::rest::Item;

/// Items that stand next to each other in a list.
#[derive(Debug)]
pub struct Chunk {
    items: Vec<Arc<Item>>,
    deflated: OnceLock<Piece>,
    /// What was asked of single namespaces, where the chunk holds several.
    parts: Mutex<Vec<Arc<Chunk>>>,
}

/// The same items, of which nothing was made yet.
impl Clone for Chunk {
    fn clone(&self) -> Self {
        Self::new(self.items.clone())
    }
}

impl Chunk {
    /// A chunk of items, in order; never empty.
    #[must_use]
    pub fn new(items: Vec<Arc<Item>>) -> Self {
        Self { items, deflated: OnceLock::new(), parts: Mutex::default() }
    }

    /// The items, to be changed: what was made of them lapses.
    pub fn items_mut(&mut self) -> &mut Vec<Arc<Item>> {
        self.deflated.take();
        self.parts.get_mut().clear();
        &mut self.items
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// Length of what [`Chunk::join`] writes.
    #[must_use]
    pub fn joined_len(&self) -> usize {
        self.items.iter().map(|item| item.listed().len() + 2).sum::<usize>().saturating_sub(1)
    }

    /// What [`Chunk::join`] writes, deflated: a piece of a gzip member.
    pub fn deflated(&self) -> &Piece {
        self.deflated.get_or_init(|| {
            let mut plain = BytesMut::with_capacity(self.joined_len());
            self.join(&mut plain);
            Piece::deflate(&plain)
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

    /// Writes the items' bytes, joined by commas.
    pub fn join(&self, out: &mut BytesMut) {
        for (at, item) in self.items.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            out.put_u8(b'{');
            out.put_slice(item.listed());
        }
    }
}
