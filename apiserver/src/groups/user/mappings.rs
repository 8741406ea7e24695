//! `useridentitymappings`: which identity belongs to which user
//! (`oauth-apiserver/pkg/user/apiserver/registry/useridentitymapping`).
//!
//! Nothing of a mapping is stored: it is there when an identity refers to a user by name and uid and that user lists
//! the identity. Its name, uid, resourceVersion and creation time are the identity's. Writes are writes of both, in
//! the real server's order, so that one that breaks off can be made again.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Value, json};

use super::GROUP;
use super::names::{identity_name, user_name};
use super::resources::{USER_IDENTITY_MAPPINGS, strings};
use crate::object_meta;
use crate::registry::{Registry, metadata};
use crate::resource::Resource;
use crate::rest::query::without_reason;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, RequestContext, Storage, Updated, Updater, WriteOptions,
};

/// What the real server calls the resource in errors.
const SINGULAR: &str = "useridentitymapping";

/// The storage of `useridentitymappings`.
pub(super) struct Mappings {
    pub(super) users: Arc<Registry>,
    pub(super) identities: Arc<Registry>,
}

/// An identity, and the user that it belongs to.
#[derive(Default)]
struct Related {
    identity: Option<Object>,
    /// The user that the identity names, whether or not they agree.
    user: Option<Object>,
    /// The mapping, where they agree.
    mapping: Option<Arc<Item>>,
}

/// Whether a mapping has to be new.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Create,
    Upsert,
}

impl Mappings {
    async fn related(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &GetOptions,
    ) -> Result<Related, Status> {
        let Some(identity) = found(self.identities.get(cx, name, options).await)? else {
            return Ok(Related::default());
        };
        let user_name = identity.str_at(&["user", "name"]);
        let user = match user_name {
            "" => None,
            user_name => found(self.users.get(cx, user_name, options).await)?,
        };
        let agrees =
            |user: &&Object| refers_to(&identity, user) && strings(user, "identities").any(|i| i == name);
        let mapping = user.as_ref().filter(agrees).map(|user| mapping_of(user, &identity)).transpose()?;
        Ok(Related { identity: Some(identity), user, mapping })
    }

    async fn map(
        &self,
        cx: &RequestContext,
        mut wanted: Object,
        mode: Mode,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let name = wanted.name().to_owned();
        if name.is_empty() {
            return Err(without_reason("resource name may not be empty".to_owned()));
        }
        let related = self.related(cx, &name, &GetOptions::default()).await?;
        match &related.mapping {
            Some(_) if mode == Mode::Create => return Err(Status::already_exists(GROUP, SINGULAR, &name)),
            Some(current) => {
                if check_update(&mut wanted, current)? {
                    return Ok(Updated::Changed(Arc::clone(current)));
                }
            }
            None => check_create(&mut wanted)?,
        }
        let Some(identity) = related.identity else {
            let given = wanted.str_at(&["identity", "name"]);
            return Err(missing(&name, "identity.name", given, "referenced identity does not exist"));
        };
        let user_name = wanted.str_at(&["user", "name"]);
        let Some(user) = found(self.users.get(cx, user_name, &GetOptions::default()).await)? else {
            return Err(missing(&name, "user.name", user_name, "referenced user does not exist"));
        };
        let user = self.update(cx, &self.users, &user, &|user| add_identity(user, &name), options).await?;
        let reference = json!({"name": user.name(), "uid": user.uid()});
        // Bound to the state that was read: of two mappings of one identity at a time, one gets a conflict.
        let version = identity.resource_version().to_owned();
        let point = |identity: &mut Object| {
            if !refers_to(identity, &user) {
                identity.0.insert("user".to_owned(), reference.clone());
            }
            identity.set_metadata("resourceVersion", version.as_str());
        };
        let identity = self.update(cx, &self.identities, &identity, &point, options).await?;
        if let Some(old) = related.user.filter(|old| old.uid() != user.uid()) {
            // The mapping is made; what is left behind is dangling, which every reader copes with.
            let left =
                self.update(cx, &self.users, &old, &|user| remove_identity(user, &name), options).await;
            if let Err(error) = left {
                tracing::error!(identity = name, user = old.name(), %error, "an identity could not be taken from its old user");
            }
        }
        let item = mapping_of(&user, &identity)?;
        Ok(if related.mapping.is_some() { Updated::Changed(item) } else { Updated::Created(item) })
    }

