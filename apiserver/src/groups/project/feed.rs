//! Feeds the index, and who keeps RBAC whole: one task per collection that lists it, follows it by a watch, and lists again when it has to.
//!
//! Done here and not by kube's `watcher`, because the index needs the revisions of lists and bookmarks: they move its
//! clock where no object does, so that revisions never fall behind what clients were given before a restart.

mod documents;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use picoshift_machinery::Object;
use serde::Deserialize;
use tokio::task::JoinSet;

use self::documents::{BindingDoc, Document, RoleDoc};
use super::visibility::{Source, Visibility};
use crate::authz::rbac::Rbac;
use crate::store::Revision;

/// Objects per page of a list.
const PAGE: usize = 500;
/// How long kube-apiserver keeps a watch open.
const WATCH_SECONDS: u32 = 290;
/// A watch without an event or bookmark (one a minute) for this long is dead.
const SILENCE: Duration = Duration::from_secs(150);
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Starts the feed; it ends when the set is dropped.
pub(crate) fn start(client: &Client, visibility: &Arc<Visibility>, rbac: &Arc<Rbac>) -> JoinSet<()> {
    let fed = Fed { visibility: Arc::clone(visibility), rbac: Arc::clone(rbac) };
    let mut tasks = JoinSet::new();
    tasks.spawn(follow::<Object>(client.clone(), fed.clone(), Source::Namespaces));
    for source in [Source::Roles, Source::ClusterRoles] {
        tasks.spawn(follow::<RoleDoc>(client.clone(), fed.clone(), source));
    }
    for source in [Source::RoleBindings, Source::ClusterRoleBindings] {
        tasks.spawn(follow::<BindingDoc>(client.clone(), fed.clone(), source));
    }
    tasks
}

/// Who is told. RBAC first: who is woken by the index finds it.
#[derive(Clone)]
struct Fed {
    visibility: Arc<Visibility>,
    rbac: Arc<Rbac>,
}

fn path(source: Source) -> &'static str {
    match source {
        Source::Namespaces => "/api/v1/namespaces",
        Source::Roles => "/apis/rbac.authorization.k8s.io/v1/roles",
        Source::RoleBindings => "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        Source::ClusterRoles => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        Source::ClusterRoleBindings => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
}

/// Why a collection is listed again or a watch is opened again.
#[derive(Debug, thiserror::Error)]
enum Break {
    /// The revision is gone.
    #[error("the revision is too old")]
    Expired,
    /// kube-apiserver or the way to it failed.
    #[error(transparent)]
    Failed(#[from] kube::Error),
    /// The answer is none of kube-apiserver's.
    #[error("kube-apiserver answered without a resourceVersion")]
    NoRevision,
}

async fn follow<D: Document>(client: Client, fed: Fed, source: Source) {
    let mut retry = RETRY_MIN;
    let mut from: Option<Revision> = None;
    loop {
        let step = match from {
            None => list::<D>(&client, &fed, source).await.map(|revision| from = Some(revision)),
            Some(revision) => {
                let ended = watch::<D>(&client, &fed, source, revision, &mut from).await;
                // However fast kube-apiserver ends its watches.
                tokio::time::sleep(RETRY_MIN).await;
                ended
            }
        };
        match step {
            Ok(()) => retry = RETRY_MIN,
            Err(error) => {
                tracing::warn!(path = path(source), error = %error, "watching failed, trying again");
                if matches!(error, Break::Expired | Break::NoRevision) {
                    from = None;
                }
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
    }
}

#[derive(Deserialize)]
struct ListDoc<D> {
    metadata: ListMeta,
    items: Option<Vec<D>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    continue_token: String,
}

async fn list<D: Document>(client: &Client, fed: &Fed, source: Source) -> Result<Revision, Break> {
    let mut parts = Vec::new();
    let mut token = String::new();
    loop {
        let next = percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
        let page: ListDoc<D> = client
            .request(get(format!("{}?limit={PAGE}&continue={next}", path(source)))?)
            .await
            .map_err(broken)?;
        parts.extend(page.items.into_iter().flatten().filter_map(D::part).map(|(part, _)| part));
        if page.metadata.continue_token.is_empty() {
            let revision = page.metadata.resource_version.parse().map_err(|_| Break::NoRevision)?;
            tracing::debug!(path = path(source), revision, objects = parts.len(), "listed");
            D::note_all(&fed.rbac, source, &parts);
            fed.visibility.change(|index| D::reset(index, source, parts, revision));
            return Ok(revision);
        }
        token = page.metadata.continue_token;
    }
}

/// Follows a watch until it ends; `from` moves with it.
async fn watch<D: Document>(
    client: &Client,
    fed: &Fed,
    source: Source,
    revision: Revision,
    from: &mut Option<Revision>,
) -> Result<(), Break> {
    let query = format!(
        "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={revision}",
        path(source)
    );
    let opening = client.request_events::<D>(get(query)?);
    let Ok(opened) = tokio::time::timeout(SILENCE, opening).await else { return Ok(()) };
    let mut events: BoxStream<'static, kube::Result<WatchEvent<D>>> = opened.map_err(broken)?.boxed();
    while let Ok(Some(event)) = tokio::time::timeout(SILENCE, events.next()).await {
        let reached = match event.map_err(broken)? {
            WatchEvent::Added(document) | WatchEvent::Modified(document) => {
                document.part().map(|(part, revision)| {
                    D::note(&fed.rbac, &part);
                    fed.visibility.change(|index| D::set(index, source, part, revision));
                    revision
                })
            }
            WatchEvent::Deleted(document) => document.part().map(|(part, revision)| {
                D::note_gone(&fed.rbac, &part);
                fed.visibility.change(|index| D::remove(index, source, part, revision));
                revision
            }),
            WatchEvent::Bookmark(mark) => mark.metadata.resource_version.parse().ok().inspect(|revision| {
                fed.visibility.change(|index| index.progress(source, *revision));
            }),
            WatchEvent::Error(status) => return Err(broken(kube::Error::Api(status))),
        };
        *from = reached.max(*from);
    }
    Ok(())
}

fn get(uri: String) -> Result<Request<Vec<u8>>, Break> {
    Request::get(uri).body(Vec::new()).map_err(|e| Break::Failed(kube::Error::HttpError(e)))
}

fn broken(error: kube::Error) -> Break {
    match error {
        kube::Error::Api(status) if status.code == 410 => Break::Expired,
        error => Break::Failed(error),
    }
}
