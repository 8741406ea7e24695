//! [`Storage`]: what a resource must answer for the verbs that it advertises.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::status::Details;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::Value;

use super::item::Item;
use super::options::{DeleteOptions, GetOptions, ListOptions, WriteOptions};
use super::warning::Warnings;
use crate::audit::Record;
use crate::registry::chunk::Chunk;
use crate::resource::{Resource, Verb};
use crate::store::Revision;

/// Everything about a request that a storage may look at.
pub struct RequestContext {
    /// Who asks, with all groups.
    pub user: Arc<UserInfo>,
    /// Who asks, with the groups that came with the request only: without those that Group objects give.
    pub carried: Arc<UserInfo>,
    /// What the path says.
    pub info: RequestInfo,
    /// What the audit log is to say of it, if anything.
    pub audit: Option<Arc<Record>>,
    /// Warnings for the answer's `Warning` headers.
    warnings: Mutex<Warnings>,
}

impl RequestContext {
    /// A context without warnings.
    #[must_use]
    pub fn new(user: Arc<UserInfo>, info: RequestInfo) -> Self {
        Self { carried: Arc::clone(&user), user, info, audit: None, warnings: Mutex::default() }
    }

    /// The same, where the request came without some of the user's groups.
    #[must_use]
    pub fn carrying(self, carried: Arc<UserInfo>) -> Self {
        Self { carried, ..self }
    }

    /// The same, with its record.
    #[must_use]
    pub fn audited(self, audit: Option<Arc<Record>>) -> Self {
        Self { audit, ..self }
    }

    /// Adds a warning, once; none once there are more than an answer can carry.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().add(text.into());
    }

    /// Takes the warnings.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.lock().take()
    }
}

/// The items of a list.
pub enum Items {
    /// Items picked one by one.
    Picked(Vec<Arc<Item>>),
    /// All items of a resource or of a namespace, in chunks whose encoding is kept.
    Whole(Vec<Arc<Chunk>>),
}

impl Items {
    /// The items, one by one.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Arc<Item>> + '_> {
        match self {
            Self::Picked(items) => Box::new(items.iter()),
            Self::Whole(chunks) => Box::new(chunks.iter().flat_map(|chunk| chunk.items())),
        }
    }

    /// The items in chunks: those that were picked are one, which nobody else will use.
    #[must_use]
    pub fn into_chunks(self) -> Vec<Arc<Chunk>> {
        match self {
            Self::Whole(chunks) => chunks,
            Self::Picked(items) if items.is_empty() => Vec::new(),
            Self::Picked(items) => vec![Arc::new(Chunk::new(items))],
        }
    }
}

/// A list at one revision.
pub struct List {
    /// `metadata.resourceVersion`.
    pub revision: Revision,
    /// `metadata.continue`, empty for none.
    pub continue_token: String,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<u64>,
    /// The items.
    pub items: Items,
}

/// What happened to one object, as one watcher sees it.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object is new to the watcher.
    Added(Arc<Item>),
    /// The object changed.
    Modified(Arc<Item>),
    /// The object is gone for the watcher; its last state with the revision of the change.
    Deleted(Arc<Item>),
    /// All up to the revision has been sent; `initial_events_end` after the initial events.
    Bookmark {
        /// The revision reached.
        revision: Revision,
        /// Whether this ends the initial events.
        initial_events_end: bool,
    },
    /// The watch ends with an error.
    Error(Status),
}

/// The events of one watch, in batches; ends when the watch is over. Time-outs are the handler's.
pub type Watch = BoxStream<'static, Vec<WatchEvent>>;

/// Makes the new object out of the current one: a replacement or a patch. Called again when another write came in
/// between.
#[async_trait]
pub trait Updater: Send + Sync {
    /// `current` as clients see it.
    ///
    /// # Errors
    /// What the client sees.
    fn update(&self, current: &Object) -> Result<Object, Status>;

    /// For an apply: what it makes of the object as it is stored, or of none, with the `managedFields` it has then.
    /// `strip` takes computed parts out of what the client sent. `None` for all else, which [`Self::update`] makes.
    fn apply(&self, stored: Option<&Object>, strip: &dyn Fn(&mut Object)) -> Option<Result<Object, Status>> {
        let _ = (stored, strip);
        None
    }

    /// Asks whether the caller may create, for an update that creates.
    ///
    /// # Errors
    /// 403.
    async fn permit_creation(&self) -> Result<(), Status> {
        Ok(())
    }

    /// Whether a conflict with another write may be retried: for patches that name no resourceVersion.
    fn retries(&self) -> bool;

    /// Whether the new object is the client's own and not made from the current one: then its uid, if it has one,
    /// says which object is meant.
    fn replaces(&self) -> bool {
        false
    }
}

/// What an update answers.
#[derive(Debug)]
pub enum Updated {
    /// The object was there.
    Changed(Arc<Item>),
    /// The object was not there and has been created; the answer is 201.
    Created(Arc<Item>),
}

impl Updated {
    /// The object as it is now.
    #[must_use]
    pub fn into_item(self) -> Arc<Item> {
        match self {
            Self::Changed(item) | Self::Created(item) => item,
        }
    }
}

/// What a delete answers.
pub enum Deleted {
    /// The object as it is now, with its `deletionTimestamp`, because finalizers are left; or as it was.
    Object(Arc<Item>),
    /// `Status` Success, mostly with details about the object that is gone.
    Gone(Option<Details>),
}

/// A resource's answers. Verbs that a resource does not advertise are never called.
#[async_trait]
pub trait Storage: Send + Sync {
    /// The description.
    fn resource(&self) -> &'static Resource;

    /// Whether the storage can answer now; else every request gets 503. Lists are never answered half.
    ///
    /// # Errors
    /// Why not, as the client sees it.
    fn ready(&self) -> Result<(), Status> {
        Ok(())
    }

    /// The table cells of an object, in the order of the columns; never asked for where there are none.
    fn row(&self, object: &Object) -> Vec<Value> {
        let _ = object;
        Vec::new()
    }

    /// One object.
    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        let _ = (name, options);
        Err(self.unsupported(cx, Verb::Get))
    }

    /// A collection.
    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        let _ = options;
        Err(self.unsupported(cx, Verb::List))
    }

    /// A watch of a collection.
    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        let _ = options;
        Err(self.unsupported(cx, Verb::Watch))
    }

    /// Creates an object, whose kind, name and namespace fit the request. May answer another kind
    /// (a project request answers a Project).
    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let _ = (object, options);
        Err(self.unsupported(cx, Verb::Create))
    }

    /// Updates an object; a resource may create it where it is not there.
    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let _ = (name, updater, options);
        Err(self.unsupported(cx, Verb::Update))
    }

    /// Deletes an object.
    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let _ = (name, options);
        Err(self.unsupported(cx, Verb::Delete))
    }

    /// Deletes what a list selects; answers the objects as they were.
    async fn delete_collection(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        let _ = (options, list);
        Err(self.unsupported(cx, Verb::DeleteCollection))
    }

    /// 405 for a verb.
    fn unsupported(&self, cx: &RequestContext, verb: Verb) -> Status {
        let _ = cx;
        let resource = self.resource();
        Status::method_not_supported(resource.gvk.group, resource.plural, verb.as_str())
    }
}
