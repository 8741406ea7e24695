//! Feeds the index: one task per collection that lists it, follows it by a watch, and lists again when it has to.
//!
//! Done here and not by kube's `watcher`, because the index needs the revisions of lists and bookmarks: they move its
//! clock where no object does, so that revisions never fall behind what clients were given before a restart.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use picoshift_machinery::Object;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::render;
use super::visibility::Visibility;
use super::visibility::index::{Binding, Index, Key, Source};
use super::visibility::rules::{Access, RuleDoc};
use super::visibility::subjects::SubjectDoc;
use crate::rest::Item;
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
pub(crate) fn start(client: &Client, visibility: &Arc<Visibility>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(follow::<Object>(client.clone(), visibility.clone(), Source::Namespaces));
    for source in [Source::Roles, Source::ClusterRoles] {
        tasks.spawn(follow::<RoleDoc>(client.clone(), visibility.clone(), source));
    }
    for source in [Source::RoleBindings, Source::ClusterRoleBindings] {
        tasks.spawn(follow::<BindingDoc>(client.clone(), visibility.clone(), source));
    }
    tasks
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

/// What a collection's objects mean for the index.
trait Document: DeserializeOwned + Clone + Send + 'static {
    /// What is kept of an object, made outside the index' lock; `None` for an object that cannot be.
    type Part: Send;
    fn part(self) -> Option<(Self::Part, Revision)>;
    fn set(index: &mut Index, source: Source, part: Self::Part, revision: Revision);
    fn remove(index: &mut Index, source: Source, part: Self::Part, revision: Revision);
    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision);
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

async fn follow<D: Document>(client: Client, visibility: Arc<Visibility>, source: Source) {
    let mut retry = RETRY_MIN;
    let mut from: Option<Revision> = None;
    loop {
        let step = match from {
            None => list::<D>(&client, &visibility, source).await.map(|revision| from = Some(revision)),
            Some(revision) => watch::<D>(&client, &visibility, source, revision, &mut from).await,
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

async fn list<D: Document>(
    client: &Client,
    visibility: &Visibility,
    source: Source,
) -> Result<Revision, Break> {
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
            visibility.change(|index| D::reset(index, source, parts, revision));
            return Ok(revision);
        }
        token = page.metadata.continue_token;
    }
}

/// Follows a watch until it ends; `from` moves with it.
async fn watch<D: Document>(
    client: &Client,
    visibility: &Visibility,
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
                    visibility.change(|index| D::set(index, source, part, revision));
                    revision
                })
            }
            WatchEvent::Deleted(document) => document.part().map(|(part, revision)| {
                visibility.change(|index| D::remove(index, source, part, revision));
                revision
            }),
            WatchEvent::Bookmark(mark) => mark.metadata.resource_version.parse().ok().inspect(|revision| {
                visibility.change(|index| index.progress(source, *revision));
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

impl Document for Object {
    type Part = Arc<Item>;

    fn part(self) -> Option<(Arc<Item>, Revision)> {
        let item = render::item(self)?;
        let revision = item.revision;
        Some((item, revision))
    }

    fn set(index: &mut Index, _source: Source, item: Arc<Item>, _revision: Revision) {
        index.set_namespace(item);
    }

    fn remove(index: &mut Index, _source: Source, item: Arc<Item>, _revision: Revision) {
        index.remove_namespace(&item);
    }

    fn reset(index: &mut Index, _source: Source, items: Vec<Arc<Item>>, revision: Revision) {
        index.reset_namespaces(items, revision, |old, new| {
            old.revision != new.revision && uid(old) != uid(new)
        });
    }
}

fn uid(item: &Item) -> Option<String> {
    item.object().ok().map(|object| object.uid().to_owned())
}

/// Metadata of an RBAC object, as far as it matters.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
}

impl Meta {
    fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    fn revision(&self) -> Option<Revision> {
        self.resource_version.parse().ok()
    }
}

#[derive(Clone, Deserialize)]
struct RoleDoc {
    metadata: Meta,
    #[serde(default)]
    rules: Option<Vec<RuleDoc>>,
}

impl Document for RoleDoc {
    type Part = (Key, Access);

    fn part(self) -> Option<(Self::Part, Revision)> {
        let access = Access::of(self.rules.as_deref().unwrap_or_default());
        Some(((self.metadata.key(), access), self.metadata.revision()?))
    }

    fn set(index: &mut Index, source: Source, (key, access): Self::Part, revision: Revision) {
        index.set_role(source, key, access, revision);
    }

    fn remove(index: &mut Index, source: Source, (key, _): Self::Part, revision: Revision) {
        index.set_role(source, key, Access::default(), revision);
    }

    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision) {
        index.reset_roles(source, parts, revision);
    }
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BindingDoc {
    metadata: Meta,
    role_ref: RoleRef,
    #[serde(default)]
    subjects: Option<Vec<SubjectDoc>>,
}

#[derive(Clone, Deserialize)]
struct RoleRef {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

impl Document for BindingDoc {
    type Part = (Key, Binding);

    fn part(self) -> Option<(Self::Part, Revision)> {
        let namespace = &self.metadata.namespace;
        let subjects = self.subjects.iter().flatten().filter_map(|s| s.subject(namespace)).collect();
        let role = match self.role_ref.kind.as_str() {
            "ClusterRole" => Key::new("", &self.role_ref.name),
            // A ClusterRoleBinding to a Role is refused by kube-apiserver; here it finds no role.
            _ => Key::new(if namespace.is_empty() { "." } else { namespace }, &self.role_ref.name),
        };
        Some(((self.metadata.key(), Binding { role, subjects }), self.metadata.revision()?))
    }

    fn set(index: &mut Index, source: Source, (key, binding): Self::Part, revision: Revision) {
        index.set_binding(source, key, Some(binding), revision);
    }

    fn remove(index: &mut Index, source: Source, (key, _): Self::Part, revision: Revision) {
        index.set_binding(source, key, None, revision);
    }

    fn reset(index: &mut Index, source: Source, parts: Vec<Self::Part>, revision: Revision) {
        index.reset_bindings(source, parts, revision);
    }
}