    /// Changes a user or an identity; a change that changes nothing is no write.
    async fn update(
        &self,
        cx: &RequestContext,
        registry: &Registry,
        object: &Object,
        change: &(dyn Fn(&mut Object) + Sync),
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
        let edit = Edit { uid: object.uid(), change };
        let updated = registry.update(cx, object.name(), &edit, &options).await?;
        updated.into_item().object().map_err(Status::internal)
    }
}

/// A change of the object of this uid.
struct Edit<'a> {
    uid: &'a str,
    change: &'a (dyn Fn(&mut Object) + Sync),
}

impl Updater for Edit<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut object = current.clone();
        // An object that was made anew in between has another uid; the registry refuses the change then.
        object.set_metadata("uid", self.uid);
        (self.change)(&mut object);
        Ok(object)
    }

    fn retries(&self) -> bool {
        true
    }

    fn replaces(&self) -> bool {
        true
    }
}

#[async_trait]
impl Storage for Mappings {
    fn resource(&self) -> &'static Resource {
        &USER_IDENTITY_MAPPINGS
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        self.related(cx, name, options).await?.mapping.ok_or_else(|| not_found(name))
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        prepare(&mut object);
        self.map(cx, object, Mode::Create, options).await.map(Updated::into_item)
    }

    /// A mapping that is not there is created. A patch finds no object to change, as on the real server, which hands
    /// none to it: that is a 404 about the plural. An apply makes one, and so is as good as a replacement.
    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let mut object = match updater.apply(None, &|_| ()) {
            Some(applied) => applied?,
            None if updater.replaces() => updater.update(&Object::default())?,
            None => return Err(Status::not_found(GROUP, USER_IDENTITY_MAPPINGS.plural, name)),
        };
        prepare(&mut object);
        self.map(cx, object, Mode::Upsert, options).await
    }

    /// Takes the identity from the user, then the user from the identity. The identity stays.
    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let related = self.related(cx, name, &GetOptions::default()).await?;
        let (Some(identity), Some(user), Some(_)) = (related.identity, related.user, related.mapping) else {
            return Err(not_found(name));
        };
        let options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
        self.update(cx, &self.users, &user, &|user| remove_identity(user, name), &options).await?;
        let version = identity.resource_version().to_owned();
        let clear = |identity: &mut Object| {
            identity.0.insert("user".to_owned(), json!({}));
            identity.set_metadata("resourceVersion", version.as_str());
        };
        if let Err(error) = self.update(cx, &self.identities, &identity, &clear, &options).await {
            // The mapping is gone already, since the user does not list the identity any more.
            tracing::error!(identity = name, %error, "a user could not be taken from its identity");
        }
        Ok(Deleted::Gone(None))
    }
}

/// What a client may say: two names, and the identity's under either name.
fn prepare(mapping: &mut Object) {
    if mapping.name().is_empty() {
        let name = mapping.str_at(&["identity", "name"]).to_owned();
        mapping.set_metadata("name", name);
    }
    mapping.set_metadata("namespace", Value::Null);
}

/// Checks a mapping that will be new.
fn check_create(mapping: &mut Object) -> Result<(), Status> {
    metadata::begin(mapping, "", "", "");
    let mut errors = object_meta::create(mapping, false, identity_name);
    errors.extend(references(mapping));
    reject(mapping, &errors)
}

