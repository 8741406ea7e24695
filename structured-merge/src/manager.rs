//! [`FieldManager`]: updates and applies of the objects of one endpoint (`managedfields/internal`).

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use picoshift_machinery::Object;
use serde_json::{Map, Value};

use crate::conflict::Conflicts;
use crate::entries::{self, Managed, identifier};
use crate::last_applied::{self, KUBECTL};
use crate::path::PathElement;
use crate::schema::{Schema, TypeId};
use crate::set::FieldSet;
use crate::typed::{Duplicates, Typed};
use crate::updater::{Failure, Owner, Updater};
use crate::value;

/// The manager of what was there before the first apply.
const BEFORE: &str = "before-first-apply";
/// The manager of a client that gives no name.
const UNKNOWN: &str = "unknown";
/// Stands for the manager while its update is looked at: no identifier is so short.
const CURRENT: &str = "current";

/// What nobody owns: the object's identity, and what the server sets.
static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = PathElement::field("metadata");
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[PathElement::field(name)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[metadata.clone(), PathElement::field(name)]);
    }
    set
});

/// Keeps the managed fields of the objects of one kind, written through one endpoint.
#[derive(Debug)]
pub struct FieldManager {
    pub(crate) schema: Arc<Schema>,
    pub(crate) r#type: TypeId,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    subresource: String,
    empty: Value,
    ignored: Option<FieldSet>,
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `fieldManager`; empty for none.
    pub manager: &'a str,
    /// RFC 3339, to the second, in UTC.
    pub now: &'a str,
}

/// What an apply makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object, with its `managedFields`. Where it changed it is not yet held against the decoder's schema.
    pub object: Object,
    /// Whether it is other than before, its `managedFields` apart.
    pub changed: bool,
}

/// Why an apply was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration is not for this endpoint.
    #[error("{0}")]
    BadRequest(String),
    /// Others own what it would change.
    #[error("{}", .0.message())]
    Conflict(Conflicts),
    /// It does not fit the schema, or what is stored does not.
    #[error("{0}")]
    Failed(String),
}

impl FieldManager {
    /// A manager of objects of a schema. `empty` is an object in which nothing is set, as it is encoded; `subresource`
    /// is empty for the objects themselves.
    #[must_use]
    pub fn new(schema: Arc<Schema>, r#type: TypeId, empty: Object, subresource: &str) -> Self {
        Self {
            schema,
            r#type,
            api_version: empty.api_version().to_owned(),
            kind: empty.kind().to_owned(),
            subresource: subresource.to_owned(),
            empty: Value::Object(empty.0),
            ignored: None,
        }
    }

    /// The same, where the endpoint sets these fields back, with all that is in them.
    #[must_use]
    pub fn ignoring(self, fields: FieldSet) -> Self {
        Self { ignored: Some(fields), ..self }
    }

