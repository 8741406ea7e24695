//! Writes of tags: each is a write of the stream, which is created with its first tag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use picoshift_machinery::field_error::quote;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::edits::{Addition, Change, Removal};
use super::storage::{STREAMS, TagStorage};
use crate::admission::{Operation, Review};
use crate::authz::{Attributes, Decision, forbidden};
use crate::groups::image::GROUP;
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::groups::image::names::split_stream_tag;
use crate::groups::image::streams::INTERNAL;
use crate::object_meta;
use crate::registry::metadata;
use crate::rest::query::without_reason;
use crate::rest::{DeleteOptions, Deleted, GetOptions, Item, RequestContext, Updated, Updater, WriteOptions};

/// Tries of a write, when its stream comes and goes meanwhile.
const TRIES: usize = 10;

impl TagStorage {
    pub(super) async fn create_tag(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        object_meta::check_generated(&object)?;
        self.admit_new(cx, &mut object).await?;
        let options = &options.untracked();
        let name = object.name().to_owned();
        let Some((stream, tag)) = split_stream_tag(&name) else {
            let why = format!("{} must be of the form <stream_name>:<tag>", quote(&name));
            return Err(without_reason(why));
        };
        let addition = Addition {
            tag,
            wanted: self.kind.wanted(&object),
            taken: Status::already_exists(GROUP, self.kind.taken_as(), &name),
        };
        for _ in 0..TRIES {
            let written = match self.sources.streams.update(cx, stream, &addition, options).await {
                Err(status) if is_about_stream(&status, "NotFound") => {
                    let mut new = new_stream(cx, stream);
                    addition.add(&mut new)?;
                    self.sources.streams.create(cx, new, options).await
                }
                outcome => outcome.map(Updated::into_item),
            };
            match written {
                // Somebody else made it meanwhile.
                Err(status) if is_about_stream(&status, "AlreadyExists") => {}
                Err(status) => return Err(self.own_words(status)),
                Ok(item) => return self.written(cx, &item, tag).await,
            }
        }
        Err(self.busy("create"))
    }

    pub(super) async fn update_tag(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let (stream, tag) = self.split(name)?;
        // As upstream: what is written by way of a tag has no manager in the stream.
        let options = &options.untracked();
        let change = Change { kind: &*self.kind, updater, name, tag, adds: AtomicBool::new(false) };
        for _ in 0..TRIES {
            let found = match self.sources.streams.get(cx, stream, &GetOptions::default()).await {
                Err(status) if status.is("NotFound") => None,
                found => Some(found.map_err(|status| self.own_words(status))?),
            };
            let written = match found {
                Some(item) => {
                    self.admit_change(cx, &change, &item).await?;
                    let outcome = self.sources.streams.update(cx, stream, &change, options).await;
                    outcome.map(Updated::into_item)
                }
                None => {
                    let new = self.admit_first(cx, &change, new_stream(cx, stream)).await?;
                    self.sources.streams.create(cx, new, options).await
                }
            };
            match written {
                // The stream came or went meanwhile.
                Err(status)
                    if ["AlreadyExists", "Conflict", "NotFound"]
                        .iter()
                        .any(|reason| is_about_stream(&status, reason)) => {}
                Err(status) => return Err(self.own_words(status)),
                Ok(item) => {
                    let item = self.written(cx, &item, tag).await?;
                    let adds = change.adds.load(Ordering::Relaxed);
                    return Ok(if adds { Updated::Created(item) } else { Updated::Changed(item) });
                }
            }
        }
        Err(self.busy("update"))
    }

    pub(super) async fn delete_tag(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let (stream, tag) = self.split(name)?;
        let removal = Removal {
            plural: self.kind.resource().plural,
            name,
            tag,
            uid: options.preconditions.uid.as_deref(),
        };
        // The history is the status', which writes of the spec do not touch.
        let internal =
            WriteOptions { dry_run: options.dry_run, subresource: INTERNAL.to_owned(), tracker: None };
        let outcome = self.sources.streams.update(cx, stream, &removal, &internal).await;
        outcome.map_err(|status| self.own_words(status))?;
        Ok(Deleted::Gone(None))
    }

