//! What the OAuth server needs in the cluster, made and kept as it should be by whoever leads: namespaces, keys of
//! sessions, its own clients, and where clients look for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::runtime::watcher;
use kube::{Api as KubeApi, Client};

use super::api::Api;
use crate::backoff::Backoff;
use crate::manager::{Controller, Failure, Run};
use crate::queue::{Outcome, Queue};
use crate::watch::{Index, follow_some};

mod desired;

use desired::Desired;

/// The server's namespace.
pub const AUTHENTICATION: &str = "openshift-authentication";
/// The Secret with the keys of sessions, and its key.
pub const SESSION: &str = "v4-0-config-system-session";
const MANAGED: &str = "openshift-config-managed";
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(60), attempts: u32::MAX };

/// The controller.
pub struct Upkeep {
    client: Client,
    desired: Arc<Desired>,
}

impl Upkeep {
    /// A controller for the server at `issuer`, whose certificate the authorities in `ca_file` vouch for.
    #[must_use]
    pub fn new(client: Client, issuer: &str, ca_file: Option<PathBuf>) -> Self {
        Self { client, desired: Arc::new(Desired::new(issuer, ca_file)) }
    }
}

#[async_trait]
impl Controller for Upkeep {
    fn name(&self) -> &'static str {
        "oauth-clients"
    }

    async fn run(&self, run: Run) -> Result<(), Failure> {
        let queue = Queue::new(BACKOFF, run.metrics.clone());
        let all = Kept { desired: &self.desired, queue: &queue };
        for place in self.desired.places() {
            queue.add(place);
        }
        let gvk = GroupVersionKind::gvk("oauth.openshift.io", "v1", "OAuthClient");
        let clients = ApiResource { plural: "oauthclients".to_owned(), ..ApiResource::from_gvk(&gvk) };
        let clients = KubeApi::<DynamicObject>::all_with(self.client.clone(), &clients);
        let maps =
            |namespace| KubeApi::<PartialObjectMeta<ConfigMap>>::namespaced(self.client.clone(), namespace);
        let secrets = KubeApi::<PartialObjectMeta<Secret>>::namespaced(self.client.clone(), AUTHENTICATION);
        let session = watcher::Config::default().fields(&format!("metadata.name={SESSION}"));
        let (ready, metrics, any) = (&run.ready, &run.metrics, watcher::Config::default);
        let reconcile = |place: String| self.reconcile(place);
        tokio::select! {
            () = queue.work(1, &run.stop, reconcile) => {}
            () = follow_some(clients, any(), "oauthclients", &all, ready, metrics) => {}
            () = follow_some(maps(MANAGED), any(), "managed configmaps", &all, ready, metrics) => {}
            () = follow_some(maps(AUTHENTICATION), any(), "configmaps", &all, ready, metrics) => {}
            () = follow_some(secrets, session, "session keys", &all, ready, metrics) => {}
        }
        Ok(())
    }
}

impl Upkeep {
    /// Brings the object at a path to what it should be.
    async fn reconcile(&self, place: String) -> Outcome {
        let api: &dyn Api = &self.client;
        let result = async {
            let current = api.find(&place).await?;
            let Some(wanted) = self.desired.wanted(&place, current.as_ref()) else { return Ok(()) };
            match current {
                None => api.create(place.rsplit_once('/').map_or("", |(folder, _)| folder), &wanted).await,
                Some(_) => api.replace(&place, &wanted).await,
            }
            .map(|_| tracing::info!(place, "brought to what it should be"))
        };
        match result.await {
            Ok(()) => Outcome::Done,
            Err(error) => {
                tracing::warn!(place, %error, "cannot be brought to what it should be");
                Outcome::Retry
            }
        }
    }
}

/// Looks again at what is kept whenever it changes.
struct Kept<'a> {
    desired: &'a Desired,
    queue: &'a Queue<String>,
}

impl Kept<'_> {
    fn look(&self, namespace: Option<&str>, name: &str) {
        if let Some(place) = self.desired.place(namespace, name) {
            self.queue.add(place);
        }
    }

    fn look_at_all(&self) {
        for place in self.desired.places() {
            self.queue.add(place);
        }
    }
}

impl<K: kube::ResourceExt> Index<K> for Kept<'_> {
    fn replace(&self, _objects: Vec<K>) {
        self.look_at_all();
    }

    fn apply(&self, object: K) {
        self.look(object.namespace().as_deref(), &object.name_any());
    }

    fn delete(&self, object: K) {
        self.look(object.namespace().as_deref(), &object.name_any());
    }
}
