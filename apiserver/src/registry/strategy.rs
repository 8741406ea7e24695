//! [`Strategy`]: what one stored resource decides for itself.

use std::borrow::Cow;

use async_trait::async_trait;
use picoshift_machinery::{FieldError, Object, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object_meta::{self, NameRule};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::store::{Key, Revision};

/// What the computed part of an object was made from: small facts from which [`Strategy::present`] makes the part
/// again, the same at every time. Stored with the object; an object is touched when its facts change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// The facts; null where nothing is computed.
    pub facts: Value,
    /// RFC 3339 time of the last transition that clients may see.
    pub since: String,
}

/// An object as stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The object without computed parts and without `resourceVersion`.
    pub object: Object,
    /// The facts of the computed part.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub computed: Computed,
}

fn is_empty(computed: &Computed) -> bool {
    computed.facts.is_null() && computed.since.is_empty()
}

/// The outcome of [`Strategy::plan`]: what to store for an object, and which others may change by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Facts for the object that is written.
    pub computed: Computed,
    /// Keys of other objects whose facts may be different after this write.
    pub affected: Vec<Key>,
}

/// A planned write of one object, as the index sees it.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The object's key.
    pub key: &'a Key,
    /// The object as it is stored now; `None` on create.
    pub old: Option<&'a Stored>,
    /// The object to store (without computed parts); `None` on delete.
    pub new: Option<&'a Object>,
    /// The facts that go with `new`: known in [`Strategy::committed`], `None` while they are being planned.
    pub computed: Option<&'a Computed>,
    /// Revision that created the object; `None` on create, as it has none yet.
    pub create_revision: Option<Revision>,
    /// Whether the object stays as it is and only its computed part is written.
    pub touch: bool,
}

/// What one stored resource decides for itself; the defaults fit a plain resource.
#[async_trait]
pub trait Strategy: Send + Sync + 'static {
    /// The description.
    fn resource(&self) -> &'static Resource;

    /// The table cells of a presented object.
    fn row(&self, object: &Object) -> Vec<Value>;

    /// The rule of `metadata.name` on create.
    fn name_rule(&self) -> NameRule {
        object_meta::subdomain_name
    }

    /// Fills in defaults; called on every decoded object, before admission.
    fn set_defaults(&self, object: &mut Object) {
        let _ = object;
    }

    /// Resets what a creator may not set (status), normalises. `metadata.name`, `uid`, `creationTimestamp` and
    /// `generation` are set by the registry before.
    fn prepare_create(&self, cx: &RequestContext, object: &mut Object) {
        let _ = (cx, object);
    }

    /// Restores what an updater may not change: `status` on the main resource, all but `status` (and metadata) on
    /// the status subresource. Both are stored forms: without computed parts. The registry keeps system metadata
    /// and bumps `generation` when [`Strategy::generation_changed`] says so.
    fn prepare_update(&self, cx: &RequestContext, subresource: &str, object: &mut Object, old: &Object) {
        let _ = (cx, subresource, object, old);
    }

    /// Whether an update of what is not there creates it, where the caller may create.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a delete answers the object as it was, and not a status.
    fn answers_deleted(&self) -> bool {
        false
    }

    /// Whether the update changes what `generation` counts.
    fn generation_changed(&self, object: &Object, old: &Object) -> bool {
        object.0.get("spec") != old.0.get("spec")
    }

    /// Validates a new object (metadata is checked by the registry); may ask about permissions and may complete the
    /// object, as a route's host is allocated here. Errors become one 422.
    ///
    /// # Errors
    /// A status of its own instead of a 422.
    async fn validate_create(
        &self,
        cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        let _ = (cx, object);
        Ok(Vec::new())
    }

    /// Validates an update; see [`Strategy::validate_create`].
    ///
    /// # Errors
    /// A status of its own instead of a 422.
    async fn validate_update(
        &self,
        cx: &RequestContext,
        subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        let _ = (cx, subresource, object, old);
        Ok(Vec::new())
    }

    /// Warnings about a valid object.
    fn warnings(&self, object: &Object) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Removes computed parts from an object that a client read, changed and sent back.
    fn strip(&self, object: &mut Object) {
        let _ = object;
    }

    /// Decides the computed facts of a write. Called under the resource's write lock, in revision order; changes
    /// nothing: [`Strategy::committed`] does, once the store has taken the write. `now` is RFC 3339.
    fn plan(&self, write: Planned<'_>, now: &str) -> Plan {
        let _ = (write, now);
        Plan::default()
    }

    /// Tells the index about a write that the store has taken at `revision`, under the same lock as `plan`. Also
    /// called for every stored object at start, in the order of their creation, with `old: None`.
    fn committed(&self, write: Planned<'_>, revision: Revision) {
        let _ = (write, revision);
    }

    /// What an update starts from, in the stored form: the stored object with those computed parts that the next
    /// write stores, like events that came since the last one. Most resources have none.
    fn folded<'a>(&self, stored: &'a Stored) -> Cow<'a, Object> {
        Cow::Borrowed(&stored.object)
    }

    /// Adds the computed part: a pure function of what is stored.
    fn present(&self, stored: &Stored) -> Object {
        stored.object.clone()
    }
}
