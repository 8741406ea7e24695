//! How the rest of the group reads and changes streams and images: through the registries, with their validation and
//! admission, in the name of the user who asked.

use std::sync::Arc;

use picoshift_machinery::{Object, Status, UserInfo};

use super::columns::IMAGES;
use super::streams::{self, INTERNAL};
use crate::registry::Registry;
use crate::rest::{
    GetOptions, Item, List, ListOptions, RequestContext, Storage, Updater, Watch, WriteOptions,
};

/// Which part of a stream a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What users write: metadata and spec; the status stays as it is, and changed tags are resolved.
    Spec,
    /// The status alone.
    Status,
    /// Both, as imports and deletions of tags need it; tags that the writer gave no event are resolved.
    Both,
}

impl Part {
    fn subresource(self) -> &'static str {
        match self {
            Self::Spec => "",
            Self::Status => "status",
            Self::Both => INTERNAL,
        }
    }
}

/// A change of a stream. Called again with the newer stream when another write came in between.
pub trait StreamChange: Send + Sync {
    /// Changes a stream as clients see it, its `resourceVersion` included, which must stay or go back to what the
    /// client expects.
    ///
    /// # Errors
    /// What the client sees.
    fn change(&self, stream: &mut Object) -> Result<(), Status>;
}

impl<F: Fn(&mut Object) -> Result<(), Status> + Send + Sync> StreamChange for F {
    fn change(&self, stream: &mut Object) -> Result<(), Status> {
        self(stream)
    }
}

/// See the module.
pub struct Access {
    streams: Arc<Registry>,
    images: Arc<Registry>,
}

impl Access {
    pub(super) fn new(streams: Arc<Registry>, images: Arc<Registry>) -> Self {
        Self { streams, images }
    }

    /// A stream as clients see it.
    ///
    /// # Errors
    /// 404 about `imagestreams`.
    pub async fn stream(&self, namespace: &str, name: &str) -> Result<Object, Status> {
        let cx = anonymous(namespace, "get");
        read(&*self.streams.get(&cx, name, &GetOptions::default()).await?)
    }

    /// Streams of a namespace, or of all where it is empty.
    ///
    /// # Errors
    /// Those of a list.
    pub async fn streams(&self, namespace: &str, options: &ListOptions) -> Result<List, Status> {
        self.streams.list(&anonymous(namespace, "list"), options).await
    }

    /// A watch of the streams of all namespaces.
    ///
    /// # Errors
    /// Those of a watch.
    pub async fn watch_streams(&self, options: &ListOptions) -> Result<Watch, Status> {
        self.streams.watch(&anonymous("", "watch"), options).await
    }

    /// Creates a stream; its namespace is in its metadata. With [`Part::Both`] its status is kept.
    ///
    /// # Errors
    /// 409 when it is there, 422, and what admission says.
    pub async fn create_stream(
        &self,
        user: &Arc<UserInfo>,
        stream: Object,
        part: Part,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let namespace = stream.namespace().to_owned();
        let cx = streams::context_of(Arc::clone(user), &namespace, "create", part.subresource());
        let options = WriteOptions { dry_run, subresource: part.subresource().to_owned(), tracker: None };
        read(&*self.streams.create(&cx, stream, &options).await?)
    }

    /// Changes a stream, and tries again as often as other writes come in between. Answers the stream afterwards, also
    /// when nothing changed.
    ///
    /// # Errors
    /// 404 about `imagestreams`, the change's own, 409 for a `resourceVersion` that is not the present one, 422, and
    /// what admission says.
    pub async fn change_stream(
        &self,
        user: &Arc<UserInfo>,
        namespace: &str,
        name: &str,
        part: Part,
        dry_run: bool,
        change: &dyn StreamChange,
    ) -> Result<Object, Status> {
        let cx = streams::context_of(Arc::clone(user), namespace, "update", part.subresource());
        let options = WriteOptions { dry_run, subresource: part.subresource().to_owned(), tracker: None };
        let item = self.streams.update(&cx, name, &Changing(change), &options).await?.into_item();
        read(&item)
    }

    /// An image.
    ///
    /// # Errors
    /// 404 about `images`.
    pub async fn image(&self, name: &str) -> Result<Object, Status> {
        read(&*self.images.get(&anonymous("", "get"), name, &GetOptions::default()).await?)
    }

    /// Creates an image, where there is none of its name. Answers the image as it is now, and whether it is new.
    ///
    /// # Errors
    /// 422, 400 for metadata that cannot be decoded, and what admission says.
    pub async fn create_image(
        &self,
        user: &Arc<UserInfo>,
        mut image: Object,
        dry_run: bool,
    ) -> Result<(Object, bool), Status> {
        let name = image.name().to_owned();
        image.0.insert("apiVersion".to_owned(), IMAGES.gvk.api_version().into());
        image.0.insert("kind".to_owned(), IMAGES.gvk.kind.into());
        let mut cx = streams::context_of(Arc::clone(user), "", "create", "");
        cx.info.resource = IMAGES.plural.to_owned();
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        match self.images.create(&cx, image, &options).await {
            Ok(item) => Ok((read(&item)?, true)),
            Err(status) if status.is("AlreadyExists") => Ok((self.image(&name).await?, false)),
            Err(status) => Err(status),
        }
    }
}

fn anonymous(namespace: &str, verb: &str) -> RequestContext {
    streams::context_of(Arc::new(UserInfo::anonymous()), namespace, verb, "")
}

fn read(item: &Item) -> Result<Object, Status> {
    item.object().map_err(Status::internal)
}

struct Changing<'a>(&'a dyn StreamChange);

impl Updater for Changing<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut stream = current.clone();
        self.0.change(&mut stream)?;
        Ok(stream)
    }

    fn retries(&self) -> bool {
        true
    }
}
