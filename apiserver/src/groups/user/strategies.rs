//! What users, groups and identities decide for themselves as stored resources
//! (`oauth-apiserver/pkg/user/apiserver/registry/{user,group,identity}` and `…/apis/user/validation`).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::Value;

use super::names::{group_name, identity_name, provider_name, user_name};
use super::resources::{self, GROUPS, IDENTITIES, USERS, strings};
use crate::authn::memberships::Memberships;
use crate::object_meta::{self, NameRule};
use crate::registry::strategy::{Planned, Strategy};
use crate::resource::Resource;
use crate::rest::RequestContext;
use crate::store::Revision;

/// The strategy of `users`.
pub(super) struct Users;

/// The strategy of `groups`. What it stores is told to the memberships, from which requests get their groups.
pub(super) struct Groups(pub(super) Arc<Memberships>);

/// The strategy of `identities`.
pub(super) struct Identities;

/// Errors of an update as the real server finds them, own ones last: metadata is validated once more as on create.
fn updated(new: &Object, old: &Object, rule: NameRule, own: Vec<FieldError>) -> Vec<FieldError> {
    let mut errors = object_meta::update(new, old);
    errors.extend(object_meta::create(new, false, rule));
    errors.extend(own);
    errors
}

#[async_trait]
impl Strategy for Users {
    fn resource(&self) -> &'static Resource {
        &USERS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        resources::user_row(object)
    }

    fn name_rule(&self) -> NameRule {
        user_name
    }

    fn prepare_create(&self, _cx: &RequestContext, object: &mut Object) {
        clear_groups(object);
    }

    fn prepare_update(&self, _cx: &RequestContext, _subresource: &str, object: &mut Object, _old: &Object) {
        clear_groups(object);
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(validate_user(object))
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(updated(object, old, user_name, validate_user(object)))
    }
}

/// Only `users/~` shows groups; what a client sends is never kept, or users could give themselves groups.
fn clear_groups(user: &mut Object) {
    user.0.insert("groups".to_owned(), Value::Null);
}

fn validate_user(user: &Object) -> Vec<FieldError> {
    each(strings(user, "identities"), "identities", |name| identity_name(name, false))
}

fn each<'a>(
    values: impl Iterator<Item = &'a str>,
    field: &str,
    rule: impl Fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    let check = |(at, value): (usize, &str)| {
        let why = rule(value);
        (!why.is_empty()).then(|| FieldError::invalid_str(format!("{field}[{at}]"), value, why.join(", ")))
    };
    values.enumerate().filter_map(check).collect()
}

#[async_trait]
impl Strategy for Groups {
    fn resource(&self) -> &'static Resource {
        &GROUPS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        resources::group_row(object)
    }

    fn name_rule(&self) -> NameRule {
        group_name
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(validate_group(object))
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(updated(object, old, group_name, validate_group(object)))
    }

    fn committed(&self, write: Planned<'_>, _revision: Revision) {
        let old = write.old.map(|stored| &stored.object);
        let Some(name) = write.new.or(old).map(Object::name) else { return };
        let members = |group: Option<&Object>| -> BTreeSet<Arc<str>> {
            group.into_iter().flat_map(|group| strings(group, "users")).map(Arc::from).collect()
        };
        self.0.change(name, &members(old), &members(write.new));
    }
}

/// The real server calls the field `user`.
fn validate_group(group: &Object) -> Vec<FieldError> {
    each(strings(group, "users"), "user", |name| match name {
        "" => vec!["may not be empty".to_owned()],
        name => user_name(name, false),
    })
}

#[async_trait]
impl Strategy for Identities {
    fn resource(&self) -> &'static Resource {
        &IDENTITIES
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        resources::identity_row(object)
    }

    fn name_rule(&self) -> NameRule {
        identity_name
    }

    /// Whatever name a client gives: the provider and its user make the name.
    fn prepare_create(&self, _cx: &RequestContext, object: &mut Object) {
        let name = full_name(object);
        object.set_metadata("name", name);
    }

    async fn validate_create(
        &self,
        _cx: &RequestContext,
        object: &mut Object,
    ) -> Result<Vec<FieldError>, Status> {
        Ok(validate_identity(object))
    }

    async fn validate_update(
        &self,
        _cx: &RequestContext,
        _subresource: &str,
        object: &mut Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, Status> {
        let mut errors = updated(object, old, identity_name, validate_identity(object));
        for field in ["providerName", "providerUserName"] {
            let value = object.str_at(&[field]);
            if value != old.str_at(&[field]) {
                errors.push(FieldError::invalid_str(field, value, format!("may not change {field}")));
            }
        }
        Ok(errors)
    }
}

fn full_name(identity: &Object) -> String {
    format!("{}:{}", identity.str_at(&["providerName"]), identity.str_at(&["providerUserName"]))
}

fn validate_identity(identity: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (provider, name) = (identity.str_at(&["providerName"]), identity.str_at(&["providerUserName"]));
    let mut check = |field: &str, value: &str, why: Vec<String>| {
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !why.is_empty() {
            errors.push(FieldError::invalid_str(field, value, why.join(", ")));
        }
    };
    check("providerName", provider, provider_name(provider));
    check("providerUserName", name, user_name(name, false));
    let expected = full_name(identity);
    if !provider.is_empty() && !name.is_empty() && identity.name() != expected {
        let why = format!("must be {expected}");
        errors.push(FieldError::invalid_str("metadata.name", identity.name(), why));
    }
    let (user, uid) = (identity.str_at(&["user", "name"]), identity.str_at(&["user", "uid"]));
    let why = user_name(user, false);
    if !why.is_empty() {
        errors.push(FieldError::invalid_str("user.name", user, why.join(", ")));
    }
    if user.is_empty() && !uid.is_empty() {
        errors.push(FieldError::required("user.username", "username is required when uid is provided"));
    }
    if !user.is_empty() && uid.is_empty() {
        errors.push(FieldError::required("user.uid", "uid is required when username is provided"));
    }
    errors
}
