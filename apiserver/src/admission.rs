//! What kube-apiserver does not do for requests that it only passes on: namespace lifecycle and the permission to
//! set owner references. Webhooks, policies and quota plug in here.

mod namespace_lifecycle;
mod owner_references;

use async_trait::async_trait;
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

/// One step of the chain; each refuses or lets pass.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// Before validation.
    ///
    /// # Errors
    /// The refusal that the client sees.
    async fn mutate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        let _ = (cx, review);
        Ok(())
    }

    /// After validation.
    ///
    /// # Errors
    /// The refusal that the client sees.
    async fn validate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        let _ = (cx, review);
        Ok(())
    }
}

/// The chain, in upstream's order.
#[derive(Default)]
pub struct Admission {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Admission {
    /// Puts the chain together.
    #[must_use]
    pub fn new(plugins: Vec<Box<dyn Plugin>>) -> Self {
        Self { plugins }
    }

    /// Runs the steps before validation.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn mutate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            plugin.mutate(cx, review).await?;
        }
        Ok(())
    }

    /// Runs the steps after validation.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn validate(&self, cx: &RequestContext, review: &Review<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            plugin.validate(cx, review).await?;
        }
        Ok(())
    }
}
