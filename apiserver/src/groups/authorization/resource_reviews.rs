//! `resourceaccessreviews` and `localresourceaccessreviews`: who can do something? Read from RBAC, which other authorizers
//! are not part of, as upstream; members of `system:masters` can everything.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status};
use serde_json::json;

use super::{action, answer};
use crate::authz::rbac::Rbac;
use crate::authz::scopes::aggregate;
use crate::authz::{Attributes, Authorizer, personal_reviews};
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// Storage of one of the resources.
pub(super) struct ResourceReviews {
    pub(super) resource: &'static Resource,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) rbac: Arc<Rbac>,
}

#[async_trait]
impl Storage for ResourceReviews {
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
        let local = self.resource.namespaced;
        action::check(&review, local)?;
        let namespace = action::namespace(&review, local, &cx.info.namespace)?;
        let request = personal_reviews::of_others("localresourceaccessreviews", &namespace);
        // Of the legacy group: OpenShift's roles name both.
        let request = Attributes { group: String::new(), ..request };
        action::permit(&*self.authorizer, &cx.user, &request).await?;
        let (found, errors) = self.rbac.who_can(&action::attributes(&review, namespace.clone()));
        let mut response = Object::new(&self.resource.gvk.api_version(), "ResourceAccessReviewResponse");
        if !namespace.is_empty() {
            response.0.insert("namespace".to_owned(), namespace.into());
        }
        response.0.insert("users".to_owned(), json!(found.users));
        response.0.insert("groups".to_owned(), json!(found.groups));
        // So it is spelt.
        response.0.insert("evalutionError".to_owned(), aggregate(&errors).unwrap_or_default().into());
        Ok(answer(self.resource, response))
    }
}

/// Whether RBAC was read.
///
/// # Errors
/// 503 until then.
pub(super) fn ready(rbac: &Rbac) -> Result<(), Status> {
    if rbac.is_synced() {
        return Ok(());
    }
    let mut status = Status::unavailable("reviews are not ready: waiting for RBAC");
    status.details.get_or_insert_default().retry_after_seconds = 1;
    Err(status)
}
