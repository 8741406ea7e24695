//! What a role says about seeing projects: which namespaces its rules let one `get`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::authz::rbac::Rule;

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
    pub(crate) fn of(rules: &[Rule]) -> Self {
        let mut some = BTreeSet::new();
        let mut all = false;
        let mut scoped = false;
        for rule in rules.iter().filter(|r| r.gets_namespaces()) {
            match rule.resource_names.as_slice() {
                [] => {
                    all = true;
                    scoped |= !rule.is_unbounded();
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

impl Rule {
    fn gets_namespaces(&self) -> bool {
        has(&self.verbs, &["get", "*"])
            && has(&self.api_groups, &["", "*"])
            && has(&self.resources, &["namespaces", "*"])
    }
}

fn has(list: &[String], any: &[&str]) -> bool {
    list.iter().any(|text| any.contains(&text.as_str()))
}
