//! The Secret of the bootstrap administrator, read with the server's own identity each time that it is needed, so that a
//! change counts at once.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, Client};
use picoshift_machinery::Object;
use picoshift_machinery::bootstrap_user::{BootstrapUser, LOGIN_NAME, SECRET_NAMESPACE};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::groups::oauth::BootstrapSecret;

/// Time of all requests together.
const WITHIN: Duration = Duration::from_secs(10);

/// Reads the Secret from kube-apiserver.
pub struct KubeBootstrapSecret {
    client: Client,
    /// When its namespace was made; that never changes.
    namespace_created: OnceCell<Timestamp>,
}

impl KubeBootstrapSecret {
    /// A reader that asks `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, namespace_created: OnceCell::new() }
    }

    async fn read(&self) -> Result<Option<BootstrapUser>, String> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), SECRET_NAMESPACE);
        let found = secrets.get_opt(LOGIN_NAME).await.map_err(|error| error.to_string())?;
        let Some(secret) = found else { return Ok(None) };
        let created = self.namespace_created.get_or_try_init(|| self.created()).await?;
        let value = serde_json::to_value(secret).map_err(|error| error.to_string())?;
        let secret = Object::from_value(value).unwrap_or_default();
        BootstrapUser::of_secret(&secret, *created).map_err(|error| error.to_string())
    }

    async fn created(&self) -> Result<Timestamp, String> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let namespace = namespaces.get(SECRET_NAMESPACE).await.map_err(|error| error.to_string())?;
        let created = namespace.metadata.creation_timestamp;
        created.map(|time| time.0).ok_or_else(|| format!("{SECRET_NAMESPACE} has no time of creation"))
    }
}

#[async_trait]
impl BootstrapSecret for KubeBootstrapSecret {
    async fn bootstrap_user(&self) -> Result<Option<BootstrapUser>, String> {
        let late = || Err(format!("no answer about the secret {LOGIN_NAME} in time"));
        timeout(WITHIN, self.read()).await.unwrap_or_else(|_| late())
    }
}
