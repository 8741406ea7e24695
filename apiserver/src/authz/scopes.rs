//! What the scopes of a token prevent (`openshift/kubernetes` scopeauthorizer, `apiserver-library-go/pkg/authorization/scope`).
//!
//! In: the scopes that an identity carries, and what it wants to do. Out: nothing, or the reason of a denial. Scopes
//! never allow anything: they only take away from what the user may do. ClusterRoles are those of the moment, by watch.

mod rules;
#[cfg(test)]
mod tests;
pub mod webhook;

use std::sync::Arc;

use picoshift_machinery::Status;
use picoshift_machinery::scope::is_role;

use super::rbac::{Rbac, Rule};
use super::{Attributes, personal_reviews};

/// Knows what scopes prevent.
#[derive(Clone, Debug)]
pub struct Scopes(Arc<Rbac>);

impl Scopes {
    /// Scopes with the ClusterRoles of `rbac`.
    #[must_use]
    pub fn new(rbac: Arc<Rbac>) -> Self {
        Self(rbac)
    }

    /// Why scopes prevent an action; `None` when they do not, or when there are none.
    ///
    /// # Errors
    /// 503 while ClusterRoles, which would matter, are not known.
    pub fn prevent(&self, scopes: &[String], asked: &Attributes) -> Result<Option<String>, Status> {
        if scopes.is_empty() {
            return Ok(None);
        }
        let (rules, errors) = self.rules(scopes, &asked.namespace);
        // What kube-apiserver asks before it has read who a review is about.
        let personal = personal_reviews::at_the_front(asked);
        let fits = |rule: &Rule| rule.allows(asked) || personal.as_ref().is_some_and(|own| rule.allows(own));
        if rules.iter().any(fits) {
            return Ok(None);
        }
        if scopes.iter().any(|scope| is_role(scope)) && !self.0.knows_cluster_roles() {
            return Err(Status::unavailable("token scopes cannot be judged yet: waiting for ClusterRoles"));
        }
        let mut reason = format!("scopes [{}] prevent this action", scopes.join(" "));
        if let Some(errors) = aggregate(&errors) {
            reason.push_str(", additionally the following non-fatal errors were reported: ");
            reason.push_str(&errors);
        }
        Ok(Some(reason))
    }

    /// The rules that scopes come to in a namespace, and what is wrong with the scopes.
    #[must_use]
    pub fn rules(&self, scopes: &[String], namespace: &str) -> (Vec<Rule>, Vec<String>) {
        rules::of(scopes, namespace, |role| self.0.cluster_role(role))
    }
}

/// Errors as Go shows several: each once, in brackets when there are more than one.
#[must_use]
pub fn aggregate(errors: &[String]) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    let texts: Vec<&str> = errors.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
