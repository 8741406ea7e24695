//! Items that writers made of what they wrote, until the cache takes them in: each state is encoded once, and not on the
//! store's only thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::rest::Item;
use crate::store::Revision;

/// See the module.
#[derive(Default)]
pub(super) struct Rendered(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The cache has come this far.
    taken: Revision,
    items: BTreeMap<Revision, Arc<Item>>,
}

impl Rendered {
    /// Offers an item, unless the cache was faster and has made its own.
    pub(super) fn offer(&self, item: &Arc<Item>) {
        let mut inner = self.0.lock();
        if item.revision > inner.taken {
            inner.items.insert(item.revision, Arc::clone(item));
        }
    }

    /// Takes the item of a revision; revisions are asked for in order, so that none before it is kept.
    pub(super) fn take(&self, revision: Revision) -> Option<Arc<Item>> {
        let mut inner = self.0.lock();
        inner.taken = revision;
        let mut last = None;
        while let Some(first) = inner.items.first_entry().filter(|first| *first.key() <= revision) {
            last = Some(first.remove());
        }
        last.filter(|item| item.revision == revision)
    }

    /// How many items are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().items.len()
    }
}

#[cfg(test)]
mod tests {
    use picoshift_machinery::Object;

    use super::*;
    use crate::groups::route::ROUTES;

    fn item(revision: Revision) -> Arc<Item> {
        Arc::new(Item::new(&ROUTES, Object::default(), revision))
    }

    #[test]
    fn keeps_only_what_is_still_to_be_taken() {
        let rendered = Rendered::default();
        for revision in [3, 5, 9] {
            rendered.offer(&item(revision));
        }
        assert_eq!(rendered.take(3).map(|item| item.revision), Some(3));
        assert!(rendered.take(4).is_none(), "written by nobody who offered");
        rendered.offer(&item(4));
        assert_eq!(rendered.take(5).map(|item| item.revision), Some(5));
        assert_eq!(rendered.len(), 1, "what came too late is not kept");
        assert!(rendered.take(10).is_none());
        assert_eq!(rendered.len(), 0, "what the cache did not ask for is not kept");
    }
}
