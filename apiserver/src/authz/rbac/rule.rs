//! One rule of a role, and RBAC's comparisons: does it allow a request, does it cover another rule
//! (`k8s.io/kubernetes/pkg/apis/rbac/v1`, `k8s.io/component-helpers/auth/rbac/validation`).

use serde::{Deserialize, Deserializer};

use crate::authz::Attributes;

/// Everything, in a list of verbs, groups, resources or paths.
pub const ALL: &str = "*";

/// A rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Verbs.
    #[serde(default, deserialize_with = "texts")]
    pub verbs: Vec<String>,
    /// API groups.
    #[serde(default, deserialize_with = "texts")]
    pub api_groups: Vec<String>,
    /// Resources, with their subresources: `pods`, `pods/log`, `*/scale`.
    #[serde(default, deserialize_with = "texts")]
    pub resources: Vec<String>,
    /// Names that the rule is about; empty for all.
    #[serde(default, deserialize_with = "texts")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources; `*` at the end stands for any ending.
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "texts")]
    pub non_resource_urls: Vec<String>,
}

/// A list of texts, or null.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Option::<Vec<String>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a list has a text.
pub(super) fn has(list: &[String], text: &str) -> bool {
    list.iter().any(|item| item == text)
}

fn has_or_all(list: &[String], text: &str) -> bool {
    has(list, text) || has(list, ALL)
}

impl Rule {
    /// A rule about resources.
    #[must_use]
    pub fn of_resources(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Self {
        Self {
            verbs: owned(verbs),
            api_groups: owned(groups),
            resources: owned(resources),
            resource_names: owned(names),
            non_resource_urls: Vec::new(),
        }
    }

    /// A rule about paths.
    #[must_use]
    pub fn of_paths(verbs: &[&str], paths: &[&str]) -> Self {
        Self { verbs: owned(verbs), non_resource_urls: owned(paths), ..Self::default() }
    }

    /// Whether verbs, groups or resources are all.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        [&self.verbs, &self.resources, &self.api_groups].into_iter().any(|list| has(list, ALL))
    }

    /// Whether the rule allows what is asked; the namespace is not looked at.
    #[must_use]
    pub fn allows(&self, asked: &Attributes) -> bool {
        if !has_or_all(&self.verbs, &asked.verb) {
            return false;
        }
        if asked.resource.is_empty() {
            return self.non_resource_urls.iter().any(|rule| covers_path(rule, &asked.path));
        }
        has_or_all(&self.api_groups, &asked.group)
            && self.has_resource(&asked.resource, &asked.subresource)
            && (self.resource_names.is_empty() || has(&self.resource_names, &asked.name))
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        let whole = match subresource {
            "" => resource.to_owned(),
            sub => format!("{resource}/{sub}"),
        };
        let of_any = |rule: &String| !subresource.is_empty() && rule.strip_prefix("*/") == Some(subresource);
        self.resources.iter().any(|rule| rule == ALL || *rule == whole || of_any(rule))
    }

    /// Whether the rule covers one that has at most one of each, as [`Rule::parts`] makes them.
    #[must_use]
    pub fn covers(&self, part: &Self) -> bool {
        let all_of =
            |own: &[String], part: &[String]| has(own, ALL) || part.iter().all(|item| has(own, item));
        let names = if part.resource_names.is_empty() {
            self.resource_names.is_empty()
        } else {
            self.resource_names.is_empty() || part.resource_names.iter().all(|n| has(&self.resource_names, n))
        };
        let resource = |path: &String| {
            has_or_all(&self.resources, path)
                || path.split_once('/').is_some_and(|(_, sub)| has(&self.resources, &format!("*/{sub}")))
        };
        let path = |path: &String| self.non_resource_urls.iter().any(|own| covers_path(own, path));
        all_of(&self.verbs, &part.verbs)
            && all_of(&self.api_groups, &part.api_groups)
            && part.resources.iter().all(resource)
            && names
            && part.non_resource_urls.iter().all(path)
    }

    /// The rule as many that each have one verb and one resource or path, and at most one name.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        let one = |text: &str| vec![text.to_owned()];
        let mut parts = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        parts.push(part);
                        continue;
                    }
                    let named = |name: &String| Self { resource_names: one(name), ..part.clone() };
                    parts.extend(self.resource_names.iter().map(named));
                }
            }
        }
        for path in &self.non_resource_urls {
            parts.extend(self.verbs.iter().map(|verb| Self::of_paths(&[verb], &[path])));
        }
        parts
    }

    /// The text by which rules are sorted: Go's of a `PolicyRule`.
    #[must_use]
    pub fn sort_key(&self) -> String {
        let list = |list: &[String]| list.join(" ");
        format!(
            "&PolicyRule{{Verbs:[{}],APIGroups:[{}],Resources:[{}],ResourceNames:[{}],NonResourceURLs:[{}],}}",
            list(&self.verbs),
            list(&self.api_groups),
            list(&self.resources),
            list(&self.resource_names),
            list(&self.non_resource_urls),
        )
    }
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn covers_path(rule: &str, path: &str) -> bool {
    rule == ALL || rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}
