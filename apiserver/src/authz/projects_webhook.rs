//! `POST /authorization/projects`: the authorization webhook that kube-apiserver asks about requests that OpenShift's
//! servers authorize as something else.
//!
//! - A request for one project: kube-apiserver has no namespace in `projects/NAME`; OpenShift decides it in namespace
//!   NAME. So the answer is what a SubjectAccessReview *in that namespace* says, which kube-apiserver answers from its own
//!   rules (its match condition for this webhook wants an empty namespace, so nothing goes round in circles).
//! - A review of access that may be about oneself: see [`personal_reviews`].
//!
//! Anything else gets no opinion.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use picoshift_machinery::Status;
use picoshift_machinery::body::Body;

use super::{Attributes, CachedAuthorizer, Decision, is_project, personal_reviews, webhook};
use crate::authn::memberships::Memberships;
use crate::server::respond;

/// Path of the webhook.
pub const PATH: &str = "/authorization/projects";

/// Answers one question, with the groups that the user is in counted.
pub async fn answer(
    authorizer: &CachedAuthorizer,
    memberships: &Memberships,
    body: &Bytes,
) -> Response<Body> {
    let mut review = match webhook::read(body) {
        Ok(review) => review,
        Err(status) => return respond::status(&status),
    };
    review.status = Some(match question(&review.spec) {
        None => SubjectAccessReviewStatus::default(),
        Some(attributes) => {
            let mut user = Arc::new(webhook::user(&review.spec));
            memberships.join_user(&mut user);
            said(authorizer.authorize_afresh(user, attributes).await)
        }
    });
    respond::json(StatusCode::OK, &review)
}

fn said(decision: Result<Decision, Status>) -> SubjectAccessReviewStatus {
    let nothing = SubjectAccessReviewStatus::default();
    match decision {
        Ok(Decision::Allow) => SubjectAccessReviewStatus { allowed: true, ..nothing },
        Ok(Decision::Deny { reason }) => {
            SubjectAccessReviewStatus { reason: (!reason.is_empty()).then_some(reason), ..nothing }
        }
        Err(error) => SubjectAccessReviewStatus { evaluation_error: Some(error.message), ..nothing },
    }
}

/// What to ask in place of the request; `None` when it is not ours to answer.
fn question(spec: &SubjectAccessReviewSpec) -> Option<Attributes> {
    if spec.resource_attributes.is_none() || spec.non_resource_attributes.is_some() {
        return None;
    }
    let asked = webhook::attributes(spec);
    let project =
        is_project(&asked.group, &asked.resource) && !asked.name.is_empty() && asked.namespace.is_empty();
    if project {
        return Some(Attributes { namespace: asked.name.clone(), ..asked });
    }
    personal_reviews::at_the_front(&asked)
}

#[cfg(test)]
mod tests;
