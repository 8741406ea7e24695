//! create and update of a stored resource (`k8s.io/apiserver/pkg/registry/{generic/registry,rest}`).

use std::sync::Arc;

use picoshift_machinery::field_error::FieldErrorKind;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::Value;

use super::Registry;
use super::commit::{CommitError, Current, store_status};
use super::fields;
use super::metadata;
use crate::admission::{Operation, Review};
use crate::object_meta;
use crate::owner_references::{self, Stage};
use crate::resource::Resource;
use crate::rest::query::{parse_revision, without_reason};
use crate::rest::{Item, RequestContext, Updated, Updater, WriteOptions};
use crate::store::Key;

/// Names that are tried for `generateName` before the client is told.
const NAME_TRIES: usize = 8;
/// Retries of an update that other writes come in between of.
const UPDATE_TRIES: usize = 64;

impl Registry {
    pub(super) async fn create_item(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let generated = object.name().is_empty() && !object.generate_name().is_empty();
        self.strategy.set_defaults(&mut object);
        self.track_new(&mut object, options);
        if !generated {
            return self.create_named(cx, object, None, options).await;
        }
        let resource = self.strategy.resource();
        for _ in 0..NAME_TRIES {
            let base = object.generate_name();
            let name = if resource.bare { base.to_owned() } else { metadata::generate_name(base) };
            let mut candidate = object.clone();
            candidate.set_metadata("name", name.as_str());
            match self.create_named(cx, candidate, None, options).await {
                Err(status) if status.is("AlreadyExists") => {
                    tracing::debug!(name, "a generated name is taken");
                }
                outcome => return outcome,
            }
        }
        let mut status = Status::already_exists(resource.gvk.group, resource.plural, object.generate_name());
        status.message.push_str(", the server was not able to generate a unique name for the object");
        Err(status)
    }

    async fn create_named(
        &self,
        cx: &RequestContext,
        mut object: Object,
        applied: Option<&dyn Updater>,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let resource = self.strategy.resource();
        let namespace = cx.info.namespace.as_str();
        // An apply that creates says what is to be there, not what was.
        let sent = match applied {
            Some(_) => 0,
            None => object.resource_version().parse::<u64>().unwrap_or(0),
        };
        let owners = fields::take(&mut object);
        metadata::begin(&mut object, namespace, &uuid::Uuid::new_v4().to_string(), &metadata::now());
        object.set_metadata("managedFields", owners);
        if !resource.bare {
            object.set_metadata("generation", 1);
        }
        self.admission
            .mutate(cx, &Review { operation: Operation::Create, object: &object, old: None, resource })
            .await?;
        owner_references::dedup(cx, &mut object, Stage::Admitted);
        self.strategy.prepare_create(cx, &mut object);
        let mut errors = object_meta::create(&object, resource.namespaced, self.strategy.name_rule());
        errors.extend(self.strategy.validate_create(cx, &mut object).await?);
        self.reject(&object, &errors)?;
        for warning in self.strategy.warnings(&object) {
            cx.warn(warning);
        }
        if let Some(applied) = applied {
            applied.permit_creation().await?;
        }
        self.admission
            .validate(cx, &Review { operation: Operation::Create, object: &object, old: None, resource })
            .await?;
        let name = object.name().to_owned();
        let key = self.key(namespace, &name);
        if sent != 0 && !options.dry_run {
            return Err(without_reason(
                "resourceVersion should not be set on objects to be created".to_owned(),
            ));
        }
        if let Some(item) = self.cache.get(namespace, &name) {
            return Err(self.taken(&name, Some(&item)));
        }
        if options.dry_run {
            // What the client put there stays: nothing is written that would say otherwise.
            return Ok(Arc::new(self.commit.dry_run(&key, None, object, sent)));
        }
        match self.commit.write(&key, None, object).await {
            Ok(item) => Ok(item),
            Err(CommitError::Conflict) => {
                // Who is told that it is there can read it.
                self.commit.settled().await;
                Err(self.taken(&name, self.cache.get(namespace, &name).as_deref()))
            }
            Err(CommitError::Store(error)) => Err(store_status(&error)),
        }
    }

    /// 409 for a name that is taken, and whether only for as long as its deletion takes.
    fn taken(&self, name: &str, item: Option<&Item>) -> Status {
        let resource = self.strategy.resource();
        let mut status = Status::already_exists(resource.gvk.group, resource.plural, name);
        let object = item.and_then(|item| item.object().ok());
        if object.is_some_and(|object| object.deletion_timestamp().is_some()) {
            status.message.insert_str(0, "object is being deleted: ");
        }
        status
    }

    pub(super) async fn update_item(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        let key = self.key(&cx.info.namespace, name);
        for _ in 0..UPDATE_TRIES {
            let attempt = match self.commit.read(&key).map_err(|error| store_status(&error))? {
                Some(current) => {
                    self.update_once(cx, &key, &current, updater, options).await.map(Updated::Changed)
                }
                None => self.apply_new(cx, name, updater, options).await.map(Updated::Created),
            };
            match attempt {
                Err(Attempt::Conflict) => self.commit.settled().await,
                Err(Attempt::Status(status)) => return Err(*status),
                Ok(updated) => return Ok(updated),
            }
        }
        Err(self.modified(name))
    }

