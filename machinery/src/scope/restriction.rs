//! Which scopes an OAuthClient may ask for: its `scopeRestrictions`, with the texts of
//! `library-go/pkg/authorization/scopemetadata`.

use serde::Deserialize;

use super::{ALL_NAMESPACES, Scope, ScopeError, is_role};

/// Any ClusterRole, in a restriction.
const ALL_ROLES: &str = "*";

/// One entry of `scopeRestrictions`: scopes by name, or role scopes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Restriction {
    /// Scopes that are allowed as they stand here.
    pub literals: Vec<String>,
    /// Role scopes that are allowed.
    pub cluster_role: Option<RoleRestriction>,
}

/// Which role scopes are allowed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRestriction {
    /// ClusterRoles, `*` for any.
    pub role_names: Vec<String>,
    /// Namespaces, `*` for any.
    pub namespaces: Vec<String>,
    /// Whether scopes that end in `:!` are allowed.
    pub allow_escalation: bool,
}

/// Whether `client` may ask for `scopes`.
///
/// # Errors
/// Why not, for a person: one reason, or several in brackets. A client without restrictions may ask for every scope, but
/// never for none.
pub fn validate<S: AsRef<str>>(
    client: &str,
    restrictions: &[Restriction],
    scopes: &[S],
) -> Result<(), String> {
    if scopes.is_empty() {
        return Err(format!("{client} may not request unscoped tokens"));
    }
    if restrictions.is_empty() {
        return Ok(());
    }
    let mut reasons = Vec::new();
    for scope in scopes {
        reasons.extend(refusals(restrictions, scope.as_ref()));
    }
    match aggregate(reasons) {
        None => Ok(()),
        Some(reason) => Err(reason),
    }
}

/// Why no restriction has this scope; empty when one has.
fn refusals(restrictions: &[Restriction], scope: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    for restriction in restrictions {
        if !restriction.literals.is_empty() {
            if restriction.literals.iter().any(|literal| literal == scope) {
                return Vec::new();
            }
            reasons.push(format!("{scope} not found in [{}]", restriction.literals.join(" ")));
        } else if let Some(role) = restriction.cluster_role.as_ref().filter(|_| is_role(scope)) {
            match role.refusal(scope) {
                None => return Vec::new(),
                Some(reason) => reasons.push(reason),
            }
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("{scope} did not match any scope restriction"));
    }
    reasons
}

impl RoleRestriction {
    fn refusal(&self, scope: &str) -> Option<String> {
        let parsed = match scope.parse() {
            Ok(Scope::Role(role)) => role,
            Ok(_) => return Some(ScopeError::BadFormat(scope.to_owned()).to_string()),
            Err(error) => return Some(error.to_string()),
        };
        let has =
            |list: &[String], all: &str, name: &str| list.iter().any(|entry| entry == all || entry == name);
        if !has(&self.role_names, ALL_ROLES, &parsed.role) {
            return Some(format!("{scope} does not use an approved name"));
        }
        if !has(&self.namespaces, ALL_NAMESPACES, &parsed.namespace) {
            return Some(format!("{scope} does not use an approved namespace"));
        }
        (parsed.escalating && !self.allow_escalation).then(|| format!("{scope} is not allowed to escalate"))
    }
}

/// Several errors as Kubernetes prints them: each text once, in brackets when there is more than one.
fn aggregate(reasons: Vec<String>) -> Option<String> {
    let mut unique: Vec<String> = Vec::new();
    for reason in reasons {
        if !unique.contains(&reason) {
            unique.push(reason);
        }
    }
    match unique.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
