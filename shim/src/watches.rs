//! What the shim learns of the cluster by watches: two ConfigMaps, APIServices, and which OAuth access tokens there are.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{ApiResource, DynamicObject};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use picoshift_machinery::readiness::{Checks, Latch, Shown};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::direct::{ApiService, Direct};
use crate::documents::Documents;
use crate::revocation::Revocations;

const NAMESPACE: &str = "openshift-config-managed";

/// What a watch tells.
enum Told<K> {
    /// These are all there are.
    All(Vec<K>),
    /// One is there, or looks like this now.
    One(K),
    /// One is gone.
    Gone(K),
}

/// Who is told.
#[derive(Clone, Debug)]
pub struct Listeners {
    /// The documents that we serve.
    pub documents: Arc<Documents>,
    /// The groups of our API server.
    pub direct: Arc<Direct>,
    /// The tokens.
    pub revocations: Revocations,
}

/// Starts the watches; they end with the set.
#[must_use]
pub fn start(client: &Client, listeners: &Listeners, checks: &Checks) -> JoinSet<()> {
    let latch = |name: &str| checks.latch(name, Shown::OnlyReady, "not read yet");
    let mut tasks = JoinSet::new();

    let documents = Arc::clone(&listeners.documents);
    tasks.spawn(follow_one(client.clone(), "oauth-openshift", latch("oauth-metadata-read"), move |map| {
        documents.set_oauth_metadata(value(map, "oauthMetadata"));
    }));
    let documents = Arc::clone(&listeners.documents);
    tasks.spawn(follow_one(client.clone(), "console-public", latch("console-url-read"), move |map| {
        documents.set_console(value(map, "consoleURL"));
    }));

    let direct = Arc::clone(&listeners.direct);
    let services = Api::<APIService>::all(client.clone());
    let all = watcher::Config::default();
    tasks.spawn(follow(services, all.clone(), latch("direct-groups-read"), move |told| match told {
        Told::All(services) => direct.replace(services.into_iter().map(read).collect()),
        Told::One(service) => direct.apply(read(service)),
        Told::Gone(service) => direct.remove(&service.name_any()),
    }));

    let revocations = listeners.revocations.clone();
    let kind = GroupVersionKind::gvk("oauth.openshift.io", "v1", "OAuthAccessToken");
    let resource = ApiResource::from_gvk_with_plural(&kind, "oauthaccesstokens");
    let tokens = Api::<PartialObjectMeta<DynamicObject>>::all_with(client.clone(), &resource);
    tasks.spawn(follow(tokens, all, latch("tokens-read"), move |told| match told {
        Told::All(tokens) => {
            let names: Vec<String> = tokens.iter().map(kube::ResourceExt::name_any).collect();
            revocations.replace(names.iter().map(String::as_str));
        }
        Told::One(token) => revocations.add(&token.name_any()),
        Told::Gone(token) => revocations.remove(&token.name_any()),
    }));
    tasks
}

fn value(map: Option<ConfigMap>, key: &str) -> Option<String> {
    map?.data?.remove(key)
}

fn read(service: APIService) -> ApiService {
    let name = service.name_any();
    let spec = service.spec.unwrap_or_default();
    ApiService {
        name,
        group: spec.group.unwrap_or_default(),
        version: spec.version.unwrap_or_default(),
        service: spec.service.and_then(|service| Some((service.namespace?, service.name?))),
    }
}

/// Tells of one ConfigMap: what it holds, or that it is not there.
async fn follow_one(
    client: Client,
    name: &'static str,
    ready: Latch,
    tell: impl Fn(Option<ConfigMap>) + Send + 'static,
) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    follow(Api::namespaced(client, NAMESPACE), config, ready, move |told| match told {
        Told::All(mut maps) => tell(maps.pop()),
        Told::One(map) => tell(Some(map)),
        Told::Gone(_) => tell(None),
    })
    .await;
}

/// Tells all that happens to the objects of `api`. An interrupted watch is taken up again; what was told stays true meanwhile.
async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    ready: Latch,
    tell: impl Fn(Told<K>) + Send + 'static,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Send,
{
    let mut listed = Vec::new();
    let mut events = watcher(api, config).backoff(Pauses::default()).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => listed.push(object),
            Ok(Event::InitDone) => {
                tell(Told::All(std::mem::take(&mut listed)));
                ready.release();
            }
            Ok(Event::Apply(object)) => tell(Told::One(object)),
            Ok(Event::Delete(object)) => tell(Told::Gone(object)),
            Err(error) => match answered(&error) {
                // Our API server may come up after us: what is not served yet has nothing to tell.
                Some(404 | 503) => ready.release(),
                // Whoever gives us the right may have to come through us first.
                Some(code) => {
                    ready.release();
                    tracing::warn!(code, %error, "a watch is refused");
                }
                None => tracing::debug!(%error, "a watch was interrupted"),
            },
        }
    }
}

/// The code of an answer that is no watch; `None` when there was no answer.
fn answered(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// Pauses between tries: a revoked token must not be good for long because a server was away.
#[derive(Debug, Default)]
struct Pauses {
    tries: u32,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.tries = (self.tries + 1).min(5);
        Some(Duration::from_millis(50 << self.tries))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_short() {
        let mut pauses = Pauses::default();
        let first: Vec<u128> = pauses.by_ref().take(7).map(|pause| pause.as_millis()).collect();
        assert_eq!(first, [100, 200, 400, 800, 1600, 1600, 1600]);
        pauses.reset();
        assert_eq!(pauses.next(), Some(Duration::from_millis(100)));
    }
}
