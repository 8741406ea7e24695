//! delete and deletecollection of a stored resource: preconditions, finalizers, propagation
//! (`k8s.io/apiserver/pkg/registry/generic/registry.Store.Delete`).

use std::sync::Arc;

use futures::stream::{self, StreamExt};
use picoshift_machinery::status::Details;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::Registry;
use super::commit::{CommitError, Current, store_status};
use super::metadata::{self, FOREGROUND, ORPHAN};
use super::write::Attempt;
use crate::admission::{Operation, Review};
use crate::rest::options::Propagation;
use crate::rest::{DeleteOptions, Deleted, Item, Items, List, ListOptions, Preconditions, RequestContext};
use crate::store::{Key, StoreError};

/// Tries of a delete that other writes come in between of.
const DELETE_TRIES: usize = 64;
/// Deletions of a collection under way at once; they share group commits.
const AT_ONCE: usize = 64;

impl Registry {
    pub(super) async fn delete_item(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.delete_in(cx, &cx.info.namespace, name, options).await
    }

    async fn delete_in(
        &self,
        cx: &RequestContext,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let key = self.key(namespace, name);
        for _ in 0..DELETE_TRIES {
            let current = self
                .commit
                .read(&key)
                .map_err(|error| store_status(&error))?
                .ok_or_else(|| self.not_found(name))?;
            match self.delete_once(cx, &key, &current, options).await {
                Err(Attempt::Conflict) => self.commit.settled().await,
                Err(Attempt::Status(status)) => return Err(*status),
                Ok(deleted) => return Ok(deleted),
            }
        }
        Err(self.modified(name))
    }

    async fn delete_once(
        &self,
        cx: &RequestContext,
        key: &Key,
        current: &Current,
        options: &DeleteOptions,
    ) -> Result<Deleted, Attempt> {
        let resource = self.strategy.resource();
        let old = &current.stored.object;
        self.check_preconditions(old, current.record.revision, &options.preconditions)?;
        let review = Review { operation: Operation::Delete, object: old, old: Some(old), resource };
        self.admission.validate(cx, &review).await?;
        let gone = || {
            Deleted::Gone(Some(Details {
                name: old.name().to_owned(),
                group: resource.gvk.group.to_owned(),
                kind: resource.plural.to_owned(),
                uid: old.uid().to_owned(),
                ..Details::default()
            }))
        };
        // For kinds that the garbage collector does not see, nobody would take its finalizers away.
        let propagation =
            if resource.garbage_collected { options.propagation } else { Some(Propagation::Background) };
        let finalizers = finalizers_after(old, propagation);
        if finalizers.is_empty() {
            let revision = match options.dry_run {
                true => current.record.revision,
                false => self.commit.delete(key, current).await?,
            };
            if self.strategy.answers_deleted() {
                let shown = self.strategy.present(&current.stored);
                return Ok(Deleted::Object(Arc::new(Item::new(resource, shown, revision))));
            }
            return Ok(gone());
        }
        let mut object = old.clone();
        object.set_metadata("finalizers", finalizers);
        if old.deletion_timestamp().is_none() {
            object.set_metadata("deletionTimestamp", metadata::now());
            object.set_metadata("deletionGracePeriodSeconds", 0);
            if let Some(generation) = old.generation().filter(|generation| *generation > 0) {
                object.set_metadata("generation", generation + 1);
            }
        }
        if object == *old {
            let shown = self.strategy.present(&current.stored);
            return Ok(Deleted::Object(Arc::new(Item::new(resource, shown, current.record.revision))));
        }
        if options.dry_run {
            let last = self.commit.dry_run(key, Some(current), object, current.record.revision);
            return Ok(Deleted::Object(Arc::new(last)));
        }
        Ok(Deleted::Object(self.commit.write(key, Some(current), object).await?))
    }

    /// Takes away an object without a namespace whose time is over, whatever its finalizers; `is_over` is asked about it
    /// as it is then. Whether it is gone.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn expire(
        &self,
        name: &str,
        is_over: impl Fn(&Object) -> bool,
    ) -> Result<bool, StoreError> {
        let key = self.key("", name);
        for _ in 0..DELETE_TRIES {
            let Some(current) = self.commit.read(&key)? else { return Ok(true) };
            if !is_over(&current.stored.object) {
                return Ok(false);
            }
            match self.commit.delete(&key, &current).await {
                Ok(_) => return Ok(true),
                Err(CommitError::Conflict) => self.commit.settled().await,
                Err(CommitError::Store(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    pub(super) async fn delete_items(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        let found = self.list_items(cx, list).await?;
        let items: Vec<Arc<Item>> = match found.items {
            Items::Picked(items) => items,
            Items::Whole(chunks) => chunks.iter().flat_map(|chunk| chunk.items().to_vec()).collect(),
        };
        let results: Vec<Result<Deleted, Status>> = stream::iter(items.clone())
            .map(|item| async move { self.delete_in(cx, &item.namespace, &item.name, options).await })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for result in results {
            match result {
                Ok(_) => {}
                // Somebody else was faster: what the caller wanted is so.
                Err(status) if status.is("NotFound") => {}
                Err(status) => return Err(status),
            }
        }
        Ok(List { items: Items::Picked(items), ..found })
    }

    fn check_preconditions(&self, old: &Object, revision: u64, wanted: &Preconditions) -> Result<(), Status> {
        let resource = self.strategy.resource();
        let conflict =
            |why: String| Status::conflict(resource.gvk.group, resource.gvk.kind, old.name(), &why);
        if let Some(uid) = wanted.uid.as_deref().filter(|uid| *uid != old.uid()) {
            return Err(conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). \
                 The object might have been deleted and then recreated",
                old.uid()
            )));
        }
        let revision = revision.to_string();
        if let Some(version) = wanted.resource_version.as_deref().filter(|version| *version != revision) {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({revision}). The object might have been modified"
            )));
        }
        Ok(())
    }
}

/// The finalizers that a deletion leaves on the object: its own, and the garbage collector's by the policy.
fn finalizers_after(old: &Object, propagation: Option<Propagation>) -> Vec<Value> {
    let had = old.finalizers();
    let (orphan, foreground) = match propagation {
        Some(Propagation::Background) => (false, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Orphan) => (true, false),
        None => (had.contains(&ORPHAN), had.contains(&FOREGROUND)),
    };
    let mut after: Vec<Value> =
        had.iter().filter(|f| **f != ORPHAN && **f != FOREGROUND).map(|f| Value::from(*f)).collect();
    if orphan {
        after.push(ORPHAN.into());
    }
    if foreground {
        after.push(FOREGROUND.into());
    }
    after
}
