//! Who can do something, and what somebody can do, with what could not be resolved on the way
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`, `k8s.io/kubernetes/pkg/registry/rbac/validation`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use picoshift_machinery::UserInfo;
use picoshift_machinery::field_error::quote;
use picoshift_machinery::user_info::MASTERS;

use super::{Rbac, RoleBinding, RoleRef, Rule, State, SubjectDoc};
use crate::authz::Attributes;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Users and groups, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    /// Names of users; service accounts by their user names.
    pub users: BTreeSet<String>,
    /// Names of groups.
    pub groups: BTreeSet<String>,
}

impl Rbac {
    /// Whom RBAC allows something, and the errors that may hide more: bindings of roles that are not there.
    #[must_use]
    pub fn who_can(&self, asked: &Attributes) -> (Subjects, Vec<String>) {
        let mut found = Subjects::default();
        let mut errors = Vec::new();
        // Those whom no rule has to name.
        found.groups.insert(MASTERS.to_owned());
        let state = self.0.read();
        for (binding, rules) in state.resolved(&asked.namespace, |_| true, &mut errors) {
            if rules.iter().any(|rule| rule.allows(asked)) {
                for subject in &binding.subjects {
                    found.add(subject, &asked.namespace);
                }
            }
        }
        (found, errors)
    }

    /// The rules that apply to a user in a namespace, in parts as [`Rule::parts`] makes them, and the errors on the way.
    #[must_use]
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        let state = self.0.read();
        let scopes = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        for scope in scopes {
            let applies =
                |binding: &RoleBinding| binding.subjects.iter().any(|subject| is_user(subject, user, scope));
            for (_, granted) in state.resolved_in(scope, applies, &mut errors) {
                rules.extend(granted.iter().flat_map(Rule::parts));
            }
        }
        (rules, errors)
    }
}

impl State {
    /// Bindings of the cluster and of a namespace, with the rules that they give.
    fn resolved<'a>(
        &'a self,
        namespace: &'a str,
        wanted: impl Fn(&RoleBinding) -> bool + Copy,
        errors: &mut Vec<String>,
    ) -> Vec<(&'a RoleBinding, &'a Arc<[Rule]>)> {
        let mut all = self.resolved_in("", wanted, errors);
        if !namespace.is_empty() {
            all.extend(self.resolved_in(namespace, wanted, errors));
        }
        all
    }

    fn resolved_in<'a>(
        &'a self,
        scope: &str,
        wanted: impl Fn(&RoleBinding) -> bool,
        errors: &mut Vec<String>,
    ) -> Vec<(&'a RoleBinding, &'a Arc<[Rule]>)> {
        let mut all = Vec::new();
        for binding in self.bindings.all_in(scope).filter(|binding| wanted(binding)) {
            match self.rules_of(&binding.role, scope) {
                Ok(rules) => all.push((&**binding, rules)),
                Err(error) => errors.push(error),
            }
        }
        all
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&Arc<[Rule]>, String> {
        let (scope, resource) = match role.kind.as_str() {
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            other => return Err(format!("unsupported role reference kind: {}", quote(other))),
        };
        let missing = || format!("{resource}.rbac.authorization.k8s.io {} not found", quote(&role.name));
        // A ClusterRoleBinding cannot name a Role.
        if resource == "role" && scope.is_empty() {
            return Err(missing());
        }
        self.roles.get(scope, &role.name).ok_or_else(missing)
    }
}

impl Subjects {
    fn add(&mut self, subject: &SubjectDoc, namespace: &str) {
        match subject.kind.as_str() {
            "Group" => {
                self.groups.insert(subject.name.clone());
            }
            "User" => {
                self.users.insert(subject.name.clone());
            }
            "ServiceAccount" => {
                let own = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                if !own.is_empty() {
                    self.users.insert(format!("{SERVICE_ACCOUNT}{own}:{}", subject.name));
                }
            }
            _ => {}
        }
    }
}

/// Whether a subject of a binding in `namespace` (empty for the cluster) is the user.
fn is_user(subject: &SubjectDoc, user: &UserInfo, namespace: &str) -> bool {
    match subject.kind.as_str() {
        "User" => user.name == subject.name,
        "Group" => user.in_group(&subject.name),
        "ServiceAccount" => {
            let own = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
            let name = user.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
            !own.is_empty() && name == Some((own, subject.name.as_str()))
        }
        _ => false,
    }
}

/// Rules that differ by their verb only, as one; sorted as upstream sorts them (`CompactRules`, `SortableRuleSlice`).
#[must_use]
pub fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut out: Vec<Rule> = Vec::new();
    let mut at: HashMap<Rule, usize> = HashMap::new();
    for rule in rules {
        let simple = rule.non_resource_urls.is_empty()
            && rule.resource_names.len() <= 1
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        if !simple {
            out.push(rule);
            continue;
        }
        let place = *at.entry(Rule { verbs: Vec::new(), ..rule.clone() }).or_insert(out.len());
        match out.get_mut(place) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => out.push(rule),
        }
    }
    out.sort_by_cached_key(Rule::sort_key);
    out
}
