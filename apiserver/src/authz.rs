//! May this user do that? The [`Authorizer`] that the server, the resources and admission ask.

use async_trait::async_trait;
use http::StatusCode;
use picoshift_machinery::field_error::quote;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::status::Details;
use picoshift_machinery::{Status, UserInfo};

use crate::groups::oauth;

pub mod access_review;
pub mod cache;
pub mod personal_reviews;
pub mod projects_webhook;
pub mod rbac;
pub mod scopes;
pub mod webhook;

pub use access_review::KubeAccessReview;
pub use cache::CachedAuthorizer;
pub use scopes::Scopes;

/// Group of projects.
const PROJECT_GROUP: &str = "project.openshift.io";

/// Whether the named object is a project, whose namespace for authorization is its own name.
fn is_project(group: &str, resource: &str) -> bool {
    resource == "projects" && group == PROJECT_GROUP
}

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes {
    /// Verb, for example `get`.
    pub verb: String,
    /// API group; empty for core.
    pub group: String,
    /// API version; `*` where it does not matter.
    pub version: String,
    /// Plural resource; empty for paths that are no resources.
    pub resource: String,
    /// Subresource, empty for none.
    pub subresource: String,
    /// Namespace, empty for cluster scope.
    pub namespace: String,
    /// Object name, empty for all.
    pub name: String,
    /// Path, for requests that are no resources.
    pub path: String,
}

/// A project's namespace is its name, as OpenShift's request info has it.
impl From<&RequestInfo> for Attributes {
    fn from(info: &RequestInfo) -> Self {
        Self {
            verb: info.verb.clone(),
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: if is_project(&info.group, &info.resource) && !info.name.is_empty() {
                info.name.clone()
            } else {
                info.namespace.clone()
            },
            name: info.name.clone(),
            path: if info.is_resource { String::new() } else { info.path.clone() },
        }
    }
}

/// Who asks about bearer tokens for kube-apiserver.
pub const TOKEN_REVIEWER: &str = "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator";

/// Whether this is kube-apiserver asking whose a bearer token is. That is allowed without a question to it, which it could
/// not answer before it has an answer itself, and waits for nobody's turn.
#[must_use]
pub fn is_token_review(user: &UserInfo, info: &RequestInfo) -> bool {
    user.name == TOKEN_REVIEWER
        && info.is_resource
        && info.verb == "create"
        && info.group == oauth::GROUP
        && info.resource == oauth::TOKEN_REVIEWS.plural
        && info.subresource.is_empty()
        && info.namespace.is_empty()
}

/// The answer of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// No; the reason may be empty.
    Deny {
        /// What the authorizer gave as its reason.
        reason: String,
    },
}

/// Answers whether a user may do something.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Decides; never guesses.
    ///
    /// # Errors
    /// A 500 when no decision could be had.
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status>;
}

/// 403 in kube-apiserver's words: who cannot do what where, and the reason if there is one.
#[must_use]
pub fn forbidden(user: &UserInfo, attributes: &Attributes, reason: &str) -> Status {
    let Attributes { verb, group, resource, subresource, namespace, name, path, .. } = attributes;
    let who = quote(&user.name);
    let what = if resource.is_empty() {
        format!("User {who} cannot {verb} path {}", quote(path))
    } else {
        let whole =
            if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {}", quote(namespace))
        };
        format!("User {who} cannot {verb} resource {} in API group {} {place}", quote(&whole), quote(group))
    };
    let what = what.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = if reason.is_empty() { what } else { format!("{what}: {reason}") };
    if resource.is_empty() {
        let status = Status::failure(StatusCode::FORBIDDEN, "Forbidden", format!("forbidden: {why}"));
        return Status { details: Some(Box::new(Details::default())), ..status };
    }
    Status::forbidden(group, resource, name, &why)
}

#[cfg(test)]
mod tests;