/// Checks a mapping against the one that is there; whether it is the same already.
fn check_update(mapping: &mut Object, current: &Item) -> Result<bool, Status> {
    let old = current.object().map_err(Status::internal)?;
    metadata::carry_over(mapping, &old);
    metadata::keep_owners(mapping, &old);
    // A client's time of creation is not looked at.
    mapping.set_metadata("creationTimestamp", old.creation_timestamp());
    // Found twice, by the generic update and by the kind's own validation.
    let mut errors = object_meta::create(mapping, false, object_meta::path_name);
    errors.extend(object_meta::update(mapping, &old));
    errors.extend(object_meta::update(mapping, &old));
    errors.extend(object_meta::create(mapping, false, identity_name));
    errors.extend(references(mapping));
    reject(mapping, &errors)?;
    if mapping.resource_version() != old.resource_version() {
        let why = format!("the resource was updated to {}", old.resource_version());
        return Err(Status::conflict(GROUP, SINGULAR, mapping.name(), &why));
    }
    Ok(mapping.str_at(&["user", "name"]) == old.str_at(&["user", "name"]))
}

fn references(mapping: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match mapping.str_at(&["identity", "name"]) {
        "" => errors.push(FieldError::required("identity.name", "")),
        name if name != mapping.name() => {
            errors.push(FieldError::invalid_str("identity.name", name, "must match metadata.name"));
        }
        _ => {}
    }
    match mapping.str_at(&["user", "name"]) {
        "" => errors.push(FieldError::required("user.name", "")),
        name => {
            let why = user_name(name, false);
            if !why.is_empty() {
                errors.push(FieldError::invalid_str("user.name", name, why.join(", ")));
            }
        }
    }
    errors
}

fn reject(mapping: &Object, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(invalid(mapping.name(), errors)) }
}

fn invalid(name: &str, errors: &[FieldError]) -> Status {
    Status::invalid(GROUP, USER_IDENTITY_MAPPINGS.gvk.kind, name, errors)
}

fn missing(name: &str, field: &str, given: &str, why: &str) -> Status {
    invalid(name, &[FieldError::invalid_str(field, given, why)])
}

fn not_found(name: &str) -> Status {
    Status::not_found(GROUP, SINGULAR, name)
}

/// The object of an answer; `None` for 404.
fn found(answer: Result<Arc<Item>, Status>) -> Result<Option<Object>, Status> {
    match answer {
        Ok(item) => item.object().map(Some).map_err(Status::internal),
        Err(status) if status.is("NotFound") => Ok(None),
        Err(status) => Err(status),
    }
}

fn refers_to(identity: &Object, user: &Object) -> bool {
    identity.str_at(&["user", "name"]) == user.name() && identity.str_at(&["user", "uid"]) == user.uid()
}

fn add_identity(user: &mut Object, identity: &str) {
    let mut identities: BTreeSet<&str> = strings(user, "identities").collect();
    if identities.insert(identity) {
        let list: Value = identities.into_iter().map(Value::from).collect();
        user.0.insert("identities".to_owned(), list);
    }
}

fn remove_identity(user: &mut Object, identity: &str) {
    let mut identities: BTreeSet<&str> = strings(user, "identities").collect();
    if !identities.remove(identity) {
        return;
    }
    let list: Vec<Value> = identities.into_iter().map(Value::from).collect();
    if list.is_empty() {
        user.0.remove("identities");
    } else {
        user.0.insert("identities".to_owned(), list.into());
    }
}

fn mapping_of(user: &Object, identity: &Object) -> Result<Arc<Item>, Status> {
    let resource = &USER_IDENTITY_MAPPINGS;
    let revision = identity.resource_version().parse().map_err(Status::internal)?;
    let mut mapping = Object::new("user.openshift.io/v1", resource.gvk.kind);
    mapping.set_metadata("name", identity.name());
    mapping.set_metadata("uid", identity.uid());
    mapping.set_metadata("creationTimestamp", identity.creation_timestamp());
    let reference = |object: &Object| json!({"name": object.name(), "uid": object.uid()});
    mapping.0.insert("identity".to_owned(), reference(identity));
    mapping.0.insert("user".to_owned(), reference(user));
    Ok(Arc::new(Item::new(resource, mapping, revision)))
}
