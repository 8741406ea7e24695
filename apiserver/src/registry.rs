//! Resources that live in the store: the [`Strategy`] of each says what is its own, the registry does the rest.

mod cache;
pub mod chunk;
mod commit;
mod fields;
pub mod metadata;
pub(crate) mod page;
mod read;
mod remove;
mod rendered;
mod select;
pub mod strategy;
#[cfg(test)]
mod tests;
pub mod tree;
mod watch;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

pub use self::cache::Cache;
use self::commit::Commit;
use self::rendered::Rendered;
pub use self::strategy::{Computed, Plan, Planned, Stored, Strategy};
use crate::admission::Admission;
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, List, ListOptions, RequestContext, Storage, Updated, Updater,
    Watch, WriteOptions,
};
use crate::store::{Engine, Key, StoreError};

/// One stored resource: reads from its cache, writes through its commit.
pub struct Registry {
    strategy: Arc<dyn Strategy>,
    admission: Arc<Admission>,
    cache: Arc<Cache>,
    commit: Arc<Commit>,
}

impl Registry {
    /// Loads the resource from the store, and touches what its facts no longer say.
    ///
    /// # Errors
    /// The store's.
    pub async fn start(
        engine: Arc<dyn Engine>,
        strategy: Arc<dyn Strategy>,
        admission: Arc<Admission>,
    ) -> Result<Arc<Self>, StoreError> {
        let rendered = Arc::new(Rendered::default());
        let (store, prefix) = (Arc::clone(&engine), cache::prefix(&*strategy));
        let commit = Commit::start(store, Arc::clone(&strategy), Arc::clone(&rendered), &prefix).await?;
        let cache = Cache::start(&engine, Arc::clone(&strategy), rendered)?;
        Ok(Arc::new(Self { strategy, admission, cache, commit }))
    }

    fn key(&self, namespace: &str, name: &str) -> Key {
        let prefix = cache::prefix(&*self.strategy);
        if namespace.is_empty() {
            Key::from(format!("{prefix}{name}"))
        } else {
            Key::from(format!("{prefix}{namespace}/{name}"))
        }
    }

    /// An object as it is now, for the server's own use.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Item>> {
        self.cache.get(namespace, name)
    }

    fn not_found(&self, name: &str) -> Status {
        let resource = self.strategy.resource();
        Status::not_found(resource.gvk.group, resource.plural, name)
    }

    /// 409: the object was changed by somebody else.
    fn modified(&self, name: &str) -> Status {
        let resource = self.strategy.resource();
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(resource.gvk.group, resource.plural, name, why)
    }
}

#[async_trait]
impl Storage for Registry {
    fn resource(&self) -> &'static Resource {
        self.strategy.resource()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        self.strategy.row(object)
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        self.get_item(cx, name, options).await
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        self.list_items(cx, options).await
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        self.open_watch(cx, options).await
    }

    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        self.create_item(cx, object, options).await
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        self.update_item(cx, name, updater, options).await
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.delete_item(cx, name, options).await
    }

    async fn delete_collection(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        self.delete_items(cx, options, list).await
    }
}