    /// Creates what an apply, or for some kinds a whole object, is about and what is not there. Subresources create
    /// nothing.
    async fn apply_new(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Attempt> {
        let strip = |object: &mut Object| self.strategy.strip(object);
        let applied = if options.subresource.is_empty() { updater.apply(None, &strip) } else { None };
        let replaces = applied.is_none() && updater.replaces() && self.strategy.creates_on_update();
        let mut object = match applied {
            Some(applied) => applied?,
            None if replaces => updater.update(&Object::default())?,
            None => return Err(self.not_found(name).into()),
        };
        if replaces && !object.uid().is_empty() {
            return Err(self.another_uid(object.uid(), &Object::default(), name).into());
        }
        let version = object.resource_version();
        if !version.is_empty() {
            // It is read, though there is nothing to compare it with.
            parse_revision(version).map_err(without_reason)?;
        }
        self.strategy.set_defaults(&mut object);
        if replaces {
            self.track_new(&mut object, options);
        }
        match self.create_named(cx, object, Some(updater), options).await {
            // Somebody else made it meanwhile: it is applied to that. One of another name stays what it is.
            Err(status)
                if status.is("AlreadyExists") && self.cache.get(&cx.info.namespace, name).is_some() =>
            {
                Err(Attempt::Conflict)
            }
            outcome => Ok(outcome?),
        }
    }

    async fn update_once(
        &self,
        cx: &RequestContext,
        key: &Key,
        current: &Current,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Attempt> {
        let resource = self.strategy.resource();
        let old = &*self.strategy.folded(&current.stored);
        let mut object = self.change(current, old, updater, options)?;
        metadata::carry_over(&mut object, old);
        let review = Review { operation: Operation::Update, object: &object, old: Some(old), resource };
        self.admission.mutate(cx, &review).await?;
        owner_references::dedup(cx, &mut object, Stage::Admitted);
        self.strategy.prepare_update(cx, &options.subresource, &mut object, old);
        if self.strategy.generation_changed(&object, old) {
            object.set_metadata("generation", old.generation().unwrap_or(0) + 1);
        }
        let mut errors = object_meta::create(&object, resource.namespaced, object_meta::path_name);
        // Upstream's registry holds the metadata against the old one and every kind does so again: two causes each.
        let changed = object_meta::update(&object, old);
        errors.extend(changed.iter().cloned());
        errors.extend(changed);
        errors.extend(self.strategy.validate_update(cx, &options.subresource, &mut object, old).await?);
        self.reject(&object, &errors)?;
        // It is the store's to say.
        object.set_metadata("resourceVersion", Value::Null);
        fields::keep_times(&mut object, old);
        for warning in self.strategy.warnings(&object) {
            cx.warn(warning);
        }
        let review = Review { operation: Operation::Update, object: &object, old: Some(old), resource };
        self.admission.validate(cx, &review).await?;
        if object == *old {
            let shown = self.strategy.present(&current.stored);
            return Ok(Arc::new(Item::new(resource, shown, current.record.revision)));
        }
        let finished = object.deletion_timestamp().is_some() && object.finalizers().is_empty();
        if finished || options.dry_run {
            let last = self.commit.dry_run(key, Some(current), object, current.record.revision);
            if !options.dry_run {
                // The last finalizer is gone: this update is the deletion; the answer is the object as updated.
                self.commit.delete(key, current).await?;
            }
            return Ok(Arc::new(last));
        }
        Ok(self.commit.write(key, Some(current), object).await?)
    }

    /// The checks of `rest.BeforeUpdate` and of the optimistic lock, in the order of upstream.
    pub(super) fn check_identity(
        &self,
        object: &Object,
        current: &Object,
        replaced: bool,
    ) -> Result<(), Status> {
        let resource = self.strategy.resource();
        let (group, plural, name) = (resource.gvk.group, resource.plural, current.name());
        let uid = object.uid();
        // A patch of the uid is a change that is not allowed; a whole object with another uid is for another object.
        if replaced && !uid.is_empty() && uid != current.uid() {
            return Err(self.another_uid(uid, current, name));
        }
        match object.resource_version() {
            version if version.is_empty() || version.parse::<u64>() == Ok(0) => {
                let error = FieldError {
                    shown: Some("0".to_owned()),
                    ..FieldError::invalid(
                        "metadata.resourceVersion",
                        &Value::Null,
                        "must be specified for an update",
                    )
                };
                // The real servers name the resource here, where all other such errors name the kind.
                Err(Status::invalid(group, plural, name, &[error]))
            }
            version if version != current.resource_version() => {
                parse_revision(version).map_err(without_reason)?;
                Err(self.modified(name))
            }
            _ => Ok(()),
        }
    }

    /// 409: a whole object is of a uid that the one of its name has not.
    fn another_uid(&self, uid: &str, current: &Object, name: &str) -> Status {
        let resource = self.strategy.resource();
        let (group, plural) = (resource.gvk.group, resource.plural);
        let place = match current.namespace() {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /openshift.io/{plural}/{place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.uid()
        );
        Status::conflict(group, plural, name, &why)
    }

    fn reject(&self, object: &Object, errors: &[FieldError]) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        let Resource { gvk, bare, .. } = self.strategy.resource();
        // What kept an object from being looked at comes first.
        let (mut told, others): (Vec<_>, Vec<_>) =
            errors.iter().cloned().partition(|error| !bare && error.kind == FieldErrorKind::Internal);
        told.extend(others);
        Err(Status::invalid(gvk.group, gvk.kind, object.name(), &told))
    }
}

/// Ends of one try of an update.
pub(super) enum Attempt {
    /// Another write came first: try again.
    Conflict,
    /// The client's answer.
    Status(Box<Status>),
}

impl From<Status> for Attempt {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl From<CommitError> for Attempt {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict => Self::Conflict,
            CommitError::Store(error) => Self::Status(Box::new(store_status(&error))),
        }
    }
}
