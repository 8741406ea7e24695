//! The Lease in kube-apiserver.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;

use super::{LeaseError, Leases};

/// One Lease.
pub struct KubeLease {
    api: Api<Lease>,
    name: String,
}

impl KubeLease {
    /// The Lease `name` in `namespace`.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.to_owned() }
    }
}

#[async_trait]
impl Leases for KubeLease {
    fn watch(&self) -> BoxStream<'static, Option<Lease>> {
        let changes = watch_object(self.api.clone(), &self.name).default_backoff();
        let changes = changes.filter_map(|change| async {
            match change {
                Ok(lease) => Some(lease),
                Err(error) => {
                    tracing::warn!(%error, "cannot watch the lease");
                    None
                }
            }
        });
        changes.boxed()
    }

    async fn get(&self) -> Result<Option<Lease>, LeaseError> {
        self.api.get_opt(&self.name).await.map_err(failed)
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        let mut lease = lease.clone();
        lease.metadata.name = Some(self.name.clone());
        self.api.create(&PostParams::default(), &lease).await.map_err(failed)
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, LeaseError> {
        self.api.replace(&self.name, &PostParams::default(), lease).await.map_err(failed)
    }
}

fn failed(error: kube::Error) -> LeaseError {
    match error {
        kube::Error::Api(status) if status.code == 409 => LeaseError::Conflict,
        // A Lease that was deleted meanwhile is not ours any more.
        kube::Error::Api(status) if status.code == 404 => LeaseError::Conflict,
        error => LeaseError::Failed(error.to_string()),
    }
}
