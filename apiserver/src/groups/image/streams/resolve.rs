//! What a changed spec tag means: found when the tag is written, as the real server does, with its errors
//! (`openshift-apiserver/pkg/image/apiserver/registry/imagestream.Strategy.tagsChanged`). A tag of a pull spec, which
//! the real server leaves to the importer, means the pull spec until it is imported.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use picoshift_machinery::field_error::quote;
use picoshift_machinery::{FieldError, FieldErrorKind, Object, Status};

use super::strategy::own_reference;
use crate::authz::{Attributes, Authorizer, Decision};
use crate::groups::image::GROUP;
use crate::groups::image::hostnames::Hostnames;
use crate::groups::image::model::spec_tags::{DOCKER_IMAGE, STREAM_IMAGE, STREAM_TAG, Source};
use crate::groups::image::model::{
    DEFAULT_TAG, Event, TagReference, add_event, drop_provisional, latest_event, provisional, resolve_image,
    spec_tag, spec_tags, status_tags,
};
use crate::groups::image::reference::Reference;
use crate::registry::Registry;
use crate::registry::metadata::now;
use crate::rest::{GetOptions, RequestContext, Storage};

const FORM: &str = "must be of the form <tag>, <repo>:<tag>, <id>, or <repo>@<id>";

/// Resolves changed tags.
pub(super) struct Resolver {
    authorizer: Arc<dyn Authorizer>,
    hostnames: Hostnames,
    /// The streams, once they are loaded.
    streams: OnceLock<Weak<Registry>>,
}

impl Resolver {
    pub(super) fn new(authorizer: Arc<dyn Authorizer>, hostnames: Hostnames) -> Self {
        Self { authorizer, hostnames, streams: OnceLock::new() }
    }

    /// Says where streams are; before that no other stream is found.
    pub(super) fn set_streams(&self, streams: &Arc<Registry>) {
        // Set once, by the group that made both.
        let _ = self.streams.set(Arc::downgrade(streams));
    }

    /// Gives the changed tags of a stream their events, and answers what is wrong with them. `internal` is a write
    /// whose writer may have set events itself.
    pub(super) async fn resolve(
        &self,
        cx: &RequestContext,
        stream: &mut Object,
        old: Option<&Object>,
        internal: bool,
    ) -> Vec<FieldError> {
        let changed: Vec<String> = spec_tags(stream)
            .into_iter()
            .filter(|(tag, reference)| {
                let had = old.and_then(|old| spec_tag(old, tag));
                reference.from().is_some() && TagReference::changed(had, *reference, stream.namespace())
            })
            .map(|(tag, _)| tag.to_owned())
            .collect();
        let mut errors = self.permissions(cx, stream, &changed).await;
        if let Some(old) = old {
            for (tag, had) in spec_tags(old) {
                if spec_tag(stream, tag).is_none() || changed.iter().any(|other| other == tag) {
                    self.leave(stream, tag, had);
                }
            }
        }
        for tag in changed {
            let Some(reference) = spec_tag(stream, &tag).map(|found| found.0.clone()) else { continue };
            let had = old.and_then(|old| spec_tag(old, &tag));
            let was = old.and_then(|old| latest_event(old, &tag));
            let set = internal && latest_event(stream, &tag) != was;
            let step = Step { tag: &tag, reference: TagReference(&reference), had, set };
            if let Err(error) = self.step(stream, &step).await {
                errors.push(error);
            }
        }
        errors
    }

    /// Takes the provisional event of a tag away that is something else now, or nothing.
    fn leave(&self, stream: &mut Object, tag: &str, had: TagReference<'_>) {
        let still = spec_tag(stream, tag).is_some_and(|now| {
            now.is_imported() && now.from().map(Source::name) == had.from().map(Source::name)
        });
        if !still {
            drop_provisional(stream, tag, had);
        }
    }

