//! The items of a resource in key order, as a vector of chunks: cheap to snapshot, cheap to list, and a write changes
//! only its own chunk, or a copy of it where a snapshot holds it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::chunk::Chunk;
use crate::rest::Item;

/// Most items in a chunk. A list of many chunks costs little per chunk; a write copies one chunk's pointers and lets
/// its encodings lapse.
const CHUNK_MAX: usize = 128;
/// A chunk that shrinks below this joins its neighbour.
const CHUNK_MIN: usize = CHUNK_MAX / 4;

/// Items in the order of `namespace/name`, as etcd orders keys.
#[derive(Clone, Debug, Default)]
pub struct ItemTree {
    chunks: Vec<Arc<Chunk>>,
    len: usize,
}

impl ItemTree {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All chunks, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// The item of a namespace and name.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Item>> {
        let chunk = self.chunks.get(self.chunk_of(namespace, name)?)?;
        let at = position(chunk, namespace, name).ok()?;
        chunk.items().get(at)
    }

    /// Puts an item in, in place of the one of the same key.
    pub fn insert(&mut self, item: Arc<Item>) {
        let Some(index) = self.chunk_of(&item.namespace, &item.name) else {
            self.chunks.push(Arc::new(Chunk::new(vec![item])));
            self.len = 1;
            return;
        };
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        let at = position(chunk, &item.namespace, &item.name);
        // In place, where no list is being made of the chunk.
        let items = Arc::make_mut(chunk).items_mut();
        match at {
            Ok(at) => items[at] = item,
            Err(at) => {
                items.insert(at, item);
                self.len += 1;
            }
        }
        if items.len() > CHUNK_MAX {
            let tail = items.split_off(items.len() / 2);
            self.chunks.insert(index + 1, Arc::new(Chunk::new(tail)));
        }
    }

    /// Takes an item out.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let Some(index) = self.chunk_of(namespace, name) else { return };
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        let Ok(at) = position(chunk, namespace, name) else { return };
        let items = Arc::make_mut(chunk).items_mut();
        items.remove(at);
        self.len -= 1;
        if items.is_empty() {
            self.chunks.remove(index);
            return;
        }
        self.join_small(index);
    }

    /// The items from a key on (inclusive), in order; all for `None`.
    pub fn iter_from(&self, start: Option<(&str, &str)>) -> impl Iterator<Item = &Arc<Item>> {
        let (first, skip) = match start {
            None => (0, 0),
            Some((namespace, name)) => {
                let first = self.chunk_of(namespace, name).unwrap_or(0);
                let skip = self.chunks.get(first).map_or(0, |chunk| match position(chunk, namespace, name) {
                    Ok(at) | Err(at) => at,
                });
                (first, skip)
            }
        };
        self.chunks.iter().skip(first).flat_map(|chunk| chunk.items().iter()).skip(skip)
    }

    /// The items of one namespace.
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Item>> {
        self.iter_from(Some((namespace, ""))).take_while(move |item| &*item.namespace == namespace)
    }

    /// The items of one namespace, in chunks that hold no others.
    #[must_use]
    pub fn namespace_chunks(&self, namespace: &str) -> Vec<Arc<Chunk>> {
        let first = self.chunk_of(namespace, "").unwrap_or(0);
        let rest = self.chunks.get(first..).unwrap_or_default();
        // The place of the first item may be the end of a chunk that holds none.
        let empty = rest.iter().take(1).filter(|chunk| chunk.of_namespace(namespace).is_none()).count();
        rest.iter().skip(empty).map_while(|chunk| chunk.of_namespace(namespace)).collect()
    }

    /// The chunk in which a key is or would be.
    fn chunk_of(&self, namespace: &str, name: &str) -> Option<usize> {
        if self.chunks.is_empty() {
            return None;
        }
        let after = self.chunks.partition_point(|chunk| {
            chunk.items().first().is_some_and(|first| order(first, namespace, name) != Ordering::Greater)
        });
        Some(after.saturating_sub(1))
    }

    fn join_small(&mut self, index: usize) {
        let size = |chunks: &[Arc<Chunk>], at: usize| chunks.get(at).map_or(usize::MAX, |c| c.items().len());
        if size(&self.chunks, index) >= CHUNK_MIN {
            return;
        }
        let left = if index > 0 && size(&self.chunks, index - 1) <= size(&self.chunks, index + 1) {
            index - 1
        } else {
            index
        };
        if size(&self.chunks, left).saturating_add(size(&self.chunks, left + 1)) > CHUNK_MAX {
            return;
        }
        let right = self.chunks.remove(left + 1);
        let mut items = self.chunks[left].items().to_vec();
        items.extend_from_slice(right.items());
        self.chunks[left] = Arc::new(Chunk::new(items));
    }
}

