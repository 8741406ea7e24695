//! The documents of discovery, with the fields in the order in which Go writes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::resource::{Resource, Subresource, Verb};

/// `APIGroup`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    pub(super) name: &'static str,
    pub(super) versions: Vec<Version>,
    preferred_version: Version,
}

/// `GroupVersionForDiscovery`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    pub(super) group_version: String,
    pub(super) version: &'static str,
    #[serde(skip)]
    pub(super) group: &'static str,
}

impl Group {
    /// The groups of resources, by name; the first version of a group is the preferred one.
    pub(super) fn of(resources: &[&'static Resource]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for resource in resources {
            let gvk = resource.gvk;
            let version =
                Version { group_version: gvk.api_version(), version: gvk.version, group: gvk.group };
            match groups.iter_mut().find(|g| g.name == gvk.group) {
                Some(group) if group.versions.contains(&version) => {}
                Some(group) => group.versions.push(version),
                None => groups.push(Self {
                    kind: "APIGroup",
                    api_version: "v1",
                    name: gvk.group,
                    versions: vec![version.clone()],
                    preferred_version: version,
                }),
            }
        }
        groups.sort_by_key(|g| g.name);
        groups
    }
}

/// `APIGroupList`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<Group>,
}

impl GroupList {
    pub(super) fn new(groups: &[Group]) -> Self {
        let groups = groups.iter().map(|g| Group { kind: "", api_version: "", ..g.clone() }).collect();
        Self { kind: "APIGroupList", api_version: "v1", groups }
    }
}

/// `APIResourceList`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList {
    kind: &'static str,
    api_version: &'static str,
    group_version: String,
    resources: Vec<ApiResource>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource {
    name: String,
    singular_name: &'static str,
    namespaced: bool,
    /// Group and version of the kind, where they are not those of the list.
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'static str,
    kind: &'static str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'static [&'static str],
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

impl ResourceList {
    pub(super) fn new(group: &str, version: &str, resources: &[&'static Resource]) -> Self {
        let mut list = Vec::new();
        let mut group_version = String::new();
        for resource in of_version(group, version, resources) {
            group_version = resource.gvk.api_version();
            let ResponseKind { group, version, .. } = ResponseKind::of_objects(resource);
            list.push(ApiResource {
                name: resource.plural.to_owned(),
                singular_name: resource.singular,
                namespaced: resource.namespaced,
                group,
                version,
                kind: resource.gvk.kind,
                verbs: words(resource.verbs),
                short_names: resource.short_names,
                categories: resource.categories,
                storage_version_hash: storage_version_hash(resource),
            });
            list.extend(resource.subresources.iter().map(|sub| ApiResource {
                name: format!("{}/{}", resource.plural, sub.name),
                singular_name: "",
                namespaced: resource.namespaced,
                group: "",
                version: "",
                kind: sub.kind(resource),
                verbs: words(sub.verbs),
                short_names: &[],
                categories: &[],
                storage_version_hash: String::new(),
            }));
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Self { kind: "APIResourceList", api_version: "v1", group_version, resources: list }
    }
}

fn of_version<'a>(
    group: &'a str,
    version: &'a str,
    resources: &'a [&'static Resource],
) -> impl Iterator<Item = &'static Resource> + 'a {
    resources.iter().copied().filter(move |r| r.gvk.group == group && r.gvk.version == version)
}

fn words(verbs: &[Verb]) -> Vec<&'static str> {
    let mut words: Vec<&'static str> = verbs.iter().map(|v| v.as_str()).collect();
    words.sort_unstable();
    words
}

/// Tells a change of the stored version. Only what is in a store has one: the resources with `deletecollection`.
fn storage_version_hash(resource: &Resource) -> String {
    if !resource.has(Verb::DeleteCollection) {
        return String::new();
    }
    let text = format!("{}/{}/{}", resource.gvk.group, resource.gvk.version, resource.gvk.kind);
    STANDARD.encode(&Sha256::digest(text)[..8])
}

/// `APIGroupDiscoveryList`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupDiscoveryList {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    metadata: Empty,
    items: Vec<GroupDiscovery>,
}

#[derive(Debug, Serialize)]
struct Empty {}

#[derive(Debug, Serialize)]
struct GroupDiscovery {
    metadata: Name,
    versions: Vec<VersionDiscovery>,
}

#[derive(Debug, Serialize)]
struct Name {
    name: &'static str,
}

#[derive(Debug, Serialize)]
struct VersionDiscovery {
    version: &'static str,
    resources: Vec<ResourceDiscovery>,
    freshness: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: &'static str,
    response_kind: ResponseKind,
    scope: &'static str,
    singular_resource: &'static str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'static [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'static [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery {
    subresource: &'static str,
    response_kind: ResponseKind,
    verbs: Vec<&'static str>,
}

/// Group and version are empty where they are those of the document.
#[derive(Debug, Serialize)]
struct ResponseKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
}

impl ResponseKind {
    fn of(kind: &'static str) -> Self {
        Self { group: "", version: "", kind }
    }

    fn of_objects(resource: &Resource) -> Self {
        let own = resource.object_kind();
        if own.group == resource.gvk.group {
            return Self::of(own.kind);
        }
        Self { group: own.group, version: own.version, kind: own.kind }
    }
}

impl GroupDiscoveryList {
    /// The list in a version of `apidiscovery.k8s.io`; without kind and version for the empty text, as it is digested
    /// for the entity tag.
    pub(super) fn new(api_version: &'static str, groups: &[Group], resources: &[&'static Resource]) -> Self {
        let kind = if api_version.is_empty() { "" } else { "APIGroupDiscoveryList" };
        let items = groups.iter().map(|group| GroupDiscovery {
            metadata: Name { name: group.name },
            versions: group.versions.iter().map(|v| VersionDiscovery::new(v, resources)).collect(),
        });
        Self { kind, api_version, metadata: Empty {}, items: items.collect() }
    }
}

impl VersionDiscovery {
    fn new(version: &Version, resources: &[&'static Resource]) -> Self {
        let mut list: Vec<_> = of_version(version.group, version.version, resources)
            .map(|resource| ResourceDiscovery {
                resource: resource.plural,
                response_kind: ResponseKind::of_objects(resource),
                scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
                singular_resource: resource.singular,
                verbs: words(resource.verbs),
                short_names: resource.short_names,
                categories: resource.categories,
                subresources: resource.subresources.iter().map(|s| subresource(resource, s)).collect(),
            })
            .collect();
        list.sort_by_key(|r| r.resource);
        Self { version: version.version, resources: list, freshness: "Current" }
    }
}

fn subresource(resource: &Resource, sub: &Subresource) -> SubresourceDiscovery {
    SubresourceDiscovery {
        subresource: sub.name,
        response_kind: ResponseKind::of(sub.kind(resource)),
        verbs: words(sub.verbs),
    }
}
