//! `POST /authorization/projects`: the authorization webhook that kube-apiserver asks about requests for one project.
//!
//! kube-apiserver has no namespace in `projects/NAME`; OpenShift decides it in namespace NAME. So the answer is what a
//! SubjectAccessReview *in that namespace* says, which kube-apiserver answers from its own rules (its match condition
//! for this webhook wants an empty namespace, so nothing goes round in circles). Anything else gets no opinion.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use k8s_openapi::api::authorization::v1::{
    SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use picoshift_machinery::body::Body;
use picoshift_machinery::{Status, UserInfo};

use super::{Attributes, CachedAuthorizer, Decision, forbidden, is_project};
use crate::authn::memberships::Memberships;
use crate::authn::{Identity, Method};
use crate::server::respond;

/// Path of the webhook.
pub const PATH: &str = "/authorization/projects";
/// The only client: common name of a certificate from the client authority.
pub const CLIENT: &str = "system:picoshift:authorization-webhook";
/// Longest question.
pub const MAX_BODY: usize = 1024 * 1024;

/// Whether a caller may ask at all. By certificate on this very connection, never by headers or tokens.
///
/// # Errors
/// 403 for everybody else.
pub fn admit(caller: &Identity, verb: &str) -> Result<(), Status> {
    if caller.method == Method::ClientCertificate && caller.user.name == CLIENT {
        return Ok(());
    }
    let path = Attributes { verb: verb.to_owned(), path: PATH.to_owned(), ..Attributes::default() };
    Err(forbidden(&caller.user, &path, ""))
}

/// Answers one question, with the groups that the user is in counted.
pub async fn answer(
    authorizer: &CachedAuthorizer,
    memberships: &Memberships,
    body: &Bytes,
) -> Response<Body> {
    let mut review = match serde_json::from_slice::<SubjectAccessReview>(body) {
        Ok(review) => review,
        Err(error) => {
            return respond::status(&Status::bad_request(format!("not a SubjectAccessReview: {error}")));
        }
    };
    review.status = Some(match question(&review.spec) {
        None => SubjectAccessReviewStatus::default(),
        Some((user, attributes)) => {
            let mut user = Arc::new(user);
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

/// The question to ask in the project's namespace; `None` when it is not ours to answer.
fn question(spec: &SubjectAccessReviewSpec) -> Option<(UserInfo, Attributes)> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let asked = spec.resource_attributes.as_ref()?;
    let (group, resource, name) = (text(&asked.group), text(&asked.resource), text(&asked.name));
    let ours = is_project(&group, &resource) && !name.is_empty() && text(&asked.namespace).is_empty();
    if !ours || spec.non_resource_attributes.is_some() {
        return None;
    }
    let user = UserInfo {
        name: text(&spec.user),
        uid: text(&spec.uid),
        groups: spec.groups.clone().unwrap_or_default(),
        extra: spec.extra.clone().unwrap_or_default().into_iter().collect(),
    };
    let attributes = Attributes {
        verb: text(&asked.verb),
        group,
        version: text(&asked.version),
        resource,
        subresource: text(&asked.subresource),
        namespace: name.clone(),
        name,
        path: String::new(),
    };
    Some((user, attributes))
}

#[cfg(test)]
mod tests;
