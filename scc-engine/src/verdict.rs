//! What comes of a request about a pod.

use std::collections::BTreeMap;

use json_patch::Patch;
use picoshift_machinery::Status;
use picoshift_machinery::field_error::quote;
use serde_json::Value;
use thiserror::Error;

use crate::usable::SubjectKind;

/// Annotations for the audit log, as OpenShift's admission adds them.
pub type Audit = BTreeMap<String, String>;

/// A request that is not refused.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// SCCs have no say in it.
    Ignored,
    /// An SCC admits the pod.
    Admitted(Box<Admitted>),
}

/// Which SCC admits a pod, and what becomes of the pod.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The SCC.
    pub scc: String,
    /// Who may use it.
    pub subject: SubjectKind,
    /// The pod as it shall be.
    pub pod: Value,
    /// What leads there from the pod of the request; empty in a check that may not change it.
    pub patch: Patch,
    /// What the audit log gets.
    pub audit: Audit,
}

/// Why a pod is refused. Its text is the whole message of the 403.
#[derive(Clone, Debug, Error)]
#[error("pods {} is forbidden: {reason}", quote(name))]
pub struct Refusal {
    /// The pod's name, or the beginning of a name that is yet to be generated.
    pub name: String,
    /// The message without what Kubernetes puts before it.
    pub reason: String,
    /// Whether the reason is not the pod: the namespace or the SCCs are not complete. OpenShift waits up to ten seconds for
    /// them before it says so; so should the caller, and ask again.
    pub passing: bool,
    /// What the audit log gets.
    pub audit: Audit,
}

impl Refusal {
    /// The answer to a client.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::forbidden("", "pods", &self.name, &self.reason)
    }
}
