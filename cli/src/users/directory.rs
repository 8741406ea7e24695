//! The users: passwords in the Secret, Groups, and what a login leaves (User, Identity).

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::json;

use super::groups::{Groups, resource};
use super::htpasswd::{self, Htpasswd};
use super::{KEY, NAMESPACE, PROVIDER, SECRET};
use crate::failure::Failure;

/// How often the Secret's change is tried when somebody else changes it too.
const TRIES: usize = 10;

/// One user, for people and programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// The name to log in with.
    pub(crate) name: String,
    /// The Groups that have it.
    pub(crate) groups: Vec<String>,
    /// Whether there is a User: it was logged in with.
    pub(crate) logged_in: bool,
}

/// The users of a cluster.
pub(crate) struct Directory {
    client: Client,
    secrets: Api<Secret>,
    /// The Groups.
    pub(super) groups: Groups,
}

impl Directory {
    /// The users of the cluster that `client` reaches.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), NAMESPACE),
            groups: Groups::new(client.clone()),
            client,
        }
    }

    /// Whether the Secret is there.
    pub(crate) async fn exists(&self) -> Result<bool> {
        Ok(self.secrets.get_opt(SECRET).await.context("cannot read the Secret of passwords")?.is_some())
    }

    /// Makes the Secret with these names and passwords.
    pub(super) async fn create(&self, users: &[(&str, &str)]) -> Result<()> {
        let hashes = users.iter().map(|(user, password)| Ok((*user, htpasswd::hash(password)?)));
        let hashes = hashes.collect::<Result<Vec<_>>>()?;
        self.change(|file| {
            hashes.iter().for_each(|(user, hash)| file.set(user, hash));
            Ok(())
        })
        .await
    }

    /// All who have a password, by name.
    pub(crate) async fn list(&self) -> Result<Vec<Entry>> {
        let (file, _) = self.read().await?;
        let groups = self.groups.list().await?;
        let users: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource("User"));
        let users = users.list(&ListParams::default()).await.context("cannot list the Users")?;
        let users: BTreeSet<String> = users.items.iter().map(ResourceExt::name_any).collect();
        let entry = |name: &str| Entry {
            name: name.to_owned(),
            groups: groups
                .iter()
                .filter(|(_, members)| members.iter().any(|member| member == name))
                .map(|(group, _)| group.clone())
                .collect(),
            logged_in: users.contains(name),
        };
        Ok(file.names().into_iter().map(entry).collect())
    }

    /// Adds a user, or with `replace` changes the password of one that is there.
    pub(crate) async fn add(
        &self,
        user: &str,
        password: &str,
        groups: &[String],
        replace: bool,
    ) -> Result<()> {
        htpasswd::check_name(user)?;
        let hash = htpasswd::hash(password)?;
        self.change(|file| {
            if file.has(user) && !replace {
                return Err(Failure::new(
                    format!("there is a user {user} already"),
                    "`--replace` gives it this password",
                ));
            }
            file.set(user, &hash);
            Ok(())
        })
        .await?;
        for group in groups {
            self.groups.add(group, user).await?;
        }
        Ok(())
    }

    /// Removes a user with all that its logins left: its tokens end with its User.
    pub(crate) async fn delete(&self, user: &str) -> Result<()> {
        self.change(|file| match file.remove(user) {
            true => Ok(()),
            false => {
                Err(Failure::new(format!("there is no user {user}"), "`picoshift user list` names them"))
            }
        })
        .await?;
        self.groups.remove_everywhere(user).await?;
        for (kind, name) in [("Identity", format!("{PROVIDER}:{user}")), ("User", user.to_owned())] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
            match api.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                deleted => drop(deleted.with_context(|| format!("cannot delete {kind} {name}"))?),
            }
        }
        Ok(())
    }

    async fn read(&self) -> Result<(Htpasswd, Option<Secret>)> {
        let secret = self.secrets.get_opt(SECRET).await.context("cannot read the Secret of passwords")?;
        let data = secret.as_ref().and_then(|secret| secret.data.as_ref()?.get(KEY));
        let text = data.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default();
        Ok((Htpasswd::parse(&text), secret))
    }

    /// Changes the password file; when somebody else does so meanwhile, anew.
    async fn change(&self, edit: impl Fn(&mut Htpasswd) -> Result<(), Failure>) -> Result<()> {
        for _ in 0..TRIES {
            let (mut file, found) = self.read().await?;
            edit(&mut file)?;
            let content = ByteString(file.text().into_bytes());
            let written = match found {
                Some(mut secret) => {
                    secret.data.get_or_insert_default().insert(KEY.to_owned(), content);
                    self.secrets.replace(SECRET, &PostParams::default(), &secret).await
                }
                None => {
                    let mut secret: Secret = serde_json::from_value(json!({
                        "metadata": {"name": SECRET, "labels": {"app.kubernetes.io/managed-by": "picoshift"}},
                    }))?;
                    secret.data.get_or_insert_default().insert(KEY.to_owned(), content);
                    self.secrets.create(&PostParams::default(), &secret).await
                }
            };
            match written {
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {}
                written => return written.map(drop).context("cannot write the Secret of passwords"),
            }
        }
        anyhow::bail!("the Secret {NAMESPACE}/{SECRET} changes all the time")
    }
}
