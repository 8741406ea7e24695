//! [`StreamStrategy`]: what image streams decide for themselves, put together.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use picoshift_machinery::{FieldError, FieldErrorKind, Object, Status};
use serde_json::Value;

use super::facts::{self, Facts, Followed, Taken};
use super::following::{Following, Newest, TagAt, sources};
use super::resolve::Resolver;
use super::validation;
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::groups::image::hostnames::Hostnames;
use crate::groups::image::model::{
    self, Event, TagReference, generations, latest_event, provisional, spec_tag, status_tags,
};
use crate::groups::image::reference::Reference;
use crate::groups::image::{names, printing};
use crate::object_meta::NameRule;
use crate::registry::strategy::{Computed, Plan, Planned, Stored, Strategy};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::store::Revision;

/// A write of both spec and status, as imports make it; no path leads to it.
pub(in crate::groups::image) const INTERNAL: &str = "internal";
const STATUS: &str = "status";

/// The strategy of `imagestreams`.
pub(super) struct StreamStrategy {
    hostnames: Hostnames,
    resolver: Arc<Resolver>,
    following: RwLock<Following>,
}

impl StreamStrategy {
    /// A strategy without any stream yet.
    pub(super) fn new(hostnames: Hostnames, resolver: Arc<Resolver>) -> Self {
        Self { hostnames, resolver, following: RwLock::default() }
    }

    /// Resolves tags, then looks at what came of it; errors of the first part are wrapped as upstream wraps them.
    async fn validate(
        &self,
        cx: &RequestContext,
        subresource: &str,
        stream: &mut Object,
        old: Option<&Object>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let unresolved = self.resolver.resolve(cx, stream, old, subresource == INTERNAL).await;
        if !unresolved.is_empty() {
            let why = Status::invalid("", "imagestreams", stream.name(), &unresolved).message;
            errors.push(FieldError::new(FieldErrorKind::Internal, "[]", None, why));
        }
        errors.extend(validation::stream(stream));
        errors
    }

    /// Lets the following tags of a stream take what their sources mean now; adds what is new to `facts` and to
    /// `folded`.
    fn follow(&self, following: &Following, write: Planned<'_>, folded: &mut Object, facts: &mut Facts) {
        let own = sources(folded);
        let mut taken_before = write.old.map(|old| Facts::read(&old.computed).taken).unwrap_or_default();
        taken_before.retain(|tag, taken| {
            own.get(tag.as_str()).is_some_and(|source| source.to_string() == taken.from)
        });
        facts.taken = taken_before;
        for tag in following.order(write.key, &own) {
            let Some(source) = own.get(&tag) else { continue };
            let Some(found) = self.source(following, write, source, folded, facts) else { continue };
            let event = Event { created: String::new(), ..found.event.clone() };
            let taken = Taken { from: source.to_string(), event, provisional: found.provisional };
            let before = facts.taken.insert(tag.to_string(), taken.clone());
            if before.as_ref().is_some_and(|before| before.event == taken.event) {
                continue;
            }
            let newest = latest_event(folded, &tag);
            let replaces = newest.as_ref().is_some_and(|newest| {
                !newest.means(&taken.event)
                    && before.as_ref().is_some_and(|had| had.provisional && had.event.means(newest))
            });
            let event = self.copied(folded, &tag, source, write, found.event);
            let next = Followed { tag: tag.to_string(), event, replaces };
            if next.apply(folded) {
                facts.events.push(next);
            }
        }
    }

    /// What a source means to a tag of the written stream. A generation of another stream means nothing here: it
    /// becomes the one of the tag that follows.
    fn source(
        &self,
        following: &Following,
        write: Planned<'_>,
        source: &TagAt,
        folded: &Object,
        facts: &Facts,
    ) -> Option<Newest> {
        if source.stream != *write.key {
            let mut found = following.newest(source)?.clone();
            found.event.generation = 0;
            return Some(found);
        }
        let event = latest_event(folded, &source.tag)?;
        let provisional =
            provisional::is_provisional(folded, &source.tag) || facts.is_provisional(&source.tag, &event);
        Some(Newest { event, provisional })
    }

    /// The event of a source as the tag that follows has it. A pull spec of the cluster's registry becomes the
    /// stream's own, as that is where its users may pull.
    fn copied(&self, stream: &Object, tag: &str, source: &TagAt, write: Planned<'_>, event: Event) -> Event {
        let reference = spec_tag(stream, tag);
        let generation = if source.stream == *write.key {
            event.generation
        } else {
            reference.and_then(TagReference::generation).or(stream.generation()).unwrap_or(0)
        };
        let docker_image_reference = if reference.is_some_and(TagReference::is_reference) {
            event.docker_image_reference
        } else {
            let to = (stream.namespace(), stream.name());
            own_reference(&self.hostnames, &event.docker_image_reference, source.stream_name(), to)
        };
        Event { docker_image_reference, generation, ..event }
    }
}

