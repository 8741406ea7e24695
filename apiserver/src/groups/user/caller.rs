//! `users`, with `users/~`: who the caller is (`oauth-apiserver/pkg/user/apiserver/registry/user/etcd`).
//!
//! In: the identity of the request. Out: the stored user with the request's groups and uid, or a virtual one where no
//! such user is stored: for service accounts, certificates, kube:admin. It costs one look into memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::user_info::ANONYMOUS;
use picoshift_machinery::{FieldError, Object, Status, UserInfo};
use serde_json::Value;

use super::GROUP;
use super::names::{BOOTSTRAP_USER, CALLER, user_name};
use super::resources::USERS;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, List, ListOptions, RequestContext, Storage, Updated, Updater,
    Watch, WriteOptions,
};

/// The storage of `users`: a registry, but for the caller.
pub(super) struct UsersAndCaller(pub(super) Arc<Registry>);

impl UsersAndCaller {
    async fn caller(&self, cx: &RequestContext, options: &GetOptions) -> Result<Arc<Item>, Status> {
        let user = &*cx.user;
        if user.name.is_empty() || user.name == ANONYMOUS {
            return Err(Status::forbidden(GROUP, "user", CALLER, "requests to ~ must be authenticated"));
        }
        // A name that cannot be stored is not looked for.
        if !user_name(&user.name, false).is_empty() {
            return Ok(virtual_user(user));
        }
        match self.0.get(cx, &user.name, options).await {
            Ok(item) => stored_user(&item, user),
            Err(status) if status.is("NotFound") => Ok(virtual_user(user)),
            Err(status) => Err(Status::internal(status.message)),
        }
    }
}

fn virtual_user(user: &UserInfo) -> Arc<Item> {
    let mut object = Object::new("user.openshift.io/v1", USERS.gvk.kind);
    object.set_metadata("name", user.name.as_str());
    show(&mut object, user);
    Arc::new(Item::new(&USERS, object, 0))
}

fn stored_user(item: &Item, user: &UserInfo) -> Result<Arc<Item>, Status> {
    let mut object = item.object().map_err(Status::internal)?;
    show(&mut object, user);
    Ok(Arc::new(Item::new(&USERS, object, item.revision)))
}

/// Puts the request's groups, sorted and each once, and its uid, if it has one, into the object.
fn show(object: &mut Object, user: &UserInfo) {
    if !user.uid.is_empty() {
        object.set_metadata("uid", user.uid.as_str());
    }
    let groups: BTreeSet<&str> = user.groups.iter().map(String::as_str).collect();
    object.0.insert("groups".to_owned(), groups.into_iter().map(Value::from).collect());
}

#[async_trait]
impl Storage for UsersAndCaller {
    fn resource(&self) -> &'static Resource {
        self.0.resource()
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        self.0.row(object)
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        if name == CALLER {
            return self.caller(cx, options).await;
        }
        let why = user_name(name, false);
        if name != BOOTSTRAP_USER && !why.is_empty() {
            let error = FieldError::invalid_str("metadata.name", name, why.join(", "));
            return Err(Status::invalid(GROUP, USERS.gvk.kind, name, &[error]));
        }
        self.0.get(cx, name, options).await
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        self.0.list(cx, options).await
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        self.0.watch(cx, options).await
    }

    async fn create(
        &self,
        cx: &RequestContext,
        object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        self.0.create(cx, object, options).await
    }

    async fn update(
        &self,
        cx: &RequestContext,
        name: &str,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Updated, Status> {
        self.0.update(cx, name, updater, options).await
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.0.delete(cx, name, options).await
    }

    async fn delete_collection(
        &self,
        cx: &RequestContext,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<List, Status> {
        self.0.delete_collection(cx, options, list).await
    }
}
