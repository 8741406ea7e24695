//! `projects`: reads come from the index, writes are writes of Namespaces.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::kube_api::KubeApi;
use super::visibility::{Selection, Source, Viewer, Visibility};
use super::{PROJECTS, render, validation, watch};
use crate::resource::Resource;
use crate::rest::options::VersionMatch;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, Items, List, ListOptions, RequestContext, Storage, Updated,
    Updater, Watch, WriteOptions,
};
use crate::store::Revision;

/// How often a patch that lost against another write is made again.
const ATTEMPTS: usize = 5;

/// The storage of `projects`.
pub(crate) struct Projects {
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) api: KubeApi,
    pub(crate) bookmark_interval: Duration,
}

impl Projects {
    /// Waits until our own write is in the index, so that its author finds it in the next list.
    async fn settle(&self, revision: Revision) {
        if !self.visibility.wait_seen(&[(Source::Namespaces, revision)]).await {
            tracing::warn!(revision, "the watch of namespaces lags behind a write of ours");
        }
    }

    fn selected(&self, viewer: &Viewer, selection: &Selection) -> (Revision, Vec<Arc<Item>>) {
        let index = self.visibility.read();
        let items = match selection.name() {
            Some(name) if index.sees(viewer, name) => index.project(name).cloned().into_iter().collect(),
            Some(_) => Vec::new(),
            None => index.visible(viewer),
        };
        let wanted = |item: &Arc<Item>| selection.is_empty() || selection.matches(item);
        (index.clock(), items.into_iter().filter(wanted).collect())
    }
}

#[async_trait]
impl Storage for Projects {
    fn resource(&self) -> &'static Resource {
        &PROJECTS
    }

    fn ready(&self) -> Result<(), Status> {
        self.visibility.ready()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        render::row(object)
    }

    async fn get(&self, _cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        if let Some(revision) = options.resource_version.filter(|r| *r > 0) {
            self.visibility.wait_clock(revision).await?;
        }
        let known = self.visibility.read().project(name).cloned();
        match known {
            Some(item) => Ok(item),
            // Somebody may have just made it elsewhere.
            None => shown(self.api.namespace(name).await?),
        }
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        self.visibility.ready()?;
        if let Some(revision) = options.resource_version.filter(|r| *r > 0) {
            self.visibility.wait_clock(revision).await?;
        }
        let viewer = self.visibility.viewer(&cx.carried);
        let (revision, items) = self.selected(&viewer, &Selection::of(options));
        if options.version_match == Some(VersionMatch::Exact) && options.resource_version != Some(revision) {
            return Err(Status::expired("The resourceVersion for the provided list is too old."));
        }
        Ok(List { revision, continue_token: String::new(), remaining: None, items: Items::Picked(items) })
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        self.visibility.ready()?;
        if let Some(revision) = options.resource_version.filter(|r| *r > 0) {
            self.visibility.wait_clock(revision).await?;
        }
        let viewer = self.visibility.viewer(&cx.carried);
        Ok(watch::start(self.visibility.clone(), viewer, options, self.bookmark_interval))
    }

    async fn create(
        &self,
        _cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let errors = validation::create(&render::without_namespace(object.clone()));
        if !errors.is_empty() {
            return Err(Status::invalid(PROJECTS.gvk.group, PROJECTS.gvk.kind, object.name(), &errors));
        }
        let namespace = self.api.create_namespace(&render::new_namespace(&object), options.dry_run).await?;
        self.written(namespace, options).await
    }

    async fn update(
        &self,
        _cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let mut attempt = 1;
        loop {
            let current = self.api.namespace(name).await?;
            let old = render::project(current.clone());
            // Who owns what of a Namespace is kube-apiserver's to note, and so the writer of it is this server.
            let new = match updater.apply(Some(&old), &|_| ()) {
                Some(applied) => {
                    let mut new = applied?;
                    let owners = old.at(&["metadata", "managedFields"]).cloned();
                    new.set_metadata("managedFields", owners.unwrap_or_default());
                    new
                }
                None => updater.update(&old)?,
            };
            let new = render::without_namespace(new);
            let errors = validation::update(&new, &old);
            if !errors.is_empty() {
                return Err(Status::invalid(PROJECTS.gvk.group, PROJECTS.gvk.kind, new.name(), &errors));
            }
            let namespace = render::changed_namespace(&new, &current);
            match self.api.replace_namespace(name, &namespace, options.dry_run).await {
                Err(status) if status.is("Conflict") && updater.retries() && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(status) => return Err(status),
                Ok(namespace) => return self.written(namespace, options).await.map(Updated::Changed),
            }
        }
    }

    async fn delete(
        &self,
        _cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let answer = self.api.delete_namespace(name, options).await?;
        if let (false, Ok(revision)) = (options.dry_run, answer.resource_version().parse()) {
            self.settle(revision).await;
        }
        Ok(Deleted::Gone(None))
    }
}

impl Projects {
    async fn written(&self, namespace: Object, options: &WriteOptions) -> Result<Arc<Item>, Status> {
        let item = if options.dry_run { return shown_dry(namespace) } else { shown(namespace)? };
        self.settle(item.revision).await;
        Ok(item)
    }
}

/// The Project of a Namespace that kube-apiserver answered.
pub(crate) fn shown(namespace: Object) -> Result<Arc<Item>, Status> {
    render::item(namespace).ok_or_else(|| {
        Status::internal("kube-apiserver answered a namespace without name or resourceVersion")
    })
}

/// The Project of a dry run, which has no resourceVersion when it would be new.
pub(crate) fn shown_dry(namespace: Object) -> Result<Arc<Item>, Status> {
    if namespace.resource_version().is_empty() {
        return Ok(render::unsaved_item(namespace));
    }
    shown(namespace)
}