    fn updater(&self) -> Updater<'_> {
        Updater {
            schema: &self.schema,
            r#type: self.r#type,
            api_version: &self.api_version,
            ignored: self.ignored.as_ref(),
        }
    }

    fn owner(&self, request: Request<'_>, applied: bool) -> (String, Owner) {
        let name = if request.manager.is_empty() { UNKNOWN } else { request.manager };
        let id = identifier(name, applied, &self.api_version, &self.subresource);
        let owner = Owner {
            name: name.to_owned(),
            subresource: self.subresource.clone(),
            api_version: self.api_version.clone(),
            applied,
            set: FieldSet::default(),
        };
        (id, owner)
    }

    /// Sets the `managedFields` of an object that is created, or of what an update or a patch made of `live`. Both
    /// have their defaults.
    ///
    /// # Errors
    /// Why they could not be kept; the object has none then, and may be written so.
    pub fn update(
        &self,
        live: Option<&Object>,
        new: &mut Object,
        request: Request<'_>,
    ) -> Result<(), String> {
        let entries = new.0.get_mut("metadata").and_then(Value::as_object_mut).and_then(|m| m.remove(FIELD));
        let before = live.and_then(|live| live.at(&["metadata", FIELD]));
        let content = Value::Object(std::mem::take(&mut new.0));
        let live_content = live.map_or(Cow::Borrowed(&self.empty), |live| Cow::Owned(content_of(live)));
        let outcome = if live.is_some()
            && self.is_settled(before, entries.as_ref())
            && value::equal(&live_content, &content)
        {
            Ok(before.cloned().unwrap_or_default())
        } else {
            let managed = self.live_or_new(before, entries.as_ref());
            // What was not tracked when it was made is tracked from its first apply on.
            let untracked = managed.owners.is_empty() && live.is_some_and(|live| !live.uid().is_empty());
            if untracked {
                Ok(Value::Null)
            } else {
                self.tracked(&live_content, &content, managed, request).map(|managed| managed.encode())
            }
        };
        if let Value::Object(content) = content {
            new.0 = content;
        }
        let entries = outcome?;
        if !entries.is_null() {
            new.set_metadata(FIELD, entries);
        }
        Ok(())
    }

    /// Whether entries stay what they are when nothing else changes.
    fn is_settled(&self, live: Option<&Value>, new: Option<&Value>) -> bool {
        let entries = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let ours = |entry: &Value| entry.get("apiVersion").and_then(Value::as_str) == Some(&self.api_version);
        new.is_none_or(|new| Some(new) == live) && entries.len() <= 10 && entries.iter().all(ours)
    }

    /// The owners that an update begins with: those that the client sends, or those that are there, so that clients
    /// which do not know of them lose none.
    fn live_or_new(&self, live: Option<&Value>, new: Option<&Value>) -> Managed {
        let live = || entries::decode(live).unwrap_or_default();
        if !self.subresource.is_empty() {
            return live();
        }
        if new.and_then(Value::as_array).is_some_and(|list| is_reset(list)) {
            return Managed::default();
        }
        match entries::decode(new) {
            Ok(managed) if !managed.owners.is_empty() => managed,
            _ => live(),
        }
    }

    fn tracked(
        &self,
        live: &Value,
        new: &Value,
        managed: Managed,
        request: Request<'_>,
    ) -> Result<Managed, String> {
        let typed = |value| Typed::new(&self.schema, self.r#type, value, Duplicates::Allowed);
        let place = |value| self.place(value);
        let new_typed = typed(new).map_err(|errors| {
            format!("failed to convert new object ({}) to smd typed: {errors}", place(new))
        })?;
        let live_typed = typed(live).map_err(|errors| {
            format!("failed to convert live object ({}) to smd typed: {errors}", place(live))
        })?;
        let (id, owner) = self.owner(request, false);
        let Managed { owners, mut times } = managed;
        let mut owners = self
            .updater()
            .update(&live_typed, &new_typed, owners, CURRENT, owner)
            .map_err(|why| format!("failed to update ManagedFields ({}): {why}", place(new)))?;
        if let Some(mut current) = owners.remove(CURRENT) {
            current.set = current.set.difference(&NOBODYS);
            if !current.set.is_empty() {
                if let Some(previous) = owners.get(&id) {
                    current.set = current.set.union(&previous.set);
                }
                owners.insert(id.clone(), current);
                times.insert(id, request.now.to_owned());
            }
        }
        let mut managed = Managed { owners, times };
        managed.cap();
        Ok(managed)
    }

    /// Merges a configuration into `live`, or makes an object of it where there is none.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn apply(
        &self,
        live: Option<&Object>,
        config: &Value,
        request: Request<'_>,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let managed = entries::decode(live.and_then(|live| live.at(&["metadata", FIELD])))
            .map_err(|why| ApplyError::Failed(format!("failed to decode managed fields: {why}")))?;
        let live = live.map_or_else(|| self.empty.clone(), content_of);
        self.check_kind(config)?;
        let outcome = match self.apply_once(&live, config, &managed, request, force) {
            Err(ApplyError::Conflict(conflicts)) if request.manager == KUBECTL => {
                let allowed = last_applied::still_applied(self, &live);
                match allowed {
                    None => Err(ApplyError::Conflict(conflicts)),
                    Some(allowed) if conflicts.to_set().difference(&allowed).is_empty() => {
                        self.apply_once(&live, config, &managed, request, true)
                    }
                    Some(allowed) => Err(ApplyError::Conflict(conflicts.without(&allowed))),
                }
            }
            outcome => outcome,
        };
        let (object, managed) = outcome?;
        let changed = object.is_some();
        let mut object = object.unwrap_or(live);
        if request.manager == KUBECTL {
            last_applied::refresh(&mut object, config);
        }
        let Value::Object(object) = object else {
            return Err(ApplyError::Failed(
                "failed to convert value to unstructured for type <nil>".to_owned(),
            ));
        };
        let mut object = Object(object);
        object.set_metadata(FIELD, managed.encode());
        Ok(Applied { object, changed })
    }

    fn check_kind(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") == self.api_version && text("kind") == self.kind {
            return Ok(());
        }
        Err(ApplyError::BadRequest(format!("invalid object type: {}", kind_of(config))))
    }

    fn apply_once(
        &self,
        live: &Value,
        config: &Value,
        managed: &Managed,
        request: Request<'_>,
        force: bool,
    ) -> Result<(Option<Value>, Managed), ApplyError> {
        let mut managed = managed.clone();
        if managed.owners.is_empty() {
            let before = Request { manager: BEFORE, ..request };
            managed = self.tracked(&self.empty, live, managed, before).map_err(|why| {
                ApplyError::Failed(format!("failed to create manager for existing fields: {why}"))
            })?;
        }
        if config
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().all(Value::is_object))
        {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let typed = |value, duplicates, what: &str| {
            Typed::new(&self.schema, self.r#type, value, duplicates).map_err(|errors| {
                let place = self.place(value);
                ApplyError::Failed(format!("failed to create typed {what} object ({place}): {errors}"))
            })
        };
        let config_typed = typed(config, Duplicates::Refused, "patch")?;
        let live_typed = typed(live, Duplicates::Allowed, "live")?;
        let (id, owner) = self.owner(request, true);
        let Managed { owners, mut times } = managed;
        let (object, mut owners) = self
            .updater()
            .apply(&live_typed, &config_typed, owners, &id, owner, force)
            .map_err(|failure| match failure {
                Failure::Conflicts(conflicts) => ApplyError::Conflict(conflicts),
                Failure::Other(why) => ApplyError::Failed(why),
            })?;
        if let Some(mut owner) = owners.remove(&id) {
            owner.set = owner.set.difference(&NOBODYS);
            if !owner.set.is_empty() {
                owners.insert(id.clone(), owner);
            }
        }
        if object.is_some() {
            times.insert(id, request.now.to_owned());
        }
        Ok((object, Managed { owners, times }))
    }

    /// `namespace/name; group/version, Kind=kind`, as error texts have it.
    fn place(&self, object: &Value) -> String {
        let metadata = |field: &str| {
            object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
        };
        format!("{}/{}; {}", metadata("namespace"), metadata("name"), kind_of(object))
    }
}

const FIELD: &str = "managedFields";

/// An object without its entries.
fn content_of(object: &Object) -> Value {
    let copied = |(name, value): (&String, &Value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(field, _)| *field != FIELD);
            (name.clone(), Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect()))
        }
        value => (name.clone(), value.clone()),
    };
    Value::Object(object.0.iter().map(copied).collect::<Map<_, _>>())
}

/// Whether a client asks that all owners be forgotten: by no entry, or one that says nothing.
fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(|entry| entry.values().all(Value::is_null)),
        _ => false,
    }
}

/// `group/version, Kind=kind`; an apiVersion that is none has neither.
fn kind_of(object: &Value) -> String {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = match text("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
        [version] => ("", *version),
        [group, version] => (*group, *version),
        _ => return "/, Kind=".to_owned(),
    };
    format!("{group}/{version}, Kind={}", text("kind"))
}