#[async_trait]
impl Strategy for StreamStrategy {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAMS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::stream_row(object, jiff::Timestamp::now())
    }

    fn name_rule(&self) -> NameRule {
        names::stream_name
    }

    fn set_defaults(&self, object: &mut Object) {
        model::normalise(object);
    }

    fn prepare_create(&self, cx: &RequestContext, object: &mut Object) {
        if cx.info.subresource != INTERNAL {
            object.0.remove("status");
        }
        facts::strip(object);
        generations::begin(object);
    }

    fn prepare_update(&self, _cx: &RequestContext, subresource: &str, object: &mut Object, old: &Object) {
        if subresource == STATUS {
            // The lookup policy is not among what upstream restores.
            for field in ["dockerImageRepository", "tags"] {
                match old.at(&["spec", field]).cloned() {
                    Some(value) => object.object_mut("spec").insert(field.to_owned(), value),
                    None => object.object_mut("spec").remove(field),
                };
            }
            provisional::drop_buried(object, old);
            generations::observe(object, old);
            return;
        }
        if subresource != INTERNAL
            && let Some(status) = old.0.get("status")
        {
            object.0.insert("status".to_owned(), status.clone());
        }
        status_tags::remove_empty(object);
        generations::advance(object, old);
    }

    /// Counted in `prepare_update`, where the tags' generations are set with it.
    fn generation_changed(&self, _object: &Object, _old: &Object) -> bool {
        false
    }

    async fn validate_create(
        &self,
        cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(self.validate(cx, &cx.info.subresource, object, None).await)
    }

    async fn validate_update(
        &self,
        cx: &RequestContext,
        subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        if subresource == STATUS {
            return Ok(validation::status_update(object, old));
        }
        Ok(self.validate(cx, subresource, object, Some(old)).await)
    }

    fn strip(&self, object: &mut Object) {
        facts::strip(object);
    }

    fn plan(&self, write: Planned<'_>, now: &str) -> Plan {
        let following = self.following.read();
        let Some(new) = write.new else {
            return Plan { affected: following.affected(write.key, None), ..Plan::default() };
        };
        let mut facts = Facts {
            internal: self.hostnames.internal.clone(),
            external: self.hostnames.external.clone(),
            ..Facts::default()
        };
        let before = write.old.map(|old| (Facts::read(&old.computed), old));
        // Any other write is of the object with its events, so that they are in it already, or were taken out.
        if let Some((had, _)) = before.as_ref().filter(|_| write.touch) {
            facts.events.clone_from(&had.events);
        }
        let mut folded = new.clone();
        facts.fold(&mut folded);
        self.follow(&following, write, &mut folded, &mut facts);
        let affected = following.affected(write.key, Some((&folded, &facts)));
        let since = match &before {
            _ if facts == Facts::default() => String::new(),
            Some((had, old)) if *had == facts => old.computed.since.clone(),
            _ => now.to_owned(),
        };
        Plan { computed: Computed { facts: facts.to_value(), since }, affected }
    }

    fn committed(&self, write: Planned<'_>, _revision: Revision) {
        let facts = write.computed.map(Facts::read).unwrap_or_default();
        self.following.write().set(write.key, write.new.map(|stream| (stream, &facts)));
    }

    fn folded<'a>(&self, stored: &'a Stored) -> Cow<'a, Object> {
        let facts = Facts::read(&stored.computed);
        if facts.events.is_empty() {
            return Cow::Borrowed(&stored.object);
        }
        let mut stream = stored.object.clone();
        facts.fold(&mut stream);
        Cow::Owned(stream)
    }

    fn present(&self, stored: &Stored) -> Object {
        let mut stream = stored.object.clone();
        Facts::read(&stored.computed).present(&mut stream);
        stream
    }
}

/// The pull spec for the stream `to` (namespace, name) of what the cluster's registry holds for the stream `from`;
/// any other pull spec stays.
pub(super) fn own_reference(
    hostnames: &Hostnames,
    reference: &str,
    from: (&str, &str),
    to: (&str, &str),
) -> String {
    match Reference::parse(reference) {
        Ok(parsed)
            if !hostnames.internal.is_empty()
                && parsed.registry == hostnames.internal
                && (parsed.namespace.as_str(), parsed.name.as_str()) == from =>
        {
            Reference { namespace: to.0.to_owned(), name: to.1.to_owned(), ..parsed }.exact()
        }
        _ => reference.to_owned(),
    }
}
