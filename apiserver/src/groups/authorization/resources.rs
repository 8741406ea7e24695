//! The descriptions of the resources.

use picoshift_machinery::GroupVersionKind;

use super::GROUP;
use crate::resource::column::{NAME, name, text};
use crate::resource::{Column, Resource, Verb};

const REVIEW: &[Verb] = &[Verb::Create];
const VIEW: &[Verb] = &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update];

const ROLE_COLUMNS: &[Column] = &[NAME];
const BINDING_COLUMNS: &[Column] = &[
    NAME,
    name("Role", "Role name"),
    text(
        "Users",
        "userNames holds all the usernames directly bound to the role. This field should only be specified when supporting legacy clients and servers. See Subjects for further details.",
    ),
    text(
        "Groups",
        "groupNames holds all the groups directly bound to the role. This field should only be specified when supporting legacy clients and servers. See Subjects for further details.",
    ),
    text("Service Accounts", "Service Account names"),
    text("Users", "Users names"),
];

const fn resource(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    namespaced: bool,
    schema: &'static str,
) -> Resource {
    Resource {
        gvk: GroupVersionKind { group: GROUP, version: "v1", kind },
        plural,
        singular,
        namespaced,
        verbs: REVIEW,
        short_names: &[],
        categories: &[],
        subresources: &[],
        columns: &[],
        field_labels: &[],
        garbage_collected: false,
        bare: false,
        schema,
    }
}

const fn view(resource: Resource, columns: &'static [Column]) -> Resource {
    Resource { verbs: VIEW, columns, ..resource }
}

/// `subjectaccessreviews`.
pub(super) static SUBJECT_ACCESS_REVIEWS: Resource = resource(
    "SubjectAccessReview",
    "subjectaccessreviews",
    "subjectaccessreview",
    false,
    "com.github.openshift.api.authorization.v1.SubjectAccessReview",
);

/// `localsubjectaccessreviews`.
pub(super) static LOCAL_SUBJECT_ACCESS_REVIEWS: Resource = resource(
    "LocalSubjectAccessReview",
    "localsubjectaccessreviews",
    "localsubjectaccessreview",
    true,
    "com.github.openshift.api.authorization.v1.LocalSubjectAccessReview",
);

/// `resourceaccessreviews`; OpenShift says this singular.
pub(super) static RESOURCE_ACCESS_REVIEWS: Resource = resource(
    "ResourceAccessReview",
    "resourceaccessreviews",
    "localresourceaccessreview",
    false,
    "com.github.openshift.api.authorization.v1.ResourceAccessReview",
);

/// `localresourceaccessreviews`.
pub(super) static LOCAL_RESOURCE_ACCESS_REVIEWS: Resource = resource(
    "LocalResourceAccessReview",
    "localresourceaccessreviews",
    "localresourceaccessreview",
    true,
    "com.github.openshift.api.authorization.v1.LocalResourceAccessReview",
);

/// `selfsubjectrulesreviews`.
pub(super) static SELF_SUBJECT_RULES_REVIEWS: Resource = resource(
    "SelfSubjectRulesReview",
    "selfsubjectrulesreviews",
    "selfsubjectrulesreview",
    true,
    "com.github.openshift.api.authorization.v1.SelfSubjectRulesReview",
);

/// `subjectrulesreviews`.
pub(super) static SUBJECT_RULES_REVIEWS: Resource = resource(
    "SubjectRulesReview",
    "subjectrulesreviews",
    "subjectrulesreview",
    true,
    "com.github.openshift.api.authorization.v1.SubjectRulesReview",
);

/// `roles`.
pub(super) static ROLES: Resource = view(
    resource("Role", "roles", "role", true, "com.github.openshift.api.authorization.v1.Role"),
    ROLE_COLUMNS,
);

/// `rolebindings`.
pub(super) static ROLE_BINDINGS: Resource = view(
    resource(
        "RoleBinding",
        "rolebindings",
        "rolebinding",
        true,
        "com.github.openshift.api.authorization.v1.RoleBinding",
    ),
    BINDING_COLUMNS,
);

/// `clusterroles`.
pub(super) static CLUSTER_ROLES: Resource = view(
    resource(
        "ClusterRole",
        "clusterroles",
        "clusterrole",
        false,
        "com.github.openshift.api.authorization.v1.ClusterRole",
    ),
    ROLE_COLUMNS,
);

/// `clusterrolebindings`.
pub(super) static CLUSTER_ROLE_BINDINGS: Resource = view(
    resource(
        "ClusterRoleBinding",
        "clusterrolebindings",
        "clusterrolebinding",
        false,
        "com.github.openshift.api.authorization.v1.ClusterRoleBinding",
    ),
    BINDING_COLUMNS,
);
