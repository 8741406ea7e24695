//! Names of kinds and resources.

use std::fmt;

/// Group, version and kind of an object; the group of core objects is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// API group, for example `route.openshift.io`.
    pub group: &'static str,
    /// Version, for example `v1`.
    pub version: &'static str,
    /// CamelCase kind, for example `Route`.
    pub kind: &'static str,
}

impl GroupVersionKind {
    /// `group/version`, or `version` alone for the core group: what stands in `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }
}

/// Group, version and plural resource name: what a path names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural resource name, for example `routes`.
    pub resource: String,
}

/// Joins group and version as `apiVersion` does.
#[must_use]
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// `resource.group`, or the resource alone for the core group: how errors name a resource.
#[must_use]
pub fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}
