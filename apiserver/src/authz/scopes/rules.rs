//! The rules that scopes stand for.

use std::sync::Arc;

use picoshift_machinery::field_error::quote;
use picoshift_machinery::scope::{RoleScope, Scope, ScopeError};

use crate::authz::rbac::Rule;

const LEGACY: &str = "";
const CORE: &str = "";
const AUTHORIZATION: &str = "authorization.openshift.io";
const OAUTH: &str = "oauth.openshift.io";

/// What every token may ask: what the server is and has.
const DISCOVERY: [&str; 18] = [
    "/version",
    "/version/*",
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/oapi",
    "/oapi/*",
    "/openapi/v2",
    "/swaggerapi",
    "/swaggerapi/*",
    "/swagger.json",
    "/swagger-2.0.0.pb-v1",
    "/osapi",
    "/osapi/",
    "/.well-known",
    "/.well-known/*",
    "/",
];

/// What a role scope without `:!` does not give: group and resource.
const ESCALATING: [(&str, &str); 16] = [
    (CORE, "secrets"),
    ("image.openshift.io", "imagestreams/secrets"),
    (OAUTH, "oauthauthorizetokens"),
    (OAUTH, "oauthaccesstokens"),
    (AUTHORIZATION, "roles"),
    (AUTHORIZATION, "rolebindings"),
    (AUTHORIZATION, "clusterroles"),
    (AUTHORIZATION, "clusterrolebindings"),
    ("network.openshift.io", "service/externalips"),
    (LEGACY, "imagestreams/secrets"),
    (LEGACY, "oauthauthorizetokens"),
    (LEGACY, "oauthaccesstokens"),
    (LEGACY, "roles"),
    (LEGACY, "rolebindings"),
    (LEGACY, "clusterroles"),
    (LEGACY, "clusterrolebindings"),
];

/// The rules that scopes come to in a namespace (empty for what has none), and what is wrong with the scopes, which the
/// others do not suffer from.
pub(super) fn of(
    scopes: &[String],
    namespace: &str,
    cluster_role: impl Fn(&str) -> Option<Arc<[Rule]>>,
) -> (Vec<Rule>, Vec<String>) {
    let mut rules = vec![Rule::of_paths(&["get"], &DISCOVERY)];
    let mut errors = Vec::new();
    for scope in scopes {
        match scope.parse::<Scope>() {
            Ok(Scope::Role(role)) if role.holds_in(namespace) => {
                // A role that is not there has no rules, which is no error.
                let known = cluster_role(&role.role);
                rules.extend(
                    known.iter().flat_map(|rules| rules.iter()).filter_map(|rule| given(&role, rule)),
                );
            }
            Ok(Scope::Role(_)) => {}
            Ok(scope) => rules.extend(of_user(&scope)),
            Err(ScopeError::Unknown) => errors.push(format!("no scope evaluator found for {}", quote(scope))),
            Err(error) => errors.push(error.to_string()),
        }
    }
    (rules, errors)
}

fn of_user(scope: &Scope) -> Vec<Rule> {
    let projects =
        || Rule::of_resources(&["list", "watch"], &["project.openshift.io", LEGACY], &["projects"], &[]);
    match scope {
        Scope::UserInfo => {
            vec![Rule::of_resources(&["get"], &["user.openshift.io", LEGACY], &["users"], &["~"])]
        }
        Scope::UserCheckAccess => vec![
            Rule::of_resources(&["create"], &["authorization.k8s.io"], &["selfsubjectaccessreviews"], &[]),
            Rule::of_resources(&["create"], &[AUTHORIZATION, LEGACY], &["selfsubjectrulesreviews"], &[]),
        ],
        Scope::UserListScopedProjects => vec![projects()],
        Scope::UserListProjects => {
            vec![projects(), Rule::of_resources(&["get"], &[CORE], &["namespaces"], &[])]
        }
        Scope::UserFull => {
            vec![Rule::of_resources(&["*"], &["*"], &["*"], &[]), Rule::of_paths(&["*"], &["*"])]
        }
        Scope::Role(_) => Vec::new(),
    }
}

/// What a role scope gives of a rule. Without `:!` nothing of one that has no bounds, and no resource by which the
/// token's holder could become more: whatever its verb, and from the whole rule, which is rather too much than too little.
fn given(scope: &RoleScope, rule: &Rule) -> Option<Rule> {
    if scope.escalating {
        return Some(rule.clone());
    }
    if rule.is_unbounded() {
        return None;
    }
    let mut rule = rule.clone();
    let groups = std::mem::take(&mut rule.api_groups);
    rule.resources.retain(|resource| {
        !ESCALATING
            .iter()
            .any(|(group, escalating)| resource == escalating && groups.iter().any(|g| g == group))
    });
    rule.api_groups = groups;
    Some(rule)
}
