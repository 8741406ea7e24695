//! The OpenAPI document: which definitions are kept, and what is added to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::token_review;

/// Definitions by name.
pub(crate) type Definitions = BTreeMap<String, Value>;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The served kinds and their groups.
const SERVED: &[(&str, &str, &[&str])] = &[
    (
        "com.github.openshift.api.authorization.v1.",
        "authorization.openshift.io",
        &[
            "ClusterRole",
            "ClusterRoleBinding",
            "ClusterRoleBindingList",
            "ClusterRoleList",
            "LocalResourceAccessReview",
            "LocalSubjectAccessReview",
            "ResourceAccessReview",
            "ResourceAccessReviewResponse",
            "Role",
            "RoleBinding",
            "RoleBindingList",
            "RoleList",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
            "SubjectAccessReviewResponse",
            "SubjectRulesReview",
        ],
    ),
    (
        "com.github.openshift.api.image.v1.",
        "image.openshift.io",
        &[
            "Image",
            "ImageList",
            "ImageSignature",
            "ImageStream",
            "ImageStreamImage",
            "ImageStreamImport",
            "ImageStreamLayers",
            "ImageStreamList",
            "ImageStreamMapping",
            "ImageStreamTag",
            "ImageStreamTagList",
            "ImageTag",
            "ImageTagList",
            "SecretList",
        ],
    ),
    (
        "com.github.openshift.api.oauth.v1.",
        "oauth.openshift.io",
        &[
            "OAuthAccessToken",
            "OAuthAccessTokenList",
            "OAuthAuthorizeToken",
            "OAuthAuthorizeTokenList",
            "OAuthClient",
            "OAuthClientAuthorization",
            "OAuthClientAuthorizationList",
            "OAuthClientList",
            "UserOAuthAccessToken",
            "UserOAuthAccessTokenList",
        ],
    ),
    (
        "com.github.openshift.api.project.v1.",
        "project.openshift.io",
        &["Project", "ProjectList", "ProjectRequest"],
    ),
    ("com.github.openshift.api.route.v1.", "route.openshift.io", &["Route", "RouteList"]),
    (
        "com.github.openshift.api.security.v1.",
        "security.openshift.io",
        &[
            "PodSecurityPolicyReview",
            "PodSecurityPolicySelfSubjectReview",
            "PodSecurityPolicySubjectReview",
            "RangeAllocation",
            "RangeAllocationList",
            "SecurityContextConstraints",
            "SecurityContextConstraintsList",
        ],
    ),
    (token_review::PACKAGE, "authentication.k8s.io", &["TokenReview"]),
    (
        "com.github.openshift.api.user.v1.",
        "user.openshift.io",
        &["Group", "GroupList", "Identity", "IdentityList", "User", "UserIdentityMapping", "UserList"],
    ),
];

/// What the document of every API server has.
const COMMON: [&str; 7] =
    ["APIGroup", "APIGroupList", "APIResourceList", "DeleteOptions", "Patch", "Status", "WatchEvent"];

/// Kinds that are registered in every group version.
const IN_EVERY_GROUP: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// Reads the definitions of an OpenAPI v2 document.
pub(crate) fn read(path: &Path) -> Result<Definitions> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut document: Value =
        serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_value(document["definitions"].take())
        .with_context(|| format!("{} has no definitions", path.display()))
}

/// The definitions that the served kinds need, each kind with its `x-kubernetes-group-version-kind`.
pub(crate) fn reachable(all: &Definitions) -> Result<Definitions> {
    let mut kept = Definitions::new();
    let served =
        SERVED.iter().flat_map(|(prefix, _, kinds)| kinds.iter().map(move |k| format!("{prefix}{k}")));
    let mut open: Vec<String> = COMMON.iter().map(|k| format!("{META}{k}")).chain(served).collect();
    while let Some(name) = open.pop() {
        if kept.contains_key(&name) {
            continue;
        }
        let definition = all.get(&name).with_context(|| format!("the document has no definition {name}"))?;
        references(definition, &mut open);
        kept.insert(name, definition.clone());
    }
    add_kinds(&mut kept);
    Ok(kept)
}

/// Names of the definitions that a schema refers to.
pub(crate) fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(definition_name) {
                found.push(name.to_owned());
            }
            map.values().for_each(|v| references(v, found));
        }
        Value::Array(list) => list.iter().for_each(|v| references(v, found)),
        _ => {}
    }
}

/// The name in `#/definitions/NAME`.
pub(crate) fn definition_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/definitions/")
}

/// `Route` of `com.github.openshift.api.route.v1.Route`.
pub(crate) fn short_name(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

fn add_kinds(kept: &mut Definitions) {
    let kind = |group: &str, kind: &str| json!({ "group": group, "kind": kind, "version": "v1" });
    for (prefix, group, kinds) in SERVED {
        for name in *kinds {
            set_kinds(kept, &format!("{prefix}{name}"), vec![kind(group, name)]);
        }
    }
    for name in ["APIGroup", "APIGroupList", "APIResourceList", "Status"] {
        set_kinds(kept, &format!("{META}{name}"), vec![kind("", name)]);
    }
    for name in IN_EVERY_GROUP {
        let groups = [""].into_iter().chain(SERVED.iter().map(|(_, group, _)| *group));
        set_kinds(kept, &format!("{META}{name}"), groups.map(|group| kind(group, name)).collect());
    }
}

fn set_kinds(kept: &mut Definitions, name: &str, kinds: Vec<Value>) {
    if let Some(definition) = kept.get_mut(name) {
        definition["x-kubernetes-group-version-kind"] = Value::Array(kinds);
    }
}
