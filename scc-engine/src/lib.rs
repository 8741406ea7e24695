//! SecurityContextConstraints (SCCs): which of them a pod's author and service account may use, which of those admits the
//! pod, and what that one fills in.
//!
//! In: a pod as JSON, the SCCs, the annotations of its namespace, who asks, and an answer to "may this subject `use` this
//! SCC?". Out: the pod that is admitted with a patch that leads to it, or why every SCC refuses it, in OpenShift's words.
//! Nothing here does I/O, waits or reads a clock, so the API server and the admission webhook share it.
//!
//! Behaviour: `github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints`. What it decided about some hundred
//! pods is in `fixtures/` and replayed by the tests (`hack/scc-decisions` records it).
//!
//! - [`admission`] is what a webhook calls: create, update, the check after other webhooks, exec and attach.
//! - [`provider`] applies one SCC to one pod, for reviews.
//! - [`defaults`] and [`validation`] are for the API that stores SCCs.

pub mod admission;
pub mod audit;
pub mod constraints;
pub mod defaults;
pub mod explain;
pub mod namespace;
pub mod order;
pub mod pod;
pub mod provider;
#[cfg(test)]
mod recorded_tests;
mod scan;
#[cfg(test)]
mod tests;
pub mod usable;
pub mod validation;
mod verdict;

pub use admission::{Operation, Request};
pub use constraints::Scc;
pub use explain::{Explanation, Fit, explain};
pub use namespace::Namespace;
pub use provider::Provider;
pub use usable::{Cluster, Subject, SubjectKind};
pub use verdict::{Admitted, Audit, Refusal, Verdict};

/// The API group of SCCs.
pub const GROUP: &str = "security.openshift.io";
/// The plural of SCCs.
pub const RESOURCE: &str = "securitycontextconstraints";
/// The pod's annotation that says which SCC admitted it.
pub const VALIDATED_SCC: &str = "openshift.io/scc";
/// The pod's annotation that pins the SCC.
pub const REQUIRED_SCC: &str = "openshift.io/required-scc";
/// The pod's annotation that says who may use the SCC that admitted it.
pub const SUBJECT_TYPE: &str = "security.openshift.io/validated-scc-subject-type";
/// The SCCs that must be there: without one of them a list of SCCs is not whole, and nothing is admitted.
pub const STANDARD_SCCS: [&str; 10] = [
    "anyuid",
    "hostaccess",
    "hostmount-anyuid",
    "hostnetwork",
    "hostnetwork-v2",
    "nonroot",
    "nonroot-v2",
    "privileged",
    "restricted",
    "restricted-v2",
];
