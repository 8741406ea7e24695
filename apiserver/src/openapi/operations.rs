//! Which paths and operations the resources have: the part that both versions of OpenAPI share.

use serde_json::{Map, Value, json};

use super::Definitions;
use super::parameters::{
    DELETE, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE, LIST, NAME, NAMESPACE, PRETTY, Parameter,
    WATCH_ONLY,
};
use crate::resource::{Resource, Verb};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// HTTP method in lower case.
    pub(super) method: &'static str,
    pub(super) id: String,
    pub(super) description: String,
    /// `x-kubernetes-action`; empty for discovery.
    pub(super) action: &'static str,
    pub(super) tag: String,
    pub(super) parameters: Vec<Parameter>,
    /// Schema of the body, and whether there must be one.
    pub(super) body: Option<(String, bool)>,
    /// Codes of success.
    pub(super) codes: &'static [&'static str],
    /// Schema of the answer.
    pub(super) answer: String,
    /// `x-kubernetes-group-version-kind`; null for discovery.
    pub(super) kind: Value,
    /// Whether it also answers a stream of watch events.
    pub(super) streams: bool,
}

/// All operations of one path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

/// The paths of one group version, with those of its discovery.
pub(super) fn of_version(resources: &[&Resource], definitions: &Definitions) -> Vec<Path> {
    let Some(first) = resources.first() else { return Vec::new() };
    let api_version = first.gvk.api_version();
    let mut paths = vec![discovery(
        &format!("/apis/{api_version}/"),
        "get available resources",
        "APIResourceList",
        &id(first),
    )];
    for resource in resources {
        let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let base = format!("/apis/{api_version}{scope}/{}", resource.plural);
        paths.push(collection(resource, &base, definitions));
        let item = format!("{base}/{{name}}");
        paths.push(object(resource, &item, "", resource.verbs));
        for sub in resource.subresources {
            let mut path = object(resource, &format!("{item}/{}", sub.name), sub.name, sub.verbs);
            if let Some(answered) = sub.answers {
                path.operations
                    .iter_mut()
                    .for_each(|operation| answered.schema.clone_into(&mut operation.answer));
            }
            paths.push(path);
        }
        if resource.namespaced {
            paths.push(everywhere(
                resource,
                &format!("/apis/{api_version}/{}", resource.plural),
                definitions,
            ));
        }
    }
    paths.retain(|path| !path.operations.is_empty());
    paths
}

/// The path of a group, or of all groups when there is none.
pub(super) fn discovery(path: &str, description: &str, answer: &str, id: &str) -> Path {
    let name = match answer {
        "APIResourceList" => "Resources",
        "APIGroup" => "Group",
        _ => "Versions",
    };
    Path {
        path: path.to_owned(),
        parameters: Vec::new(),
        operations: vec![Operation {
            method: "get",
            id: format!("get{id}API{name}"),
            description: description.to_owned(),
            action: "",
            tag: tag(path),
            parameters: Vec::new(),
            body: None,
            codes: &["200"],
            answer: format!("{META}{answer}"),
            kind: Value::Null,
            streams: false,
        }],
    }
}

/// `routeOpenshiftIo_v1` of `/apis/route.openshift.io/v1/`, `apis` of `/apis/`.
fn tag(path: &str) -> String {
    let mut parts = path.split('/').filter(|p| !p.is_empty()).skip(1);
    let Some(group) = parts.next() else { return "apis".to_owned() };
    let mut words = group.split('.');
    let mut out = words.next().unwrap_or_default().to_owned();
    words.for_each(|word| out.push_str(&capital(word)));
    if let Some(version) = parts.next() {
        out.push('_');
        out.push_str(version);
    }
    out
}

/// `RouteOpenshiftIo` of `route.openshift.io`.
pub(super) fn group_id(group: &str) -> String {
    group.split('.').map(capital).collect()
}

