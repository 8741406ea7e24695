//! SubjectAccessReviews at kube-apiserver. The client limits nothing by itself; at most so many reviews run at a time,
//! each within its time.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use picoshift_machinery::{Status, UserInfo};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Attributes, Authorizer, Decision};

/// Time that kube-apiserver has.
const REVIEW_TIME: Duration = Duration::from_secs(10);
/// Reviews at a time.
const REVIEWS: usize = 128;

/// Asks kube-apiserver, every time.
pub struct KubeAccessReview {
    reviews: Api<SubjectAccessReview>,
    permits: Semaphore,
}

impl KubeAccessReview {
    /// Asks with `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { reviews: Api::all(client), permits: Semaphore::new(REVIEWS) }
    }
}

#[async_trait]
impl Authorizer for KubeAccessReview {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status> {
        let question = SubjectAccessReview { spec: spec(user, attributes), ..SubjectAccessReview::default() };
        let ask = async {
            let _permit = self.permits.acquire().await;
            self.reviews.create(&PostParams::default(), &question).await
        };
        let answer = timeout(REVIEW_TIME, ask)
            .await
            .map_err(|_| Status::internal("no answer to the SubjectAccessReview in time"))?
            .map_err(Status::internal)?;
        let status = answer.status.unwrap_or_default();
        if status.allowed {
            return Ok(Decision::Allow);
        }
        Ok(Decision::Deny { reason: status.reason.unwrap_or_default() })
    }
}

/// The question as kube-apiserver takes it.
pub(crate) fn spec(user: &UserInfo, attributes: &Attributes) -> SubjectAccessReviewSpec {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let (resource, path) = if attributes.resource.is_empty() {
        let path = NonResourceAttributes { path: some(&attributes.path), verb: some(&attributes.verb) };
        (None, Some(path))
    } else {
        let resource = ResourceAttributes {
            verb: some(&attributes.verb),
            group: some(&attributes.group),
            version: some(&attributes.version),
            resource: some(&attributes.resource),
            subresource: some(&attributes.subresource),
            namespace: some(&attributes.namespace),
            name: some(&attributes.name),
            ..ResourceAttributes::default()
        };
        (Some(resource), None)
    };
    SubjectAccessReviewSpec {
        user: some(&user.name),
        uid: some(&user.uid),
        groups: (!user.groups.is_empty()).then(|| user.groups.clone()),
        extra: (!user.extra.is_empty()).then(|| user.extra.clone().into_iter().collect()),
        resource_attributes: resource,
        non_resource_attributes: path,
    }
}