fn position(chunk: &Chunk, namespace: &str, name: &str) -> Result<usize, usize> {
    chunk.items().binary_search_by(|item| order(item, namespace, name))
}

/// Compares an item's `namespace/name` with a key, byte by byte as the store does.
fn order(item: &Item, namespace: &str, name: &str) -> Ordering {
    if *item.namespace == *namespace {
        return (*item.name).cmp(name);
    }
    key_bytes(&item.namespace, &item.name).cmp(key_bytes(namespace, name))
}

fn key_bytes<'a>(namespace: &'a str, name: &'a str) -> impl Iterator<Item = u8> + 'a {
    namespace.bytes().chain(std::iter::once(b'/')).chain(name.bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn item(namespace: &str, name: &str, revision: u64) -> Arc<Item> {
        Arc::new(Item {
            namespace: namespace.into(),
            name: name.into(),
            revision,
            labels: Box::default(),
            fields: Box::default(),
            bytes: Bytes::from(format!("{namespace}/{name}@{revision}")),
            untyped: 0,
            message: std::sync::OnceLock::new(),
        })
    }

    proptest! {
        /// The tree against a plain sorted map, through inserts, replacements and removals.
        #[test]
        fn behaves_as_a_sorted_map(
            operations in prop::collection::vec((any::<bool>(), 0..6usize, 0..90u32), 0..900),
        ) {
            let namespaces = ["a", "a-b", "a.b", "b", "", "a0"];
            let mut tree = ItemTree::default();
            let mut model = BTreeMap::new();
            for (revision, (insert, namespace, name)) in (1u64..).zip(operations) {
                let (namespace, name) = (namespaces[namespace], format!("n{name}"));
                let key = format!("{namespace}/{name}");
                if insert {
                    tree.insert(item(namespace, &name, revision));
                    model.insert(key, revision);
                } else {
                    tree.remove(namespace, &name);
                    model.remove(&key);
                }
            }
            let seen: Vec<(String, u64)> =
                tree.iter_from(None).map(|i| (format!("{}/{}", i.namespace, i.name), i.revision)).collect();
            prop_assert_eq!(tree.len(), model.len());
            prop_assert_eq!(&seen, &model.iter().map(|(k, v)| (k.clone(), *v)).collect::<Vec<_>>());
            prop_assert!(tree.chunks().iter().all(|c| !c.items().is_empty() && c.items().len() <= CHUNK_MAX));
            for namespace in namespaces {
                let expected = model.keys().filter(|k| k.starts_with(&format!("{namespace}/"))).count();
                prop_assert_eq!(tree.namespace(namespace).count(), expected);
                for _ in 0..2 {
                    let chunks = tree.namespace_chunks(namespace);
                    let items = chunks.iter().flat_map(|chunk| chunk.items());
                    prop_assert!(items.map(Arc::as_ptr).eq(tree.namespace(namespace).map(Arc::as_ptr)));
                }
                for key in model.keys() {
                    let (ns, name) = key.split_once('/').unwrap();
                    prop_assert!(tree.get(ns, name).is_some());
                }
            }
        }
    }
}
