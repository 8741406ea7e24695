//! Service accounts of the cluster, read with the server's own identity: they are OAuth clients too.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use picoshift_machinery::{Object, Status};
use tokio::time::timeout;

use crate::groups::oauth::ServiceAccounts;

/// Time of a request.
const WITHIN: Duration = Duration::from_secs(10);

/// Reads service accounts from kube-apiserver.
pub struct KubeServiceAccounts {
    client: Client,
}

impl KubeServiceAccounts {
    /// A reader that asks `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl ServiceAccounts for KubeServiceAccounts {
    async fn service_account(&self, namespace: &str, name: &str) -> Result<Object, Status> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), namespace);
        let answer = timeout(WITHIN, accounts.get(name)).await;
        let account =
            match answer.map_err(|_| Status::internal("no answer about a service account in time"))? {
                Ok(account) => account,
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    return Err(Status::not_found("", "serviceaccounts", name));
                }
                Err(error) => {
                    return Err(Status::internal(format_args!("service accounts cannot be read: {error}")));
                }
            };
        let value = serde_json::to_value(account).map_err(Status::internal)?;
        Object::from_value(value).ok_or_else(|| Status::internal("a service account is no object"))
    }
}
