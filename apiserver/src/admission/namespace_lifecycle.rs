//! Nothing is created in a namespace that is not there or is going (`plugin/namespace/lifecycle`). The namespace
//! controller relies on it: what it has emptied stays empty.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use parking_lot::RwLock;
use picoshift_machinery::Status;
use tokio::sync::watch;

use super::{Operation, Plugin, Review};
use crate::rest::RequestContext;

/// Which namespaces there are, and whether they are going; kept up to date by a watch.
pub struct Namespaces {
    client: Client,
    /// Name → whether it is being deleted.
    known: RwLock<HashMap<Box<str>, bool>>,
    synced: watch::Sender<bool>,
}

impl Namespaces {
    /// Starts the watch; it goes on until the task is aborted.
    #[must_use]
    pub fn start(client: Client) -> Arc<Self> {
        let namespaces =
            Arc::new(Self { client, known: RwLock::default(), synced: watch::Sender::new(false) });
        let feed = Arc::clone(&namespaces);
        tokio::spawn(async move { feed.follow().await });
        namespaces
    }

    /// Whether the first list has been read.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    async fn follow(&self) {
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(self.client.clone());
        let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut listed = HashMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(namespace)) => {
                    let (name, going) = entry(&namespace);
                    listed.insert(name, going);
                }
                Ok(Event::InitDone) => {
                    *self.known.write() = std::mem::take(&mut listed);
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(namespace)) => {
                    let (name, going) = entry(&namespace);
                    self.known.write().insert(name, going);
                }
                Ok(Event::Delete(namespace)) => {
                    self.known.write().remove(namespace.name_any().as_str());
                }
                Err(error) => tracing::warn!(%error, "the watch of namespaces was interrupted"),
            }
        }
    }

    /// Whether a namespace is going; `None` when there is none. What the watch does not know yet is asked for.
    async fn is_going(&self, name: &str) -> Result<Option<bool>, Status> {
        if let Some(going) = self.known.read().get(name) {
            return Ok(Some(*going));
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        match api.get_metadata_opt(name).await {
            Ok(found) => Ok(found.map(|namespace| entry(&namespace).1)),
            Err(error) => Err(Status::internal(format!("cannot read namespace {name}: {error}"))),
        }
    }
}

fn entry(namespace: &PartialObjectMeta<Namespace>) -> (Box<str>, bool) {
    (namespace.name_any().into(), namespace.metadata.deletion_timestamp.is_some())
}

/// See the module.
pub struct NamespaceLifecycle {
    namespaces: Arc<Namespaces>,
}

impl NamespaceLifecycle {
    /// Judges by what `namespaces` knows.
    #[must_use]
    pub fn new(namespaces: Arc<Namespaces>) -> Self {
        Self { namespaces }
    }
}

#[async_trait]
impl Plugin for NamespaceLifecycle {
    async fn mutate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        let namespace = cx.info.namespace.as_str();
        if review.operation == Operation::Delete || !review.resource.namespaced || namespace.is_empty() {
            return Ok(());
        }
        match self.namespaces.is_going(namespace).await? {
            None => Err(Status::not_found("", "namespaces", namespace)),
            Some(true) if review.operation == Operation::Create => Err(terminating(review, namespace)),
            Some(_) => Ok(()),
        }
    }
}

fn terminating(review: &Review<'_>, namespace: &str) -> Status {
    let resource = review.resource;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    Status::forbidden(resource.gvk.group, resource.plural, review.object.name(), &why).with_cause(
        "NamespaceTerminating",
        &format!("namespace {namespace} is being terminated"),
        "metadata.namespace",
    )
}
