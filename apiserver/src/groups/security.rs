//! `security.openshift.io/v1`: SecurityContextConstraints, ranges of ids that are given to namespaces, and reviews: which SCC
//! would admit a pod?
//!
//! In: requests. Out: two stored resources; reviews are answered by the engine that judges pods too (`picoshift-scc-engine`).
//!
//! Behaviour: `openshift-apiserver/pkg/security`. SCCs are a CustomResourceDefinition on OpenShift, which its patched
//! aggregator puts into the group; here, where a group has one server, they are stored like the rest, and show the
//! definition's columns, defaults and errors.

mod bodies;
mod columns;
mod reviewer;
mod reviews;
mod strategies;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;

pub use self::columns::{
    RANGE_ALLOCATIONS, REVIEWS, SECURITY_CONTEXT_CONSTRAINTS, SELF_SUBJECT_REVIEWS, SUBJECT_REVIEWS,
};
use self::reviewer::Reviewer;
pub use self::reviewer::{Facts, KubeFacts};
use self::reviews::{Asks, Reviews};
use self::strategies::{RangeAllocations, SecurityContextConstraints, StoredSccs};
use crate::admission::Admission;
use crate::authz::{Authorizer, KubeAccessReview};
use crate::registry::{Registry, Strategy};
use crate::rest::Storage;
use crate::store::{Engine, StoreError};

/// The API group.
pub const GROUP: &str = picoshift_scc_engine::GROUP;

/// Loads the group's resources from the store. `client` is of kube-apiserver, under the server's own identity; it is asked
/// afresh for every review, so that a role that was given a moment ago counts.
///
/// # Errors
/// The store's.
pub async fn start(
    client: Client,
    engine: &Arc<dyn Engine>,
    admission: &Arc<Admission>,
) -> Result<Vec<Arc<dyn Storage>>, StoreError> {
    let authorizer: Arc<dyn Authorizer> = Arc::new(KubeAccessReview::new(client.clone()));
    storages(Arc::new(KubeFacts::new(client)), engine, admission, &authorizer).await
}

async fn storages(
    facts: Arc<dyn Facts>,
    engine: &Arc<dyn Engine>,
    admission: &Arc<Admission>,
    authorizer: &Arc<dyn Authorizer>,
) -> Result<Vec<Arc<dyn Storage>>, StoreError> {
    let registry =
        |strategy: Arc<dyn Strategy>| Registry::start(Arc::clone(engine), strategy, Arc::clone(admission));
    let stored = Arc::new(StoredSccs::default());
    let sccs = registry(Arc::new(SecurityContextConstraints(Arc::clone(&stored)))).await?;
    let ranges = registry(Arc::new(RangeAllocations)).await?;
    let reviewer = Arc::new(Reviewer { sccs: stored, authorizer: Arc::clone(authorizer), facts });
    let reviews = |resource, asks| {
        Arc::new(Reviews { resource, asks, reviewer: Arc::clone(&reviewer) }) as Arc<dyn Storage>
    };
    Ok(vec![
        reviews(&REVIEWS, Asks::ServiceAccounts),
        reviews(&SELF_SUBJECT_REVIEWS, Asks::Caller),
        reviews(&SUBJECT_REVIEWS, Asks::Subject),
        ranges,
        sccs,
    ])
}
