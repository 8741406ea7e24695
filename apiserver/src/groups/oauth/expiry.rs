//! Tokens that have expired vanish, as on the real servers, where etcd lets them go: nobody is shown one, and watchers
//! hear that it is deleted when its time is over.
//!
//! In: when each token ends, as tokens are written and at start. A task sleeps until the first of them ends, and takes
//! those away that have. A machine that was asleep wakes it late; so whoever reads takes away first what is due.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use picoshift_machinery::{Object, Status};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::lifetime;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, List, ListOptions, RequestContext, Storage, Updated, Updater,
    Watch, WriteOptions,
};

/// Pause after a token could not be taken away.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest sleep; a timer for longer is none.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// When which token ends.
#[derive(Default)]
pub(super) struct Expiry {
    ends: Mutex<Ends>,
    changed: Notify,
}

#[derive(Default)]
struct Ends {
    by_name: HashMap<Arc<str>, Timestamp>,
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
}

impl Expiry {
    /// A token ends at `end`, or never, or is gone.
    pub(super) fn set(&self, name: &str, end: Option<Timestamp>) {
        let mut ends = self.ends.lock();
        if let Some((name, before)) = ends.by_name.remove_entry(name) {
            ends.by_time.remove(&(before, name));
        }
        let Some(end) = end else { return };
        let name: Arc<str> = name.into();
        ends.by_name.insert(Arc::clone(&name), end);
        ends.by_time.insert((end, Arc::clone(&name)));
        let first = ends.by_time.first().is_some_and(|(_, first)| *first == name);
        drop(ends);
        if first {
            self.changed.notify_one();
        }
    }

    /// When the first token ends.
    fn first(&self) -> Option<Timestamp> {
        self.ends.lock().by_time.first().map(|(end, _)| *end)
    }

    /// The tokens that have ended.
    fn due(&self, now: Timestamp) -> Vec<Arc<str>> {
        let ends = self.ends.lock();
        ends.by_time.iter().take_while(|(end, _)| *end <= now).map(|(_, name)| Arc::clone(name)).collect()
    }
}

/// The storage of tokens that expire: a registry that shows none whose time is over.
pub(super) struct Expiring {
    pub(super) registry: Arc<Registry>,
    pub(super) expiry: Arc<Expiry>,
}

impl Expiring {
    /// Takes away what has ended. Whether all of it is gone.
    pub(super) async fn purge(&self) -> bool {
        let now = Timestamp::now();
        let mut all = true;
        for name in self.expiry.due(now) {
            match self.registry.expire(&name, |token| lifetime::has_ended(token, now)).await {
                Ok(_) => {}
                Err(error) => {
                    all = false;
                    tracing::warn!(%error, "a token that has expired could not be taken away");
                }
            }
        }
        all
    }

    /// Takes tokens away as they end, for good.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let changed = self.expiry.changed.notified();
            let Some(first) = self.expiry.first() else {
                changed.await;
                continue;
            };
            let left = Duration::try_from(first.duration_since(Timestamp::now())).unwrap_or_default();
            // A moment more, since the clock that sleeps are measured by is not the one that tells the time.
            if !left.is_zero() && timeout(left.min(LONGEST) + Duration::from_millis(1), changed).await.is_ok()
            {
                continue;
            }
            if !self.purge().await {
                sleep(PAUSE).await;
            }
        }
    }
}

impl Expiring {
    /// The token of this name; whether its time is over is for the caller to say.
    pub(super) fn find(&self, name: &str) -> Option<Object> {
        self.registry.find("", name)?.object().ok()
    }
}

#[async_trait]
impl Storage for Expiring {
    fn resource(&self) -> &'static Resource {
        self.registry.resource()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        self.registry.row(object)
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        self.purge().await;
        self.registry.get(cx, name, options).await
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        self.purge().await;
        self.registry.list(cx, options).await
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        self.purge().await;
        self.registry.watch(cx, options).await
    }

    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        self.purge().await;
        self.registry.create(cx, object, options).await
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        self.purge().await;
        self.registry.update(cx, name, updater, options).await
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.purge().await;
        self.registry.delete(cx, name, options).await
    }

    async fn delete_collection(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        self.purge().await;
        self.registry.delete_collection(cx, options, list).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_in_order_and_once() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let names = |list: Vec<Arc<str>>| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expiry = Expiry::default();
        assert_eq!(expiry.first(), None);
        expiry.set("b", Some(at(20)));
        expiry.set("a", Some(at(10)));
        expiry.set("c", Some(at(30)));
        assert_eq!(expiry.first(), Some(at(10)));
        assert_eq!(names(expiry.due(at(20))), ["a", "b"]);
        expiry.set("a", Some(at(40)));
        expiry.set("b", None);
        expiry.set("nosuch", None);
        assert_eq!(names(expiry.due(at(40))), ["c", "a"]);
        let ends = expiry.ends.lock();
        assert_eq!((ends.by_name.len(), ends.by_time.len()), (2, 2));
    }
}
