//! The storage of `imagestreamtags` and of `imagetags`: reads.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::kind::TagKind;
use super::{Sources, list};
use crate::groups::image::GROUP;
use crate::groups::image::model::latest_event;
use crate::groups::image::names::{join_stream_tag, parse_stream_tag};
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, List, ListOptions, RequestContext, Storage, Updated, Updater,
    WriteOptions,
};

/// See the module; writes are in [`super::write`].
pub(super) struct TagStorage {
    pub(super) kind: Box<dyn TagKind>,
    pub(super) sources: Sources,
    images: Images,
}

impl TagStorage {
    pub(super) fn new(kind: Box<dyn TagKind>, sources: Sources) -> Self {
        let images = Images(Arc::clone(&sources.images));
        Self { kind, sources, images }
    }

    /// Stream and tag that a path names.
    pub(super) fn split<'a>(&self, name: &'a str) -> Result<(&'a str, &'a str), Status> {
        let kind = self.kind.resource().gvk.kind;
        parse_stream_tag(name)
            .map_err(|_| Status::bad_request(format!("{kind}s must be retrieved with <name>:<tag>")))
    }

    /// The stream of a tag.
    pub(super) async fn stream(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &GetOptions,
    ) -> Result<Arc<Item>, Status> {
        self.sources.streams.get(cx, name, options).await.map_err(|status| self.own_words(status))
    }

    /// An error about streams, told about tags.
    pub(super) fn own_words(&self, status: Status) -> Status {
        own_words(status, self.kind.resource().plural)
    }

    /// A tag of a stream that was just written.
    pub(super) async fn written(
        &self,
        cx: &RequestContext,
        stream: &Item,
        tag: &str,
    ) -> Result<Arc<Item>, Status> {
        let object = stream.object().map_err(Status::internal)?;
        let image = self.image_of(cx, &object, tag).await?;
        let shown = self.kind.render(&object, tag, image.as_ref(), true).unwrap_or_default();
        Ok(Arc::new(Item::new(self.kind.resource(), shown, stream.revision)))
    }

    /// The image of a tag's newest event, if there is such an object.
    async fn image_of(
        &self,
        cx: &RequestContext,
        stream: &Object,
        tag: &str,
    ) -> Result<Option<Object>, Status> {
        match latest_event(stream, tag) {
            Some(event) if !event.image.is_empty() => self.images.find(cx, &event.image).await,
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl Storage for TagStorage {
    fn resource(&self) -> &'static Resource {
        self.kind.resource()
    }

    fn ready(&self) -> Result<(), Status> {
        self.sources.streams.ready()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        self.kind.row(object)
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        let (stream, tag) = self.split(name)?;
        let item = self.stream(cx, stream, options).await?;
        let stream = item.object().map_err(Status::internal)?;
        let plural = self.kind.resource().plural;
        let image = self.image_of(cx, &stream, tag).await?;
        if image.is_none()
            && self.kind.needs_image()
            && let Some(event) = latest_event(&stream, tag).filter(|event| !event.image.is_empty())
        {
            return Err(Status::not_found(GROUP, plural, &event.image));
        }
        let Some(object) = self.kind.render(&stream, tag, image.as_ref(), false) else {
            return Err(Status::not_found(GROUP, plural, &join_stream_tag(stream.name(), tag)));
        };
        Ok(Arc::new(Item::new(self.kind.resource(), object, item.revision)))
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        list::list(&*self.kind, &*self.sources.streams, cx, options).await
    }

    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        self.create_tag(cx, object, options).await
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        self.update_tag(cx, name, updater, options).await
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.delete_tag(cx, name, options).await
    }
}

/// Images, as they are read for an object that shows one. Nobody is asked whether he may: who may see a tag may see
/// its image.
pub(super) struct Images(pub(super) Arc<dyn Storage>);

impl Images {
    /// An image by name.
    pub(super) async fn find(&self, cx: &RequestContext, name: &str) -> Result<Option<Object>, Status> {
        let info = RequestInfo { namespace: String::new(), name: name.to_owned(), ..cx.info.clone() };
        let cx = RequestContext::new(Arc::clone(&cx.user), info);
        match self.0.get(&cx, name, &GetOptions::default()).await {
            Ok(item) => item.object().map(Some).map_err(Status::internal),
            Err(status) if status.is("NotFound") => Ok(None),
            Err(status) => Err(status),
        }
    }
}

/// What a storage of streams says about a stream, as said about `plural`, which is what the client asked for.
pub(super) fn own_words(mut status: Status, plural: &str) -> Status {
    if let Some(details) = status.details.as_mut().filter(|details| details.kind == STREAMS) {
        plural.clone_into(&mut details.kind);
        status.message =
            status.message.replacen(&format!("{STREAMS}.{GROUP}"), &format!("{plural}.{GROUP}"), 1);
    }
    status
}

/// What streams are called in messages.
pub(super) const STREAMS: &str = "imagestreams";
