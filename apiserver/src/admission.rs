//! What kube-apiserver does not do for requests that it only passes on: namespace lifecycle and the permission to
//! set owner references. Webhooks, policies and quota plug in here.

mod namespace_lifecycle;
mod owner_references;

use picoshift_machinery::{Object, Status};

pub use self::namespace_lifecycle::{NamespaceLifecycle, Namespaces};
pub use self::owner_references::{KindResolver, OwnerReferences};
use crate::resource::Resource;
use crate::rest::RequestContext;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A removal.
    Delete,
    /// A change.
    Update,
}

/// A write to be admitted.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// What is being done.
    pub operation: Operation,
    /// The object as it would be; on delete as it is.
    pub object: &'a Object,
    /// The object as it is; `None` on create.
    pub old: Option<&'a Object>,
    /// Of which resource.
    pub resource: &'static Resource,
}

/// The chain, in upstream's order.
pub struct Admission {
    namespace_lifecycle: NamespaceLifecycle,
    owner_references: OwnerReferences,
}

impl Admission {
    /// Puts the chain together.
    #[must_use]
    pub fn new(namespace_lifecycle: NamespaceLifecycle, owner_references: OwnerReferences) -> Self {
        Self { namespace_lifecycle, owner_references }
    }

    /// Before validation.
    ///
    /// # Errors
    /// The refusal that the client sees.
    pub async fn mutate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        self.namespace_lifecycle.admit(cx, review).await
    }

    /// After validation.
    ///
    /// # Errors
    /// The refusal that the client sees.
    pub async fn validate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        self.owner_references.admit(cx, review).await
    }
}
