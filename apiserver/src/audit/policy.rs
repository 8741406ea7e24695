//! What is recorded of which request: `Policy` of `audit.k8s.io/v1`, from a YAML or JSON file.
//!
//! The first rule that matches decides; without one nothing is recorded. A field that upstream does not know is an
//! error here, where upstream warns and goes on: a rule that says less than its author meant is worse than none.

use std::fs;
use std::path::{Path, PathBuf};

use picoshift_machinery::UserInfo;
use picoshift_machinery::names::dns1123_subdomain;
use picoshift_machinery::request_info::RequestInfo;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::authz::Attributes;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, and the outcome; no contents.
    Metadata,
    /// And the object that was sent.
    Request,
    /// And the object that was answered.
    RequestResponse,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// When in a request's life an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Stage {
    /// It came, and its sender is known.
    RequestReceived,
    /// The answer of one that lasts long begins.
    ResponseStarted,
    /// It is over.
    ResponseComplete,
    /// Its handler panicked.
    Panic,
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a policy.
    #[error("{0}")]
    Text(Box<serde_saphyr::Error>),
    /// A rule makes no sense.
    #[error("{field}: {why}")]
    Rule {
        /// Where.
        field: String,
        /// Why.
        why: &'static str,
    },
}

/// A policy that has been checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Policy {
    #[serde(rename = "kind")]
    kind: String,
    api_version: String,
    #[serde(rename = "metadata", default)]
    _metadata: IgnoredAny,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// What a policy says of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How much is recorded.
    pub level: Level,
    /// Stages that make no event.
    pub omit: Vec<Stage>,
    /// Whether objects are recorded without `managedFields`.
    pub omit_managed_fields: bool,
}

impl Policy {
    /// Reads a file.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text =
            fs::read_to_string(path).map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self =
            serde_saphyr::from_str(text).map_err(|error| PolicyError::Text(Box::new(error)))?;
        policy.check()?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), PolicyError> {
        let wrong = |field: &str, why| Err(PolicyError::Rule { field: field.to_owned(), why });
        if self.kind != "Policy" || self.api_version != "audit.k8s.io/v1" {
            return wrong("apiVersion", "only audit.k8s.io/v1, kind Policy, is known");
        }
        if self.rules.is_empty() {
            return wrong("rules", "there are none");
        }
        for (at, rule) in self.rules.iter().enumerate() {
            rule.check()
                .map_err(|(field, why)| PolicyError::Rule { field: format!("rules[{at}].{field}"), why })?;
        }
        Ok(())
    }

    /// What is recorded of a request; the first rule that matches decides.
    #[must_use]
    pub fn decide(&self, user: Option<&UserInfo>, info: &RequestInfo) -> Decision {
        let attributes = Attributes::from(info);
        let rule = self.rules.iter().find(|rule| rule.matches(user, info.is_resource, &attributes));
        let Some(rule) = rule else { return Decision::default() };
        Decision {
            level: rule.level,
            omit: self.omit_stages.iter().chain(&rule.omit_stages).copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let paths = "nonResourceURLs";
        for path in self.non_resource_urls.iter().filter(|path| *path != "*") {
            if !path.starts_with('/') {
                return Err((paths, "non-resource URL rules must begin with a '/' character"));
            }
            if path.trim_end_matches('*').contains('*') || path.ends_with("**") {
                return Err((
                    paths,
                    "non-resource URL wildcards '*' must be the final character of the rule",
                ));
            }
        }
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if of_resources && !self.non_resource_urls.is_empty() {
            return Err((paths, "rules cannot apply to both regular resources and non-resource URLs"));
        }
        for resource in &self.resources {
            if !resource.group.is_empty() && !dns1123_subdomain(&resource.group).is_empty() {
                return Err(("resources.group", "an API group is a DNS subdomain, without a version"));
            }
            if !resource.resource_names.is_empty() && resource.resources.is_empty() {
                return Err((
                    "resources.resourceNames",
                    "using resourceNames requires at least one resource",
                ));
            }
        }
        Ok(())
    }

    fn matches(&self, user: Option<&UserInfo>, is_resource: bool, request: &Attributes) -> bool {
        let any = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        let by = match user {
            None => self.users.is_empty() && self.user_groups.is_empty(),
            Some(user) => {
                let grouped = self.user_groups.iter().any(|group| user.in_group(group));
                any(&self.users, &user.name) && (self.user_groups.is_empty() || grouped)
            }
        };
        if !by || !any(&self.verbs, &request.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return is_resource
                && any(&self.namespaces, &request.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|one| one.matches(request)));
        }
        self.non_resource_urls.is_empty()
            || (!is_resource && self.non_resource_urls.iter().any(|rule| path_matches(rule, &request.path)))
    }
}

fn path_matches(rule: &str, path: &str) -> bool {
    rule == path || rule.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

impl GroupResources {
    fn matches(&self, request: &Attributes) -> bool {
        if self.group != request.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty() || self.resource_names.contains(&request.name);
        named
            && self
                .resources
                .iter()
                .any(|rule| resource_matches(rule, &request.resource, &request.subresource))
    }
}

/// `routes`, `routes/status`, `routes/*`, `*/status` or `*`. A rule `routes/*` matches the resource itself too.
fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => subresource.is_empty() && rule == resource,
        Some((of, "*")) => of == resource,
        Some(("*", sub)) => !subresource.is_empty() && sub == subresource,
        Some((of, sub)) => of == resource && sub == subresource,
    }
}

#[cfg(test)]
mod tests;
