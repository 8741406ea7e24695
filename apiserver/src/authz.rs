//! May this user do that? The [`Authorizer`] that the server, the resources and admission ask.

use async_trait::async_trait;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Status, UserInfo};

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

impl From<&RequestInfo> for Attributes {
    fn from(info: &RequestInfo) -> Self {
        Self {
            verb: info.verb.clone(),
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            path: info.path.clone(),
        }
    }
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