fn id(resource: &Resource) -> String {
    format!("{}{}", group_id(resource.gvk.group), capital(resource.gvk.version))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

fn parameters(resource: &Resource, name: bool) -> Vec<Parameter> {
    let mut list = Vec::new();
    if name {
        list.push(NAME);
    }
    if resource.namespaced {
        list.push(NAMESPACE);
    }
    list.push(PRETTY);
    list
}

/// An operation with what all operations on a resource have in common.
fn operation(
    resource: &Resource,
    method: &'static str,
    action: &'static str,
    verb: &str,
    what: &str,
) -> Operation {
    let (gvk, objects) = (resource.gvk, resource.object_kind());
    Operation {
        method,
        id: format!("{verb}{}{what}", id(resource)),
        description: String::new(),
        action,
        tag: tag(&format!("/apis/{}/", gvk.api_version())),
        parameters: Vec::new(),
        body: None,
        codes: &["200"],
        answer: resource.schema.to_owned(),
        kind: json!({ "group": objects.group, "kind": objects.kind, "version": objects.version }),
        streams: false,
    }
}

/// `NamespacedRoute`, `Project`.
fn scoped(resource: &Resource) -> String {
    let scope = if resource.namespaced { "Namespaced" } else { "" };
    format!("{scope}{}", resource.gvk.kind)
}

fn collection(resource: &Resource, path: &str, definitions: &Definitions) -> Path {
    let kind = resource.gvk.kind;
    let what = scoped(resource);
    let mut operations = Vec::new();
    if resource.has(Verb::DeleteCollection) {
        let mut delete =
            operation(resource, "delete", "deletecollection", "delete", &format!("Collection{what}"));
        delete.description = format!("delete collection of {kind}");
        delete.parameters =
            DELETE.iter().chain(LIST.iter().filter(|p| !WATCH_ONLY.contains(&p.name))).copied().collect();
        delete.body = Some((format!("{META}DeleteOptions"), false));
        delete.answer = format!("{META}Status");
        operations.push(delete);
    }
    if resource.has(Verb::List) {
        operations.push(list(resource, &what, definitions));
    }
    if resource.has(Verb::Create) {
        let mut create = operation(resource, "post", "post", "create", &what);
        create.description = format!("create {}", article(kind));
        create.parameters = vec![DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
        create.body = Some((resource.schema.to_owned(), true));
        create.codes = &["200", "201", "202"];
        operations.push(create);
    }
    Path { path: path.to_owned(), parameters: parameters(resource, false), operations }
}

fn list(resource: &Resource, what: &str, definitions: &Definitions) -> Operation {
    let mut list = operation(resource, "get", "list", "list", what);
    list.description = format!("list or watch objects of kind {}", resource.gvk.kind);
    list.parameters = LIST.to_vec();
    list.streams = resource.has(Verb::Watch);
    // A resource whose list is no list of its kind answers a status.
    list.answer = Some(format!("{}List", resource.schema))
        .filter(|name| definitions.contains_key(name))
        .unwrap_or_else(|| format!("{META}Status"));
    list
}

fn everywhere(resource: &Resource, path: &str, definitions: &Definitions) -> Path {
    let what = format!("{}ForAllNamespaces", resource.gvk.kind);
    let mut operations = Vec::new();
    if resource.has(Verb::List) {
        operations.push(list(resource, &what, definitions));
    }
    Path { path: path.to_owned(), parameters: vec![PRETTY], operations }
}

fn object(resource: &Resource, path: &str, subresource: &str, verbs: &[Verb]) -> Path {
    let kind = article(resource.gvk.kind);
    let what = format!("{}{}", scoped(resource), capital(subresource));
    let prefix = if subresource.is_empty() { String::new() } else { format!("{subresource} of ") };
    let mut operations = Vec::new();
    if verbs.contains(&Verb::Delete) {
        let mut delete = operation(resource, "delete", "delete", "delete", &what);
        delete.description = format!("delete {prefix}{kind}");
        delete.parameters = DELETE.to_vec();
        delete.body = Some((format!("{META}DeleteOptions"), false));
        delete.codes = &["200", "202"];
        delete.answer = format!("{META}Status");
        operations.push(delete);
    }
    if verbs.contains(&Verb::Get) {
        let mut get = operation(resource, "get", "get", "read", &what);
        get.description = format!("read {prefix}the specified {}", resource.gvk.kind);
        operations.push(get);
    }
    if verbs.contains(&Verb::Patch) {
        let mut patch = operation(resource, "patch", "patch", "patch", &what);
        patch.description = format!("partially update {prefix}the specified {}", resource.gvk.kind);
        patch.parameters = vec![DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
        patch.body = Some((format!("{META}Patch"), true));
        patch.codes = &["200", "201"];
        operations.push(patch);
    }
    if verbs.contains(&Verb::Update) {
        let mut update = operation(resource, "put", "put", "replace", &what);
        update.description = format!("replace {prefix}the specified {}", resource.gvk.kind);
        update.parameters = vec![DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
        update.body = Some((resource.schema.to_owned(), true));
        update.codes = &["200", "201"];
        operations.push(update);
    }
    Path { path: path.to_owned(), parameters: parameters(resource, true), operations }
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

/// Content types that an operation answers.
pub(super) fn produces(operation: &Operation) -> Vec<&'static str> {
    let mut list = vec!["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    if operation.streams {
        list.extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
    }
    list
}

/// Content types that an operation reads.
pub(super) fn consumes(operation: &Operation) -> Vec<&'static str> {
    match operation.method {
        "patch" => vec![
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ],
        _ => vec!["*/*"],
    }
}

/// Adds what says which action on which kind an operation is.
pub(super) fn extensions(operation: &Operation, out: &mut Map<String, Value>) {
    if !operation.action.is_empty() {
        out.insert("x-kubernetes-action".to_owned(), operation.action.into());
        out.insert("x-kubernetes-group-version-kind".to_owned(), operation.kind.clone());
    }
}
