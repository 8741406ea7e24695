//! `POST /authorization/scopes`: the authorization webhook that kube-apiserver asks, before all its other authorizers,
//! about callers who carry token scopes. It denies what the scopes prevent, and has no opinion about anything else.
//! kube-apiserver denies when no answer comes.

use bytes::Bytes;
use http::{Response, StatusCode};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewStatus;
use picoshift_machinery::body::Body;

use super::Scopes;
use crate::authz::{is_project, webhook};
use crate::server::respond;

/// Path of the webhook.
pub const PATH: &str = "/authorization/scopes";

/// Answers one question.
#[must_use]
pub fn answer(scopes: &Scopes, body: &Bytes) -> Response<Body> {
    let mut review = match webhook::read(body) {
        Ok(review) => review,
        Err(status) => return respond::status(&status),
    };
    let mut asked = webhook::attributes(&review.spec);
    if is_project(&asked.group, &asked.resource) && asked.namespace.is_empty() {
        asked.namespace.clone_from(&asked.name);
    }
    // Whoever asks about a resource without a name for it does not ask about a path.
    if review.spec.resource_attributes.is_some() && asked.resource.is_empty() {
        review.status = Some(denied("no resource is named".to_owned()));
        return respond::json(StatusCode::OK, &review);
    }
    let user = webhook::user(&review.spec);
    review.status = Some(match scopes.prevent(user.scopes(), &asked) {
        Ok(None) => SubjectAccessReviewStatus::default(),
        Ok(Some(reason)) => denied(reason),
        Err(status) => return respond::status(&status),
    });
    respond::json(StatusCode::OK, &review)
}

fn denied(reason: String) -> SubjectAccessReviewStatus {
    SubjectAccessReviewStatus {
        denied: Some(true),
        reason: Some(reason),
        ..SubjectAccessReviewStatus::default()
    }
}