    /// Completes and checks a tag that is to be created.
    async fn admit_new(&self, cx: &RequestContext, object: &mut Object) -> Result<(), Status> {
        let resource = self.kind.resource();
        metadata::begin(object, &cx.info.namespace, &uuid::Uuid::new_v4().to_string(), &metadata::now());
        let review = Review { operation: Operation::Create, object, old: None, resource };
        self.sources.admission.mutate(cx, &review).await?;
        let tag = split_stream_tag(object.name()).map(|(_, tag)| tag.to_owned()).unwrap_or_default();
        self.kind.prepare_create(object, &tag);
        let mut errors = object_meta::create(object, true, object_meta::path_name);
        errors.extend(self.kind.validate_create(object));
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, resource.gvk.kind, object.name(), &errors));
        }
        let review = Review { operation: Operation::Create, object, old: None, resource };
        self.sources.admission.validate(cx, &review).await
    }

    /// Asks admission about a change as it would be made now.
    async fn admit_change(
        &self,
        cx: &RequestContext,
        change: &Change<'_>,
        item: &Item,
    ) -> Result<(), Status> {
        let stream = item.object().map_err(Status::internal)?;
        let resource = self.kind.resource();
        let old = change.old(&stream);
        let given = change.updater.update(&old)?;
        let review = Review { operation: Operation::Update, object: &given, old: Some(&old), resource };
        self.sources.admission.mutate(cx, &review).await?;
        let new = change.checked(&stream, &old, given)?;
        let review = Review { operation: Operation::Update, object: &new, old: Some(&old), resource };
        self.sources.admission.validate(cx, &review).await
    }

    /// The stream that the update of a tag creates. Who may only update may not do that.
    async fn admit_first(
        &self,
        cx: &RequestContext,
        change: &Change<'_>,
        mut stream: Object,
    ) -> Result<Object, Status> {
        let old = change.old(&stream);
        let mut new = change.updater.update(&old)?;
        if !new.resource_version().is_empty() {
            return Err(Status::not_found(GROUP, self.kind.resource().plural, change.name));
        }
        self.admit_new(cx, &mut new).await?;
        let create = Attributes { verb: "create".to_owned(), ..Attributes::from(&cx.info) };
        if let Decision::Deny { reason } = self.sources.authorizer.authorize(&cx.user, &create).await? {
            return Err(forbidden(&cx.user, &create, &reason));
        }
        change.put(&mut stream, &new)?;
        for field in ["creationTimestamp", "uid"] {
            stream.set_metadata(field, Value::Null);
        }
        Ok(stream)
    }

    /// 500: others were faster, again and again.
    fn busy(&self, verb: &str) -> Status {
        let plural = self.kind.resource().plural;
        let text = format!(
            "The {verb} operation against {plural}.{GROUP} could not be completed at this time, please try again."
        );
        let mut status = Status::failure(http::StatusCode::INTERNAL_SERVER_ERROR, "ServerTimeout", text)
            .about(GROUP, plural, verb);
        status.details.get_or_insert_default().retry_after_seconds = 2;
        status
    }
}

/// A stream that is not there yet, as far as it is known.
fn new_stream(cx: &RequestContext, name: &str) -> Object {
    let mut stream = Object::new(&IMAGE_STREAMS.gvk.api_version(), IMAGE_STREAMS.gvk.kind);
    stream.set_metadata("name", name);
    stream.set_metadata("namespace", cx.info.namespace.as_str());
    stream.set_metadata("creationTimestamp", metadata::now());
    stream.set_metadata("uid", uuid::Uuid::new_v4().to_string());
    stream.object_mut("spec");
    stream
}

fn is_about_stream(status: &Status, reason: &str) -> bool {
    status.is(reason) && status.details.as_ref().is_some_and(|details| details.kind == STREAMS)
}