    async fn step(&self, stream: &mut Object, step: &Step<'_>) -> Result<(), FieldError> {
        let (tag, reference) = (step.tag, step.reference);
        let Some(from) = reference.from() else { return Ok(()) };
        let generation = stream.generation().unwrap_or(0);
        if from.kind() == DOCKER_IMAGE && !from.name().is_empty() {
            if reference.is_reference() {
                let event = Event {
                    created: now(),
                    docker_image_reference: from.name().to_owned(),
                    image: String::new(),
                    generation,
                };
                add_event(stream, tag, &event);
            } else if step.is_new_target(stream) && Reference::parse(from.name()).is_ok() {
                provisional::add_provisional(stream, tag, from.name(), generation, &now());
            }
            return Ok(());
        }
        let at = format!("spec.tags[{tag}].from.name");
        let own_name = stream.name().to_owned();
        let own_namespace = stream.namespace().to_owned();
        let Some((name, rest)) = from.stream_and_rest(&own_name) else {
            return Err(FieldError::invalid_str(at, from.name(), FORM));
        };
        let namespace = from.namespace_or(&own_namespace);
        let is_own = namespace == own_namespace && name == own_name;
        let event = if is_own {
            event_of(stream, from, rest)
        } else {
            let source = self.stream(namespace, name).await.map_err(|status| {
                if status.is("NotFound") {
                    let shown = Some(quote(from.name()));
                    return FieldError::new(FieldErrorKind::NotFound, at.clone(), shown, "");
                }
                let why = format!("unable to retrieve image stream: {}", status.message);
                FieldError::invalid_str(at.clone(), from.name(), why)
            })?;
            event_of(&source, from, rest)
        };
        let event = event.map_err(|status| {
            let why = format!("error generating tag event: {}", status.message);
            FieldError::invalid_str(at, from.name(), why)
        })?;
        // A tag that is not there yet is no error.
        let Some(mut event) = event else { return Ok(()) };
        event.generation = generation;
        if is_own && from.kind() == STREAM_TAG {
            // The real server copies the event by reference: the source's gets the generation too.
            let source = if rest.is_empty() { DEFAULT_TAG } else { rest };
            status_tags::set_latest_generation(stream, source, generation);
        }
        if !reference.is_reference() {
            event.docker_image_reference = own_reference(
                &self.hostnames,
                &event.docker_image_reference,
                (namespace, name),
                (&own_namespace, &own_name),
            );
        }
        add_event(stream, tag, &event);
        Ok(())
    }

    async fn stream(&self, namespace: &str, name: &str) -> Result<Object, Status> {
        let Some(streams) = self.streams.get().and_then(Weak::upgrade) else {
            return Err(Status::unavailable("image streams are not loaded"));
        };
        let cx = super::context(namespace, "get");
        let item = streams.get(&cx, name, &GetOptions::default()).await?;
        item.object().map_err(Status::internal)
    }

    /// Whether the caller may pull what the changed tags point to in other namespaces; one question per stream.
    async fn permissions(&self, cx: &RequestContext, stream: &Object, changed: &[String]) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut wanted: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (tag, reference) in spec_tags(stream) {
            let Some(from) = reference.from() else { continue };
            let namespace = from.namespace();
            let is_own = namespace.is_empty() || namespace == stream.namespace();
            if is_own || !changed.iter().any(|other| other == tag) {
                continue;
            }
            match from.stream_and_rest(stream.name()) {
                Some((name, _)) => wanted.entry((namespace, name)).or_default().push(tag),
                None => {
                    let at = format!("spec.tags[{tag}].from.name");
                    errors.push(FieldError::invalid_str(at, from.name(), FORM));
                }
            }
        }
        for ((namespace, name), tags) in wanted {
            let attributes = Attributes {
                verb: "get".to_owned(),
                group: GROUP.to_owned(),
                version: "*".to_owned(),
                resource: "imagestreams".to_owned(),
                subresource: "layers".to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                ..Attributes::default()
            };
            let why = match self.authorizer.authorize(&cx.user, &attributes).await {
                Ok(Decision::Allow) => continue,
                Ok(Decision::Deny { reason }) => format!("{namespace}/{name}: {} \"\"", quote(&reason)),
                Err(status) => format!("{namespace}/{name}: \"\" \"\"- {}", status.message),
            };
            errors.extend(
                tags.iter().map(|tag| FieldError::forbidden(format!("spec.tags[{tag}].from"), why.clone())),
            );
        }
        errors
    }
}

/// One changed tag.
struct Step<'a> {
    tag: &'a str,
    reference: TagReference<'a>,
    /// What it was before.
    had: Option<TagReference<'a>>,
    /// Whether the writer set its event already.
    set: bool,
}

impl Step<'_> {
    /// Whether a tag of a pull spec needs a provisional event: it points elsewhere than before, or means nothing yet.
    fn is_new_target(&self, stream: &Object) -> bool {
        let target = |reference: TagReference<'_>| {
            reference.from().map(|from| (from.kind().to_owned(), from.name().to_owned()))
        };
        let moved = self.had.is_none_or(|had| {
            target(had) != target(self.reference) || had.is_reference() != self.reference.is_reference()
        });
        !self.set && (moved || latest_event(stream, self.tag).is_none())
    }
}

/// What `from` means in its stream; `None` for a tag that is not there.
fn event_of(stream: &Object, from: Source<'_>, rest: &str) -> Result<Option<Event>, Status> {
    if from.kind() == STREAM_IMAGE {
        resolve_image(stream, rest, &now()).map(Some)
    } else {
        Ok(latest_event(stream, rest))
    }
}
