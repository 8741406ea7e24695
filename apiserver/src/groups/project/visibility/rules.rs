//! What a role says about seeing projects: which namespaces its rules let one `get`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;

/// A rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleDoc {
    /// Verbs; `*` is every verb.
    #[serde(default)]
    pub(crate) verbs: Option<Vec<String>>,
    /// API groups; `*` is every group.
    #[serde(default)]
    pub(crate) api_groups: Option<Vec<String>>,
    /// Resources; `*` is every resource.
    #[serde(default)]
    pub(crate) resources: Option<Vec<String>>,
    /// Names that the rule is about; empty for all.
    #[serde(default)]
    pub(crate) resource_names: Option<Vec<String>>,
}

/// A set of namespace names that may be all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Every namespace.
    All,
    /// These namespaces.
    Some(BTreeSet<Arc<str>>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Names {
    /// Whether a namespace is in the set.
    #[must_use]
    pub(crate) fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(names) => names.contains(namespace),
        }
    }
}

/// What a role lets one see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// Namespaces that RBAC lets one `get` by the role.
    pub(crate) names: Names,
    /// Whether a rule without wildcards and resource names allows it: what a `role:` scope counts.
    pub(crate) scoped: bool,
}

impl Access {
    /// Reads a role's rules.
    #[must_use]
    pub(crate) fn of(rules: &[RuleDoc]) -> Self {
        let mut some = BTreeSet::new();
        let mut all = false;
        let mut scoped = false;
        for rule in rules.iter().filter(|r| r.gets_namespaces()) {
            match rule.resource_names.as_deref().unwrap_or_default() {
                [] => {
                    all = true;
                    scoped |= !rule.has_wildcard();
                }
                names => some.extend(names.iter().map(|n| Arc::from(n.as_str()))),
            }
        }
        Self { names: if all { Names::All } else { Names::Some(some) }, scoped }
    }

    /// Whether the role shows nothing; such roles are not kept.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl RuleDoc {
    fn gets_namespaces(&self) -> bool {
        has(self.verbs.as_ref(), &["get", "*"])
            && has(self.api_groups.as_ref(), &["", "*"])
            && has(self.resources.as_ref(), &["namespaces", "*"])
    }

    fn has_wildcard(&self) -> bool {
        [&self.verbs, &self.api_groups, &self.resources].into_iter().any(|list| has(list.as_ref(), &["*"]))
    }
}

fn has(list: Option<&Vec<String>>, any: &[&str]) -> bool {
    list.is_some_and(|list| list.iter().any(|v| any.contains(&v.as_str())))
}
