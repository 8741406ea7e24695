//! `imagestreams` and their subresources: `status`, and what a registry asks: `layers` and `secrets`.
//!
//! Behaviour: `openshift-apiserver/pkg/image/apiserver/registry/{imagestream,imagesecret}`.

mod facts;
mod following;
mod layers;
mod resolve;
mod secrets;
mod strategy;
pub mod validation;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use kube::Client;
use parking_lot::Mutex;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::Value;

use self::resolve::Resolver;
pub(super) use self::strategy::INTERNAL;
use self::strategy::StreamStrategy;
use super::GROUP;
use super::columns::IMAGE_STREAMS;
use super::hostnames::Hostnames;
use crate::admission::Admission;
use crate::authz::Authorizer;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, List, ListOptions, RequestContext, Storage, Updated, Updater,
    Watch, WriteOptions,
};
use crate::secrets::Secrets;
use crate::store::{Engine, StoreError};

/// Loads the streams. `hostnames` are those of the cluster's registry.
///
/// # Errors
/// The store's.
pub(super) async fn start(
    engine: Arc<dyn Engine>,
    admission: Arc<Admission>,
    authorizer: Arc<dyn Authorizer>,
    hostnames: Hostnames,
) -> Result<Arc<Registry>, StoreError> {
    let resolver = Arc::new(Resolver::new(authorizer, hostnames.clone()));
    let strategy = Arc::new(StreamStrategy::new(hostnames, Arc::clone(&resolver)));
    let streams = Registry::start(engine, strategy, admission).await?;
    resolver.set_streams(&streams);
    Ok(streams)
}

/// A request of our own for streams of a namespace; nobody's permission is asked for it.
fn context(namespace: &str, verb: &str) -> RequestContext {
    context_of(Arc::new(UserInfo::anonymous()), namespace, verb, "")
}

/// As [`context`], in the name of a user.
pub(super) fn context_of(
    user: Arc<UserInfo>,
    namespace: &str,
    verb: &str,
    subresource: &str,
) -> RequestContext {
    let info = RequestInfo {
        is_resource: true,
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        resource: IMAGE_STREAMS.plural.to_owned(),
        subresource: subresource.to_owned(),
        ..RequestInfo::default()
    };
    RequestContext::new(user, info)
}

/// The storage of `imagestreams`.
pub(super) struct Streams {
    streams: Arc<Registry>,
    images: Arc<Registry>,
    secrets: Secrets,
}

impl Streams {
    pub(super) fn new(streams: Arc<Registry>, images: Arc<Registry>, client: Client) -> Self {
        Self { streams, images, secrets: Secrets::new(client) }
    }
}

#[async_trait]
impl Storage for Streams {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAMS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        self.streams.row(object)
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        match cx.info.subresource.as_str() {
            // Of the namespace, whatever stream is named.
            "secrets" => {
                let lists = secrets::TYPES.map(|kind| self.secrets.list(&cx.info.namespace, kind));
                Ok(Arc::new(secrets::answer(try_join_all(lists).await?)))
            }
            "layers" => {
                let stream = self.streams.get(cx, name, options).await?;
                layers::of(&stream, &self.images).await.map(Arc::new)
            }
            _ => self.streams.get(cx, name, options).await,
        }
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        self.streams.list(cx, options).await
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        self.streams.watch(cx, options).await
    }

    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        self.streams.create(cx, object, options).await
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        if options.subresource != "status" {
            return self.streams.update(cx, name, updater, options).await;
        }
        let noting = Noting { updater, repository: Mutex::default() };
        let item = self.streams.update(cx, name, &noting, options).await?.into_item();
        // An apply sets no repository.
        let item = match noting.repository.into_inner() {
            Some(repository) => with_repository(item, &repository)?,
            None => item,
        };
        Ok(Updated::Changed(item))
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.streams.delete(cx, name, options).await
    }

    async fn delete_collection(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        self.streams.delete_collection(cx, options, list).await
    }
}

/// Notes the repository that a writer of the status sets. It is computed and not kept, but the answer to the write
/// shows it, as the real server's does.
struct Noting<'a> {
    updater: &'a dyn Updater,
    repository: Mutex<Option<String>>,
}

impl Updater for Noting<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let object = self.updater.update(current)?;
        let repository = object.str_at(&["status", "dockerImageRepository"]).to_owned();
        *self.repository.lock() = Some(repository);
        Ok(object)
    }

    fn apply(&self, stored: Option<&Object>, strip: &dyn Fn(&mut Object)) -> Option<Result<Object, Status>> {
        self.updater.apply(stored, strip)
    }

    fn retries(&self) -> bool {
        self.updater.retries()
    }

    fn replaces(&self) -> bool {
        self.updater.replaces()
    }
}

fn with_repository(item: Arc<Item>, repository: &str) -> Result<Arc<Item>, Status> {
    let mut object = item.object().map_err(Status::internal)?;
    if object.str_at(&["status", "dockerImageRepository"]) == repository {
        return Ok(item);
    }
    object.object_mut("status").insert("dockerImageRepository".to_owned(), repository.into());
    Ok(Arc::new(Item::new(&IMAGE_STREAMS, object, item.revision)))
}
