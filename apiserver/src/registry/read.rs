//! get, list and watch of a stored resource: from memory, from bytes encoded once.

use std::sync::Arc;
use std::time::Duration;

use picoshift_machinery::Status;

use super::Registry;
use super::cache::View;
use super::commit::store_status;
use super::page::{Continue, expired};
use super::select::Selection;
use super::watch::{self, Start};
use crate::rest::options::VersionMatch;
use crate::rest::{GetOptions, Item, Items, List, ListOptions, RequestContext, Watch};
use crate::store::Revision;

/// How long a read waits for a revision that is not there yet, as kube-apiserver's watch cache does.
const FRESH_WAIT: Duration = Duration::from_secs(3);

impl Registry {
    pub(super) async fn get_item(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &GetOptions,
    ) -> Result<Arc<Item>, Status> {
        self.wait_for(options.resource_version.unwrap_or(0)).await?;
        self.cache.get(&cx.info.namespace, name).ok_or_else(|| self.not_found(name))
    }

    pub(super) async fn list_items(
        &self,
        cx: &RequestContext,
        options: &ListOptions,
    ) -> Result<List, Status> {
        let selection = Selection::new(self.strategy.resource(), &cx.info.namespace, options);
        let token = match options.continue_token.as_str() {
            "" => None,
            text => Some(Continue::decode(text)?),
        };
        let view = self.view(options, token.as_ref(), selection.namespace()).await?;
        // Upstream's watch cache answers revision 0, and it knows no pages.
        if token.is_none() && (options.limit == 0 || options.resource_version == Some(0)) {
            return Ok(whole(&view, &selection));
        }
        // Nor does it when a page is asked to go on at revision 0.
        let limit = if options.resource_version == Some(0) { 0 } else { options.limit };
        Ok(page(&view, &selection, token.as_ref(), limit))
    }

    async fn view(
        &self,
        options: &ListOptions,
        token: Option<&Continue>,
        namespace: &str,
    ) -> Result<View, Status> {
        if let Some(token) = token {
            let Some(revision) = token.revision() else { return Ok(self.cache.newest()) };
            self.wait_for(revision).await?;
            return self.view_at(revision, namespace).await?.ok_or_else(|| expired(token));
        }
        let revision = options.resource_version.unwrap_or(0);
        self.wait_for(revision).await?;
        // A page of a revision is of exactly that revision, if nothing else is said.
        let page = options.version_match.is_none() && options.limit > 0 && revision > 0;
        if page || options.version_match == Some(VersionMatch::Exact) {
            let too_old = || Status::expired("The resourceVersion for the provided list is too old.");
            return self.view_at(revision, namespace).await?.ok_or_else(too_old);
        }
        Ok(self.cache.newest())
    }

    /// The state at a revision: from memory, or, as upstream, from the store where memory does not go back so far.
    async fn view_at(&self, revision: Revision, namespace: &str) -> Result<Option<View>, Status> {
        if let Some(view) = self.cache.at(revision) {
            return Ok(Some(view));
        }
        let (cache, namespace) = (Arc::clone(&self.cache), namespace.to_owned());
        let read = tokio::task::spawn_blocking(move || cache.stored_at(revision, &namespace));
        let read = read.await.map_err(Status::internal)?;
        read.map_err(|error| store_status(&error))
    }

    pub(super) async fn open_watch(
        &self,
        cx: &RequestContext,
        options: &ListOptions,
    ) -> Result<Watch, Status> {
        let selection = Selection::new(self.strategy.resource(), &cx.info.namespace, options);
        let revision = options.resource_version.unwrap_or(0);
        // A watch from nowhere begins with the state, in either way of asking for it.
        let start = if options.send_initial_events.unwrap_or(revision == 0) {
            if let Err(status) = self.wait_for(revision).await {
                return Ok(watch::refused(status));
            }
            Start::Initial(self.cache.newest())
        } else if revision == 0 {
            Start::After(self.cache.newest().revision)
        } else {
            Start::After(revision)
        };
        Ok(watch::open(Arc::clone(&self.cache), Arc::clone(&self.strategy), selection, start, options))
    }

    /// Waits until the store has reached a revision.
    async fn wait_for(&self, revision: Revision) -> Result<(), Status> {
        if revision == 0 || self.cache.revision() >= revision {
            return Ok(());
        }
        let mut changed = self.cache.changed();
        let reached = async { while self.cache.revision() < revision && changed.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(FRESH_WAIT, reached).await;
        let current = self.cache.revision();
        if current >= revision {
            return Ok(());
        }
        Err(Status::timeout(format!("Too large resource version: {revision}, current: {current}"), 1)
            .with_cause("ResourceVersionTooLarge", "Too large resource version", ""))
    }
}

/// All that is selected.
fn whole(view: &View, selection: &Selection) -> List {
    let items = match selection.namespace() {
        _ if !selection.selects_all_names() => Items::Picked(picked(view, selection)),
        "" => Items::Whole(view.tree.chunks().to_vec()),
        namespace => Items::Whole(view.tree.namespace_chunks(namespace)),
    };
    List { revision: view.revision, continue_token: String::new(), remaining: None, items }
}

fn picked(view: &View, selection: &Selection) -> Vec<Arc<Item>> {
    let within = selection.within(&view.tree, None);
    within.filter(|item| selection.matches(item)).cloned().collect()
}

/// One page; `limit` 0 takes all that is left.
fn page(view: &View, selection: &Selection, token: Option<&Continue>, limit: u64) -> List {
    let from = token.map(|token| selection.place(token));
    let mut rest = selection.within(&view.tree, from).filter(|item| selection.matches(item));
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let taken: Vec<Arc<Item>> = rest.by_ref().take(limit).cloned().collect();
    let (continue_token, remaining) = match (taken.last(), rest.next()) {
        (Some(last), Some(_)) => {
            let token =
                Continue::after(view.revision, selection.namespace(), &last.namespace, &last.name).encode();
            // Upstream counts what is left only where no selector would make that a guess.
            (token, selection.selects_all_names().then(|| 1 + rest.count() as u64))
        }
        _ => (String::new(), None),
    };
    List { revision: view.revision, continue_token, remaining, items: Items::Picked(taken) }
}
