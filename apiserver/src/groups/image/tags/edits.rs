//! What writes of tags make of a stream. Each is made anew from the stream as it is whenever another write came first,
//! so that two tags of one stream can be written at once and neither is lost.

use std::sync::atomic::{AtomicBool, Ordering};

use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::kind::TagKind;
use crate::groups::image::GROUP;
use crate::groups::image::model::{remove_spec_tag, remove_status_tag, set_spec_tag, spec_tag};
use crate::object_meta;
use crate::registry::metadata;
use crate::rest::Updater;

/// Adds a tag that must not be there.
pub(super) struct Addition<'a> {
    pub(super) tag: &'a str,
    pub(super) wanted: Option<Value>,
    /// The answer when it is there.
    pub(super) taken: Status,
}

impl Addition<'_> {
    pub(super) fn add(&self, stream: &mut Object) -> Result<(), Status> {
        if spec_tag(stream, self.tag).is_some() {
            return Err(self.taken.clone());
        }
        if let Some(mut wanted) = self.wanted.clone() {
            if let Value::Object(wanted) = &mut wanted {
                wanted.insert("name".to_owned(), self.tag.into());
            }
            set_spec_tag(stream, wanted);
        }
        Ok(())
    }
}

impl Updater for Addition<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut stream = current.clone();
        self.add(&mut stream)?;
        Ok(stream)
    }

    fn retries(&self) -> bool {
        true
    }
}

/// Changes a tag, or adds it.
pub(super) struct Change<'a> {
    pub(super) kind: &'a dyn TagKind,
    pub(super) updater: &'a dyn Updater,
    pub(super) name: &'a str,
    pub(super) tag: &'a str,
    /// Whether the last try found no spec tag.
    pub(super) adds: AtomicBool,
}

impl Change<'_> {
    /// The tag as it is.
    pub(super) fn old(&self, stream: &Object) -> Object {
        self.kind.render(stream, self.tag, None, true).unwrap_or_default()
    }

    /// Completes and checks what the client made of `old`.
    pub(super) fn checked(&self, stream: &Object, old: &Object, mut new: Object) -> Result<Object, Status> {
        let resource = self.kind.resource();
        let current = stream.resource_version();
        match new.resource_version() {
            // As upstream: a write without a version is a write come what may.
            "" => new.set_metadata("resourceVersion", current),
            version if version != current => {
                let why = format!("another caller has updated the resource version to {current}");
                return Err(Status::conflict(GROUP, resource.plural, new.name(), &why));
            }
            _ => {}
        }
        metadata::carry_over(&mut new, old);
        metadata::keep_owners(&mut new, old);
        let created = old.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
        new.set_metadata("creationTimestamp", created);
        self.kind.prepare_update(&mut new, old, stream);
        let mut errors = object_meta::create(&new, true, object_meta::path_name);
        errors.extend(object_meta::update(&new, old));
        // Once more, as upstream: the kind's own rules begin with it.
        errors.extend(object_meta::update(&new, old));
        errors.extend(self.kind.validate_update(&new, old, stream));
        if errors.is_empty() {
            return Ok(new);
        }
        Err(Status::invalid(GROUP, resource.gvk.kind, new.name(), &errors))
    }

    /// Makes the tag the stream's.
    pub(super) fn put(&self, stream: &mut Object, new: &Object) -> Result<(), Status> {
        self.adds.store(spec_tag(stream, self.tag).is_none(), Ordering::Relaxed);
        self.kind.apply(stream, self.tag, new)
    }
}

impl Updater for Change<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let old = self.old(current);
        let new = self.checked(current, &old, self.updater.update(&old)?)?;
        let mut stream = current.clone();
        self.put(&mut stream, &new)?;
        Ok(stream)
    }

    fn retries(&self) -> bool {
        true
    }
}

/// Removes a tag's spec and history.
pub(super) struct Removal<'a> {
    pub(super) plural: &'static str,
    pub(super) name: &'a str,
    pub(super) tag: &'a str,
    /// The uid that the stream must have.
    pub(super) uid: Option<&'a str>,
}

impl Updater for Removal<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        if self.uid.is_some_and(|uid| uid != current.uid()) {
            let why = "the UID precondition was not met";
            return Err(Status::conflict(GROUP, self.plural, self.name, why));
        }
        let mut stream = current.clone();
        let had_status = remove_status_tag(&mut stream, self.tag);
        if !remove_spec_tag(&mut stream, self.tag) && !had_status {
            return Err(Status::not_found(GROUP, self.plural, self.name));
        }
        Ok(stream)
    }

    fn retries(&self) -> bool {
        true
    }
}
