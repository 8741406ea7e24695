//! `authorization.openshift.io/v1`: reviews of access, and RBAC's objects in OpenShift's older form.
//!
//! In: requests. Out: nothing is stored. Whether somebody may do something is asked of kube-apiserver; who can, and what
//! somebody can, is read from RBAC; roles and bindings are read and written at kube-apiserver in the caller's own name.
//!
//! Behaviour: `openshift-apiserver/pkg/authorization`. `rolebindingrestrictions` is not there yet.

mod access_reviews;
mod action;
mod convert;
mod printing;
mod rbac_api;
mod resource_reviews;
mod resources;
mod rules_reviews;
#[cfg(test)]
mod tests;
mod views;

use std::sync::Arc;

use kube::Client;
use picoshift_machinery::Object;

use self::access_reviews::{AccessReviews, Reviewer};
use self::rbac_api::RbacApi;
use self::resource_reviews::ResourceReviews;
use self::rules_reviews::RulesReviews;
use self::views::{View, ViewedKind};
use crate::authz::rbac::Rbac;
use crate::authz::{Authorizer, Scopes};
use crate::resource::Resource;
use crate::rest::{Item, Storage};

/// The API group.
pub const GROUP: &str = crate::authz::personal_reviews::GROUP;

/// The group's resources. `client` is of kube-apiserver, under the server's own identity, which may impersonate.
#[must_use]
pub fn start(client: &Client, authorizer: &Arc<dyn Authorizer>, rbac: &Arc<Rbac>) -> Vec<Arc<dyn Storage>> {
    let scopes = Scopes::new(Arc::clone(rbac));
    let reviewer = Arc::new(Reviewer::new(client.clone(), scopes.clone(), Arc::clone(authorizer)));
    let access = |resource| Arc::new(AccessReviews { resource, reviewer: Arc::clone(&reviewer) });
    let who = |resource| {
        Arc::new(ResourceReviews { resource, authorizer: Arc::clone(authorizer), rbac: Arc::clone(rbac) })
    };
    let what = |resource| Arc::new(RulesReviews { resource, rbac: Arc::clone(rbac), scopes: scopes.clone() });
    let api = RbacApi::new(client.clone());
    let view = |kind| Arc::new(View { kind, api: api.clone() });
    vec![
        access(&resources::SUBJECT_ACCESS_REVIEWS),
        access(&resources::LOCAL_SUBJECT_ACCESS_REVIEWS),
        who(&resources::RESOURCE_ACCESS_REVIEWS),
        who(&resources::LOCAL_RESOURCE_ACCESS_REVIEWS),
        what(&resources::SELF_SUBJECT_RULES_REVIEWS),
        what(&resources::SUBJECT_RULES_REVIEWS),
        view(ViewedKind::Role),
        view(ViewedKind::RoleBinding),
        view(ViewedKind::ClusterRole),
        view(ViewedKind::ClusterRoleBinding),
    ]
}

/// What a review answers: an object that is not stored and has, where its kind has none, no metadata.
fn answer(resource: &Resource, object: Object) -> Arc<Item> {
    let bytes = object.to_bytes();
    let mut item = Item::new(resource, object, 0);
    item.bytes = bytes;
    Arc::new(item)
}
