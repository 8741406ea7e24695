//! A watch that never ends, told to an index.

use std::fmt::Debug;

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::metrics::ControllerMetrics;
use crate::ready::Readiness;

/// What a controller remembers of the objects of one kind.
pub trait Index<K> {
    /// These are all there are.
    fn replace(&self, objects: Vec<K>);
    /// One is there, or looks like this now.
    fn apply(&self, object: K);
    /// One is gone.
    fn delete(&self, object: K);
}

/// Keeps `index` as kube-apiserver says. `part` is missing in `ready` until all objects have been read; an interrupted
/// watch is taken up again, with growing pauses, and the index stays as it was meanwhile.
///
/// A resource that is not served has no objects: the controller has nothing to do, which is no failure.
pub async fn follow<K>(
    api: Api<K>,
    part: &'static str,
    index: &impl Index<K>,
    ready: &Readiness,
    metrics: &ControllerMetrics,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow_some(api, watcher::Config::default(), part, index, ready, metrics).await;
}

/// As [`follow`], of the objects that `selection` selects.
pub async fn follow_some<K>(
    api: Api<K>,
    selection: watcher::Config,
    part: &'static str,
    index: &impl Index<K>,
    ready: &Readiness,
    metrics: &ControllerMetrics,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    ready.missing(part, "not read yet");
    let mut read = false;
    let mut listed = Vec::new();
    let mut events = watcher(api, selection).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => listed.push(object),
            Ok(Event::InitDone) => {
                index.replace(std::mem::take(&mut listed));
                ready.found(part);
                read = true;
            }
            Ok(Event::Apply(object)) => index.apply(object),
            Ok(Event::Delete(object)) => index.delete(object),
            Err(error) if is_not_served(&error) => {
                tracing::debug!(part, "not served yet");
                index.replace(Vec::new());
                ready.found(part);
            }
            Err(error) => {
                metrics.watch_errors.inc();
                tracing::warn!(part, %error, "a watch was interrupted");
                if !read {
                    ready.missing(part, error.to_string());
                }
            }
        }
    }
}

fn is_not_served(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}
