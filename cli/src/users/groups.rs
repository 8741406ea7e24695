//! Membership in Groups of user.openshift.io.

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// How often a change is tried when somebody else changes the same Group.
const TRIES: usize = 10;

/// The Groups of the cluster.
pub(crate) struct Groups {
    api: Api<DynamicObject>,
}

impl Groups {
    /// The Groups that `client` reaches.
    pub(crate) fn new(client: Client) -> Self {
        Self { api: Api::all_with(client, &resource("Group")) }
    }

    /// All Groups with their members.
    pub(crate) async fn list(&self) -> Result<Vec<(String, Vec<String>)>> {
        let list = self.api.list(&ListParams::default()).await.context("cannot list the Groups")?;
        Ok(list
            .items
            .iter()
            .map(|group| (group.metadata.name.clone().unwrap_or_default(), members(group)))
            .collect())
    }

    /// Puts a user into a Group, which is made when there is none.
    pub(crate) async fn add(&self, group: &str, user: &str) -> Result<()> {
        let what = || format!("cannot put {user} into the Group {group}");
        for _ in 0..TRIES {
            let Some(found) = self.api.get_opt(group).await.with_context(what)? else {
                let new: DynamicObject = serde_json::from_value(json!({
                    "apiVersion": "user.openshift.io/v1",
                    "kind": "Group",
                    "metadata": {"name": group, "labels": {"app.kubernetes.io/managed-by": "picoshift"}},
                    "users": [user],
                }))?;
                match self.api.create(&PostParams::default(), &new).await {
                    Err(kube::Error::Api(status)) if status.is_already_exists() => continue,
                    created => return created.map(drop).with_context(what),
                }
            };
            let mut users = members(&found);
            if users.iter().any(|member| member == user) {
                return Ok(());
            }
            users.push(user.to_owned());
            if self.set(&found, &users).await.with_context(what)? {
                return Ok(());
            }
        }
        anyhow::bail!("{}: it changes all the time", what())
    }

    /// Takes a user out of every Group.
    pub(crate) async fn remove_everywhere(&self, user: &str) -> Result<()> {
        for (group, members) in self.list().await? {
            if members.iter().any(|member| member == user) {
                self.remove(&group, user).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, group: &str, user: &str) -> Result<()> {
        let what = || format!("cannot take {user} out of the Group {group}");
        for _ in 0..TRIES {
            let Some(found) = self.api.get_opt(group).await.with_context(what)? else { return Ok(()) };
            let mut users = members(&found);
            users.retain(|member| member != user);
            if self.set(&found, &users).await.with_context(what)? {
                return Ok(());
            }
        }
        anyhow::bail!("{}: it changes all the time", what())
    }

    /// Writes the members unless the Group has changed since; says whether it was written.
    async fn set(&self, group: &DynamicObject, users: &[String]) -> kube::Result<bool> {
        let patch: Value =
            json!({"metadata": {"resourceVersion": group.metadata.resource_version}, "users": users});
        let name = group.metadata.name.as_deref().unwrap_or_default();
        match self.api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            patched => patched.map(|_| true),
        }
    }
}

fn members(group: &DynamicObject) -> Vec<String> {
    let users = group.data["users"].as_array();
    users.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A kind of user.openshift.io.
pub(super) fn resource(kind: &str) -> ApiResource {
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk("user.openshift.io", "v1", kind));
    if kind == "Identity" {
        "identities".clone_into(&mut resource.plural);
    }
    resource
}
