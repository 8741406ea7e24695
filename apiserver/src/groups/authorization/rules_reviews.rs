//! `selfsubjectrulesreviews` and `subjectrulesreviews`: what can the caller, or somebody, do in a namespace? Read from RBAC
//! and cut to the scopes.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::user_info::SCOPES_EXTRA;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};

use super::resource_reviews::ready;
use super::{action, answer, convert, resources};
use crate::authz::Scopes;
use crate::authz::rbac::{Rbac, compacted};
use crate::authz::scopes::aggregate;
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// Storage of one of the resources.
pub(super) struct RulesReviews {
    pub(super) resource: &'static Resource,
    pub(super) rbac: Arc<Rbac>,
    pub(super) scopes: Scopes,
}

#[async_trait]
impl Storage for RulesReviews {
    fn resource(&self) -> &'static Resource {
        self.resource
    }

    fn ready(&self) -> Result<(), Status> {
        ready(&self.rbac)
    }

    async fn create(
        &self,
        cx: &RequestContext,
        review: Object,
        _options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let of_caller = std::ptr::eq(self.resource, &raw const resources::SELF_SUBJECT_RULES_REVIEWS);
        let user = if of_caller { caller(cx, &review) } else { somebody(&review) };
        let status = self.status(&user, &cx.info.namespace);
        let mut response = Object::new(&self.resource.gvk.api_version(), self.resource.gvk.kind);
        response.0.insert("metadata".to_owned(), json!({}));
        // The question does not come back.
        let spec = if of_caller {
            json!({"scopes": null})
        } else {
            json!({"user": "", "groups": null, "scopes": null})
        };
        response.0.insert("spec".to_owned(), spec);
        response.0.insert("status".to_owned(), status);
        Ok(answer(self.resource, response))
    }
}

impl RulesReviews {
    fn status(&self, user: &UserInfo, namespace: &str) -> Value {
        let (mut rules, mut errors) = self.rbac.rules_for(user, namespace);
        // Each group of errors is one, as upstream's.
        errors = aggregate(&errors).into_iter().collect();
        if !user.scopes().is_empty() {
            let (limits, wrong) = self.scopes.rules(user.scopes(), namespace);
            rules.retain(|rule| limits.iter().any(|limit| limit.covers(rule)));
            errors.extend(aggregate(&wrong));
        }
        let rules: Vec<Value> = compacted(rules).iter().map(convert::rule).collect();
        let mut status = json!({ "rules": rules });
        if let Some(error) = aggregate(&errors) {
            status["evaluationError"] = error.into();
        }
        status
    }
}

/// The caller, with the scopes that the review names: none named are those of the request, an empty list is no limit.
fn caller(cx: &RequestContext, review: &Object) -> UserInfo {
    let mut user = (*cx.user).clone();
    if let Some(scopes) = action::texts(review, &["spec", "scopes"]) {
        user.extra.clear();
        if !scopes.is_empty() {
            user.extra.insert(SCOPES_EXTRA.to_owned(), scopes);
        }
    }
    user
}

fn somebody(review: &Object) -> UserInfo {
    let mut user = UserInfo {
        name: review.str_at(&["spec", "user"]).to_owned(),
        groups: action::texts(review, &["spec", "groups"]).unwrap_or_default(),
        ..UserInfo::default()
    };
    let scopes = action::texts(review, &["spec", "scopes"]).unwrap_or_default();
    if !scopes.is_empty() {
        user.extra.insert(SCOPES_EXTRA.to_owned(), scopes);
    }
    user
}
