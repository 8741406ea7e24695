//! A typed reading of a pod, and how what changed in it comes back into the pod's JSON, which keeps all that is not read.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::constraints::{SeLinuxOptions, or_default};

/// The annotation of a pod that names its seccomp profile, as before there was a field.
pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The same of a container, whose name follows.
pub(crate) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// A pod, as far as SCCs look at it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PodView {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) generate_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(deserialize_with = "or_default")]
    service_account_name: String,
    #[serde(deserialize_with = "or_default")]
    service_account: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) os: Os,
    #[serde(deserialize_with = "or_default")]
    pub(crate) host_network: bool,
    #[serde(rename = "hostPID", deserialize_with = "or_default")]
    pub(crate) host_pid: bool,
    #[serde(rename = "hostIPC", deserialize_with = "or_default")]
    pub(crate) host_ipc: bool,
    pub(crate) host_users: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) security_context: PodSecurity,
    #[serde(deserialize_with = "or_default")]
    pub(crate) volumes: Vec<Map<String, Value>>,
    #[serde(deserialize_with = "or_default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ephemeral_containers: Vec<Container>,
}

/// The lists of containers, in the order in which they are looked at.
pub(crate) const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", EPHEMERAL];
/// The containers that a running pod may be given.
pub(crate) const EPHEMERAL: &str = "ephemeralContainers";

impl Spec {
    /// The service account; the older field counts where the newer is empty.
    pub(crate) fn service_account(&self) -> &str {
        if self.service_account_name.is_empty() { &self.service_account } else { &self.service_account_name }
    }

    /// The lists of containers beside their names.
    pub(crate) fn lists(&self) -> [(&'static str, &[Container]); 3] {
        let [init, usual, ephemeral] = CONTAINER_LISTS;
        [(init, &self.init_containers), (usual, &self.containers), (ephemeral, &self.ephemeral_containers)]
    }

    pub(crate) fn lists_mut(&mut self) -> [(&'static str, &mut Vec<Container>); 3] {
        let [init, usual, ephemeral] = CONTAINER_LISTS;
        [
            (init, &mut self.init_containers),
            (usual, &mut self.containers),
            (ephemeral, &mut self.ephemeral_containers),
        ]
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Os {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodSecurity {
    pub(crate) supplemental_groups: Option<Vec<i64>>,
    pub(crate) fs_group: Option<i64>,
    pub(crate) se_linux_options: Option<SeLinuxOptions>,
    pub(crate) seccomp_profile: Option<SeccompProfile>,
    pub(crate) run_as_user: Option<i64>,
    pub(crate) run_as_non_root: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) sysctls: Vec<Sysctl>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Sysctl {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SeccompProfile {
    pub(crate) r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) localhost_profile: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Container {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<Port>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) security_context: ContainerSecurity,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Port {
    #[serde(deserialize_with = "or_default")]
    pub(crate) host_port: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerSecurity {
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) privileged: Option<bool>,
    pub(crate) se_linux_options: Option<SeLinuxOptions>,
    pub(crate) run_as_user: Option<i64>,
    pub(crate) run_as_non_root: Option<bool>,
    pub(crate) read_only_root_filesystem: Option<bool>,
    pub(crate) allow_privilege_escalation: Option<bool>,
    pub(crate) seccomp_profile: Option<SeccompProfile>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) add: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drop: Option<Vec<String>>,
}

impl PodView {
    /// Reads a pod, or a template of one.
    pub(crate) fn read(pod: &Value) -> Result<Self, serde_json::Error> {
        // An array would read as an object's fields in their order, and could not be written to.
        match misplaced_array(pod) {
            Some(field) => Err(Error::custom(format!("{field} is not an object"))),
            None => Self::deserialize(pod),
        }
    }

    /// Writes what differs between two readings into the pod that the first is of.
    pub(crate) fn write_changes(before: &Self, after: &Self, pod: &mut Value) {
        for (key, value) in &after.metadata.annotations {
            if before.metadata.annotations.get(key) != Some(value) {
                annotate(pod, key, value);
            }
        }
        let Some(spec) = pod.as_object_mut().map(|pod| child(pod, "spec")) else { return };
        let (old, new) = (&before.spec.security_context, &after.spec.security_context);
        let changes = [
            changed("supplementalGroups", &old.supplemental_groups, &new.supplemental_groups),
            changed("fsGroup", &old.fs_group, &new.fs_group),
            changed("seLinuxOptions", &old.se_linux_options, &new.se_linux_options),
            changed("seccompProfile", &old.seccomp_profile, &new.seccomp_profile),
        ];
        write(spec, changes);
        for ((list, old), (_, new)) in before.spec.lists().into_iter().zip(after.spec.lists()) {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for ((old, new), container) in old.iter().zip(new).zip(containers) {
                if let Some(container) = container.as_object_mut() {
                    write(container, old.security_context.changes(&new.security_context));
                }
            }
        }
    }
}

/// Sets an annotation of an object.
pub(crate) fn annotate(object: &mut Value, key: &str, value: &str) {
    if let Some(object) = object.as_object_mut() {
        child(child(object, "metadata"), "annotations").insert(key.to_owned(), value.into());
    }
}

/// The first field that has an array where an object is due.
fn misplaced_array(pod: &Value) -> Option<&'static str> {
    let containers =
        || CONTAINER_LISTS.into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let mut fields = [
        ("the pod", pod),
        ("metadata", &pod["metadata"]),
        ("spec", &pod["spec"]),
        ("spec.securityContext", &pod["spec"]["securityContext"]),
    ]
    .into_iter()
    .chain(containers().map(|container| ("a container", container)))
    .chain(containers().map(|container| ("a container's securityContext", &container["securityContext"])));
    fields.find(|(_, value)| value.is_array()).map(|(field, _)| field)
}

impl ContainerSecurity {
    fn changes(&self, new: &Self) -> [Option<(&'static str, Value)>; 7] {
        [
            changed("capabilities", &self.capabilities, &new.capabilities),
            changed("seLinuxOptions", &self.se_linux_options, &new.se_linux_options),
            changed("runAsUser", &self.run_as_user, &new.run_as_user),
            changed("runAsNonRoot", &self.run_as_non_root, &new.run_as_non_root),
            changed(
                "readOnlyRootFilesystem",
                &self.read_only_root_filesystem,
                &new.read_only_root_filesystem,
            ),
            changed(
                "allowPrivilegeEscalation",
                &self.allow_privilege_escalation,
                &new.allow_privilege_escalation,
            ),
            changed("seccompProfile", &self.seccomp_profile, &new.seccomp_profile),
        ]
    }
}

/// The field and its new value, null where it has none any more.
fn changed<T: PartialEq + Serialize>(
    field: &'static str,
    old: &Option<T>,
    new: &Option<T>,
) -> Option<(&'static str, Value)> {
    (old != new).then(|| (field, json!(new)))
}

fn write<const N: usize>(owner: &mut Map<String, Value>, changes: [Option<(&'static str, Value)>; N]) {
    for (field, value) in changes.into_iter().flatten() {
        let security = child(owner, "securityContext");
        if value.is_null() {
            security.remove(field);
        } else {
            security.insert(field.to_owned(), value);
        }
    }
}

/// An object's field that is an object; it is made where there is none.
fn child<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(field).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(child) => child,
        _ => unreachable!("it was just made one"),
    }
}
