//! Which cases are distinct: another API group, resource, verb, subresource, patch format, set of options, media type,
//! outcome (status code and reason) or named defect of a body.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;

use crate::case::{Answer, Answers, Step, Topic};

/// What a request aims at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) verb: String,
    query: Vec<(String, String)>,
}

impl Target {
    /// Reads method and path.
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query: Vec<(String, String)> = query
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, mut rest) = match parts.as_slice() {
            ["apis", group, _, rest @ ..] => (*group, rest),
            ["api", _, rest @ ..] => ("", rest),
            _ => ("", &[] as &[&str]),
        };
        if let ["namespaces", _, inside @ ..] = rest
            && !inside.is_empty()
        {
            rest = inside;
        }
        let named = rest.len() > 1;
        let watches =
            query.iter().any(|(key, value)| key == "watch" && matches!(value.as_str(), "true" | "1"));
        let verb = match method.as_str() {
            "GET" if watches => "watch",
            "GET" if named => "get",
            "GET" => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if named => "delete",
            "DELETE" => "deletecollection",
            other => other,
        };
        let part = |index: usize| rest.get(index).map_or_else(String::new, |part| (*part).to_owned());
        Self {
            group: group.to_owned(),
            resource: part(0),
            subresource: part(2),
            verb: verb.to_owned(),
            query,
        }
    }

    /// What is numbered together: a resource of a group.
    pub(crate) fn collection(&self) -> String {
        format!("{}/{}", self.group, self.resource)
    }

    /// The options in the query; of those that take free text only what kind of text it is.
    fn options(&self) -> Vec<String> {
        let mut options: Vec<String> = self
            .query
            .iter()
            .map(|(key, value)| match key.as_str() {
                "labelSelector" => format!("{key}~{}", selector_kind(value)),
                "fieldSelector" => format!("{key}~{}", field_names(value)),
                "limit" | "continue" | "timeoutSeconds" | "fieldManager" | "gracePeriodSeconds" => {
                    key.clone()
                }
                "resourceVersion" => format!("{key}={}", if value == "0" { "0" } else { "other" }),
                _ => format!("{key}={value}"),
            })
            .collect();
        options.sort();
        options
    }
}

fn selector_kind(value: &str) -> &'static str {
    match value {
        _ if value.contains("notin") => "notin",
        _ if value.contains("in%20(") || value.contains("in+(") => "in",
        _ if value.contains("!=") || value.contains("!%3D") => "differs",
        _ if value.starts_with('!') => "absent",
        _ if value.contains('=') || value.contains("%3D") => "equal",
        _ => "present",
    }
}

fn field_names(value: &str) -> String {
    let names = value.split(',').map(|part| part.split(['=', '!']).next().unwrap_or_default());
    names.collect::<Vec<_>>().join("+")
}

/// What makes a case distinct, and the group it counts for.
pub(crate) fn key(topic: &Topic, step: &Step, answer: &Answer) -> Option<(String, String)> {
    let line = topic.request_line(step);
    let (method, path) = line.split_once(' ')?;
    let target = Target::of(&Method::from_bytes(method.as_bytes()).ok()?, path);
    let accept = step.accept.as_deref().unwrap_or("json");
    let content_type = match (&step.content_type, step.body.is_some() || step.text.is_some()) {
        (Some(content_type), _) => content_type.as_str(),
        (None, true) => "json",
        (None, false) => "",
    };
    let mut options = target.options();
    if target.verb.starts_with("delete") {
        let keys = step
            .body
            .as_ref()
            .and_then(serde_json::Value::as_object)
            .into_iter()
            .flat_map(|body| body.keys());
        options.extend(
            keys.filter(|key| !matches!(key.as_str(), "apiVersion" | "kind"))
                .map(|key| format!("body.{key}")),
        );
    }
    let reason = answer.body["reason"].as_str().unwrap_or_default();
    let key = [
        &target.resource,
        &target.verb,
        &target.subresource,
        &options.join("&"),
        accept,
        content_type,
        &answer.code.to_string(),
        reason,
        &step.defect,
    ]
    .map(str::to_owned)
    .join(" | ");
    Some((target.group.replace("{group}", "peer"), key))
}

/// The distinct cases of every group.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    groups: BTreeMap<String, BTreeSet<String>>,
}

impl Distinct {
    /// Counts the cases of a topic, by the real server's answers.
    pub(crate) fn count(&mut self, topic: &Topic, recorded: &Answers) {
        for step in topic.steps.iter().filter(|step| step.events.is_none() && !step.setup) {
            let Some(answer) = recorded.get(&step.name) else { continue };
            if let Some((group, key)) = key(topic, step, answer) {
                self.groups.entry(group).or_default().insert(key);
            }
        }
    }

    /// Counts what another one counted too.
    pub(crate) fn add(&mut self, other: Self) {
        for (group, keys) in other.groups {
            self.groups.entry(group).or_default().extend(keys);
        }
    }

    /// How many cases of `groups` are distinct.
    pub(crate) fn of(&self, groups: &[&str]) -> usize {
        groups.iter().filter_map(|group| self.groups.get(*group)).map(BTreeSet::len).sum()
    }

    /// One line a group and resource.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (group, keys) in &self.groups {
            let mut resources: BTreeMap<&str, usize> = BTreeMap::new();
            for key in keys {
                *resources.entry(key.split(" | ").next().unwrap_or_default()).or_default() += 1;
            }
            let resources: Vec<String> =
                resources.iter().map(|(name, count)| format!("{name} {count}")).collect();
            lines.push(format!("{group}: {} distinct ({})", keys.len(), resources.join(", ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(line: &str) -> Target {
        let (method, path) = line.split_once(' ').unwrap();
        Target::of(&method.parse().unwrap(), path)
    }

    #[test]
    fn targets() {
        let status = target("PATCH /apis/route.openshift.io/v1/namespaces/a/routes/r/status?dryRun=All");
        assert_eq!((status.resource.as_str(), status.subresource.as_str()), ("routes", "status"));
        assert_eq!((status.verb.as_str(), status.options()), ("patch", vec!["dryRun=All".to_owned()]));
        assert_eq!(target("GET /apis/g/v1/routes?watch=true").verb, "watch");
        assert_eq!(target("DELETE /apis/g/v1/namespaces/a/routes").verb, "deletecollection");
        assert_eq!(target("GET /apis/g/v1/projects/a").verb, "get");
        assert_eq!(target("GET /api/v1/namespaces/a").resource, "namespaces");
    }

    #[test]
    fn free_text_makes_no_case() {
        let one = target("GET /apis/g/v1/r?labelSelector=a%3Db&limit=1");
        let other = target("GET /apis/g/v1/r?limit=7&labelSelector=c%3Dd");
        assert_eq!(one.options(), other.options());
    }
}
