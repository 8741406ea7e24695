//! Who changes owner references must be allowed to delete the object, and to set finalizers on an owner whose
//! deletion would be blocked (`plugin/pkg/admission/gc`): else anybody could let the garbage collector delete, or
//! keep it from deleting.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kube::Client;
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use picoshift_machinery::Status;
use serde_json::Value;

use super::{Operation, Plugin, Review};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::rest::RequestContext;

/// Finds the resource of a kind by asking kube-apiserver's discovery; rare, so not kept.
pub struct KindResolver {
    client: Client,
}

impl KindResolver {
    /// Asks through `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Group, plural name and whether it is namespaced.
    async fn resolve(&self, api_version: &str, kind: &str) -> Result<(String, String, bool), Status> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &gvk).await.map_err(|_| {
            Status::bad_request(format!("no matches for kind \"{kind}\" in version \"{api_version}\""))
        })?;
        Ok((resource.group, resource.plural, capabilities.scope == Scope::Namespaced))
    }
}

/// See the module.
pub struct OwnerReferences {
    authorizer: Arc<dyn Authorizer>,
    kinds: KindResolver,
}

impl OwnerReferences {
    /// Judges by what the authorizer says.
    #[must_use]
    pub fn new(authorizer: Arc<dyn Authorizer>, kinds: KindResolver) -> Self {
        Self { authorizer, kinds }
    }

    async fn may_delete(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        let resource = review.resource;
        let attributes = Attributes {
            verb: "delete".to_owned(),
            group: resource.gvk.group.to_owned(),
            version: resource.gvk.version.to_owned(),
            resource: resource.plural.to_owned(),
            namespace: cx.info.namespace.clone(),
            name: review.object.name().to_owned(),
            ..Attributes::default()
        };
        match self.authorizer.authorize(&cx.user, &attributes).await? {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(forbidden(
                review,
                &format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>"),
            )),
        }
    }

    async fn may_block(
        &self,
        cx: &RequestContext,
        review: &Review<'_>,
        reference: &Value,
    ) -> Result<(), Status> {
        let (api_version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
        let (group, resource, namespaced) = self.kinds.resolve(api_version, kind).await.map_err(|_| {
            forbidden(
                review,
                &format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind \"{kind}\" in version \"{api_version}\""
                ),
            )
        })?;
        let attributes = Attributes {
            verb: "update".to_owned(),
            group,
            version: "*".to_owned(),
            resource,
            subresource: "finalizers".to_owned(),
            namespace: if namespaced { cx.info.namespace.clone() } else { String::new() },
            name: text(reference, "name").to_owned(),
            path: String::new(),
        };
        match self.authorizer.authorize(&cx.user, &attributes).await? {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(forbidden(
                review,
                &format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {reason}, <nil>"
                ),
            )),
        }
    }
}

#[async_trait]
impl Plugin for OwnerReferences {
    async fn validate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        if review.operation == Operation::Delete {
            return Ok(());
        }
        let new = references(review.object);
        let old = review.old.map(references).unwrap_or_default();
        if new == old {
            return Ok(());
        }
        // Who creates an object may give it owners: it is theirs to lose.
        if review.operation == Operation::Update {
            self.may_delete(cx, review).await?;
        }
        let blocked: BTreeSet<&str> = old.iter().filter(|r| blocks(r)).map(|r| text(r, "uid")).collect();
        for reference in new.iter().filter(|r| blocks(r) && !blocked.contains(text(r, "uid"))) {
            self.may_block(cx, review, reference).await?;
        }
        Ok(())
    }
}

fn references(object: &picoshift_machinery::Object) -> Vec<Value> {
    object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn blocks(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

fn text<'a>(reference: &'a Value, key: &str) -> &'a str {
    reference.get(key).and_then(Value::as_str).unwrap_or("")
}

fn forbidden(review: &Review<'_>, why: &str) -> Status {
    let resource = review.resource;
    Status::forbidden(resource.gvk.group, resource.plural, review.object.name(), why)
}
