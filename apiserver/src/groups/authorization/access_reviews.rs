//! `subjectaccessreviews` and `localsubjectaccessreviews`: may somebody, or the caller, do something?
//!
//! kube-apiserver answers, from all its authorizers. A review about oneself needs no more than the permission to create
//! selfsubjectaccessreviews; see [`personal_reviews`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use picoshift_machinery::user_info::SCOPES_EXTRA;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::json;
use tokio::time::timeout;

use super::{action, answer};
use crate::authz::{Attributes, Authorizer, Decision, Scopes, access_review, forbidden, personal_reviews};
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// Time that kube-apiserver has.
const REVIEW_TIME: Duration = Duration::from_secs(10);

/// Asks for both resources.
pub(super) struct Reviewer {
    reviews: Api<SubjectAccessReview>,
    scopes: Scopes,
    authorizer: Arc<dyn Authorizer>,
}

impl Reviewer {
    pub(super) fn new(client: Client, scopes: Scopes, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { reviews: Api::all(client), scopes, authorizer }
    }

    /// Whether somebody may do something, and why; asked afresh.
    async fn review(&self, user: &UserInfo, asked: &Attributes) -> SubjectAccessReviewStatus {
        let nothing = SubjectAccessReviewStatus::default();
        match self.scopes.prevent(user.scopes(), asked) {
            Ok(None) => {}
            Ok(reason) => return SubjectAccessReviewStatus { reason, ..nothing },
            Err(error) => {
                return SubjectAccessReviewStatus { evaluation_error: Some(error.message), ..nothing };
            }
        }
        let question =
            SubjectAccessReview { spec: access_review::spec(user, asked), ..SubjectAccessReview::default() };
        let answer = timeout(REVIEW_TIME, self.reviews.create(&PostParams::default(), &question)).await;
        let error = match answer {
            Ok(Ok(review)) => return review.status.unwrap_or_default(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer to the SubjectAccessReview in time".to_owned(),
        };
        SubjectAccessReviewStatus { evaluation_error: Some(error), ..nothing }
    }

    /// Whether the caller may make a request about others. It came this far for whoever may review his own access.
    async fn permit_request(&self, cx: &RequestContext) -> Result<(), Status> {
        let request = personal_reviews::of_others(&cx.info.resource, &cx.info.namespace);
        match self.authorizer.authorize(&cx.user, &request).await? {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(forbidden(&cx.user, &request, &reason)),
        }
    }

    /// Whether the caller may ask about a namespace, or with an empty one about the cluster.
    async fn permit_question(&self, user: &UserInfo, personal: bool, namespace: &str) -> Result<(), Status> {
        let of_others = || personal_reviews::of_others("localsubjectaccessreviews", namespace);
        let asked = if personal {
            personal_reviews::personal(namespace)
        } else {
            // Of the legacy group: OpenShift's roles name both.
            Attributes { group: String::new(), ..of_others() }
        };
        action::permit(&*self.authorizer, user, &asked).await
    }
}

/// Storage of one of the resources.
pub(super) struct AccessReviews {
    pub(super) resource: &'static Resource,
    pub(super) reviewer: Arc<Reviewer>,
}

#[async_trait]
impl Storage for AccessReviews {
    fn resource(&self) -> &'static Resource {
        self.resource
    }

    async fn create(
        &self,
        cx: &RequestContext,
        review: Object,
        _options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let local = self.resource.namespaced;
        let groups = action::texts(&review, &["groups"]).unwrap_or_default();
        let personal = review.str_at(&["user"]).is_empty() && groups.is_empty();
        if !personal {
            self.reviewer.permit_request(cx).await?;
        }
        action::check(&review, local)?;
        let namespace = action::namespace(&review, local, &cx.info.namespace)?;
        self.reviewer.permit_question(&cx.user, personal, &namespace).await?;
        let user = subject(cx, &review, personal, groups);
        let asked = action::attributes(&review, namespace.clone());
        let status = self.reviewer.review(&user, &asked).await;
        let mut response = Object::new(&self.resource.gvk.api_version(), "SubjectAccessReviewResponse");
        response.0.insert("allowed".to_owned(), json!(status.allowed));
        for (field, text) in [
            ("namespace", Some(namespace)),
            ("reason", status.reason),
            ("evaluationError", status.evaluation_error),
        ] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                response.0.insert(field.to_owned(), text.into());
            }
        }
        Ok(answer(self.resource, response))
    }
}

/// Whom a review is about. Scopes that it names count; none named are the caller's own, or for another no limit.
fn subject(cx: &RequestContext, review: &Object, personal: bool, groups: Vec<String>) -> UserInfo {
    let mut user = if personal {
        (*cx.user).clone()
    } else {
        let groups: BTreeSet<String> = groups.into_iter().collect();
        UserInfo {
            name: review.str_at(&["user"]).to_owned(),
            groups: groups.into_iter().collect(),
            ..UserInfo::default()
        }
    };
    match action::texts(review, &["scopes"]) {
        None => {}
        Some(scopes) if scopes.is_empty() => {
            user.extra.remove(SCOPES_EXTRA);
        }
        Some(scopes) => {
            user.extra.insert(SCOPES_EXTRA.to_owned(), scopes);
        }
    }
    user
}
