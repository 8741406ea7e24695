//! The descriptions of the resources, and their table rows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use picoshift_machinery::{GroupVersionKind, Object};
use serde_json::{Value, json};

use super::GROUP;
use crate::resource::column::{NAME, name, text};
use crate::resource::{Resource, Verb};

/// What a cell of a CustomResourceDefinition shows of null.
const NO_VALUE: &str = "<no value>";

/// `securitycontextconstraints`: the columns are those of OpenShift's CustomResourceDefinition.
pub static SECURITY_CONTEXT_CONSTRAINTS: Resource = Resource {
    gvk: kind("SecurityContextConstraints"),
    plural: picoshift_scc_engine::RESOURCE,
    singular: "securitycontextconstraints",
    short_names: &["scc"],
    columns: &[
        NAME,
        text("Priv", "Determines if a container can request to be run as privileged"),
        text("Caps", "A list of capabilities that can be requested to add to the container"),
        text("SELinux", "Strategy that will dictate what labels will be set in the SecurityContext"),
        text("RunAsUser", "Strategy that will dictate what RunAsUser is used in the SecurityContext"),
        text("FSGroup", "Strategy that will dictate what fs group is used by the SecurityContext"),
        text(
            "SupGroup",
            "Strategy that will dictate what supplemental groups are used by the SecurityContext",
        ),
        text("Priority", "Sort order of SCCs"),
        text("ReadOnlyRootFS", "Force containers to run with a read only root file system"),
        text("Volumes", "White list of allowed volume plugins"),
    ],
    garbage_collected: true,
    schema: "com.github.openshift.api.security.v1.SecurityContextConstraints",
    ..STORED
};

/// `rangeallocations`.
pub static RANGE_ALLOCATIONS: Resource = Resource {
    gvk: kind("RangeAllocation"),
    plural: "rangeallocations",
    singular: "rangeallocation",
    columns: &[
        NAME,
        name(
            "Range",
            "range is a string representing a unique label for a range of uids, \"1000000000-2000000000/10000\".",
        ),
        text(
            "Data",
            "data is a byte array representing the serialized state of a range allocation.  It is a bitmap with each bit set to one to represent a range is taken.",
        ),
    ],
    garbage_collected: true,
    schema: "com.github.openshift.api.security.v1.RangeAllocation",
    bare: true,
    ..STORED
};

/// `podsecuritypolicyreviews`: about service accounts.
pub static REVIEWS: Resource = Resource {
    gvk: kind("PodSecurityPolicyReview"),
    plural: "podsecuritypolicyreviews",
    singular: "podsecuritypolicyreview",
    schema: "com.github.openshift.api.security.v1.PodSecurityPolicyReview",
    ..REVIEW
};

/// `podsecuritypolicyselfsubjectreviews`: about the caller.
pub static SELF_SUBJECT_REVIEWS: Resource = Resource {
    gvk: kind("PodSecurityPolicySelfSubjectReview"),
    plural: "podsecuritypolicyselfsubjectreviews",
    singular: "podsecuritypolicyselfsubjectreview",
    schema: "com.github.openshift.api.security.v1.PodSecurityPolicySelfSubjectReview",
    ..REVIEW
};

/// `podsecuritypolicysubjectreviews`: about a user or groups.
pub static SUBJECT_REVIEWS: Resource = Resource {
    gvk: kind("PodSecurityPolicySubjectReview"),
    plural: "podsecuritypolicysubjectreviews",
    singular: "podsecuritypolicysubjectreview",
    schema: "com.github.openshift.api.security.v1.PodSecurityPolicySubjectReview",
    ..REVIEW
};

const STORED: Resource = Resource {
    gvk: kind(""),
    plural: "",
    singular: "",
    namespaced: false,
    verbs: Verb::ALL,
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: false,
    bare: false,
    schema: "",
};

const REVIEW: Resource = Resource { namespaced: true, verbs: &[Verb::Create], ..STORED };

const fn kind(kind: &'static str) -> GroupVersionKind {
    GroupVersionKind { group: GROUP, version: "v1", kind }
}

/// The cells of an SCC.
pub(super) fn scc_row(scc: &Object) -> Vec<Value> {
    let cell = |path: &[&str]| match scc.at(path) {
        None => Value::Null,
        Some(Value::Null) => NO_VALUE.into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    };
    vec![
        scc.name().into(),
        cell(&["allowPrivilegedContainer"]),
        cell(&["allowedCapabilities"]),
        cell(&["seLinuxContext", "type"]),
        cell(&["runAsUser", "type"]),
        cell(&["fsGroup", "type"]),
        cell(&["supplementalGroups", "type"]),
        cell(&["priority"]),
        cell(&["readOnlyRootFilesystem"]),
        cell(&["volumes"]),
    ]
}

/// The cells of a range: its data in hexadecimal digits.
pub(super) fn range_row(range: &Object) -> Vec<Value> {
    let data = STANDARD.decode(range.str_at(&["data"])).unwrap_or_default();
    let digits: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![json!(range.name()), json!(range.str_at(&["range"])), json!(format!("0x{digits}"))]
}
