//! A typed reading of a SecurityContextConstraints object.
//!
//! It has no `spec`: all fields are at the top. What is null reads as what is absent.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Everything of an SCC that decides about pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Scc {
    /// Its metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    /// A higher one is tried before others.
    pub priority: Option<i32>,
    /// Whether containers may be privileged.
    #[serde(deserialize_with = "or_default")]
    pub allow_privileged_container: bool,
    /// Capabilities that containers get unless they drop them.
    #[serde(deserialize_with = "or_default")]
    pub default_add_capabilities: Vec<String>,
    /// Capabilities that containers lose.
    #[serde(deserialize_with = "or_default")]
    pub required_drop_capabilities: Vec<String>,
    /// Capabilities that containers may add; `*` for every one.
    #[serde(deserialize_with = "or_default")]
    pub allowed_capabilities: Vec<String>,
    /// Whether `hostPath` volumes are allowed. Only the defaults read it: `volumes` says the same.
    #[serde(deserialize_with = "or_default")]
    pub allow_host_dir_volume_plugin: bool,
    /// Kinds of volumes; `*` for every one.
    pub volumes: Option<Vec<String>>,
    /// Drivers of flexVolumes; none for every one.
    #[serde(deserialize_with = "or_default")]
    pub allowed_flex_volumes: Vec<FlexVolume>,
    /// Whether pods may use the host's network.
    #[serde(deserialize_with = "or_default")]
    pub allow_host_network: bool,
    /// Whether containers may use the host's ports.
    #[serde(deserialize_with = "or_default")]
    pub allow_host_ports: bool,
    /// Whether pods may see the host's processes.
    #[serde(rename = "allowHostPID", deserialize_with = "or_default")]
    pub allow_host_pid: bool,
    /// Whether pods may use the host's IPC.
    #[serde(rename = "allowHostIPC", deserialize_with = "or_default")]
    pub allow_host_ipc: bool,
    /// `AllowHostLevel`, or `RequirePodLevel`: pods must have a user namespace of their own.
    #[serde(deserialize_with = "or_default")]
    pub user_namespace_level: String,
    /// What containers get that do not say whether they may gain privileges.
    pub default_allow_privilege_escalation: Option<bool>,
    /// Whether containers may gain privileges.
    pub allow_privilege_escalation: Option<bool>,
    /// SELinux labels.
    #[serde(deserialize_with = "or_default")]
    pub se_linux_context: SeLinuxStrategy,
    /// User ids.
    #[serde(deserialize_with = "or_default")]
    pub run_as_user: UserStrategy,
    /// Supplemental groups.
    #[serde(deserialize_with = "or_default")]
    pub supplemental_groups: GroupStrategy,
    /// The group that owns volumes.
    #[serde(deserialize_with = "or_default")]
    pub fs_group: GroupStrategy,
    /// Whether containers must have a read-only root.
    #[serde(deserialize_with = "or_default")]
    pub read_only_root_filesystem: bool,
    /// Users who may use the SCC.
    #[serde(deserialize_with = "or_default")]
    pub users: Vec<String>,
    /// Groups that may use the SCC.
    #[serde(deserialize_with = "or_default")]
    pub groups: Vec<String>,
    /// Seccomp profiles; `*` for every one.
    #[serde(deserialize_with = "or_default")]
    pub seccomp_profiles: Vec<String>,
    /// Unsafe sysctls that are allowed, by name or by a beginning with `*`.
    #[serde(deserialize_with = "or_default")]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Sysctls that are forbidden, by name or by a beginning with `*`.
    #[serde(deserialize_with = "or_default")]
    pub forbidden_sysctls: Vec<String>,
}

impl Scc {
    /// Reads an object.
    ///
    /// # Errors
    /// When a field has a wrong type.
    pub fn from_value(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether a kind of volume is allowed.
    pub(crate) fn allows_volume(&self, kind: &str) -> bool {
        self.volumes.iter().flatten().any(|allowed| allowed == "*" || allowed == kind)
    }
}

/// What matters of the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The name.
    pub name: String,
}

/// A driver of flexVolumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct FlexVolume {
    /// Its name.
    pub driver: String,
}

/// How SELinux labels are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SeLinuxStrategy {
    /// `MustRunAs` or `RunAsAny`.
    #[serde(deserialize_with = "or_default")]
    pub r#type: String,
    /// The label for `MustRunAs`; without a level, the namespace's.
    pub se_linux_options: Option<SeLinuxOptions>,
}

/// How user ids are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UserStrategy {
    /// `MustRunAs`, `MustRunAsRange`, `MustRunAsNonRoot` or `RunAsAny`.
    #[serde(deserialize_with = "or_default")]
    pub r#type: String,
    /// The one of `MustRunAs`.
    pub uid: Option<i64>,
    /// The least of `MustRunAsRange`; without both, the namespace's range.
    pub uid_range_min: Option<i64>,
    /// The greatest of `MustRunAsRange`.
    pub uid_range_max: Option<i64>,
}

/// How groups are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupStrategy {
    /// `MustRunAs` or `RunAsAny`.
    #[serde(deserialize_with = "or_default")]
    pub r#type: String,
    /// Those of `MustRunAs`; without any, the namespace's.
    #[serde(deserialize_with = "or_default")]
    pub ranges: Vec<IdRange>,
}

/// Ids from one to another, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct IdRange {
    /// The least.
    pub min: i64,
    /// The greatest.
    pub max: i64,
}

impl IdRange {
    pub(crate) fn contains(self, id: i64) -> bool {
        (self.min..=self.max).contains(&id)
    }
}

/// An SELinux label, of an SCC, a pod or a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SeLinuxOptions {
    /// The user.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub user: String,
    /// The role.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub role: String,
    /// The type.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub r#type: String,
    /// The level.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub level: String,
}

/// What is null is what is absent.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
