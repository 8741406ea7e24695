//! `useroauthaccesstokens`: the access tokens of who asks, under a kind of their own
//! (`oauth-apiserver/pkg/oauth/apiserver/registry/useroauthaccesstokens`).

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use jiff::Timestamp;
use picoshift_machinery::selector::FieldRequirement;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::expiry::Expiring;
use super::printing;
use super::resources::USER_TOKENS;
use crate::resource::Resource;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, Items, List, ListOptions, RequestContext, Storage, Watch,
    WatchEvent,
};

/// The storage of `useroauthaccesstokens`.
pub(super) struct OwnTokens(pub(super) Arc<Expiring>);

impl OwnTokens {
    /// A token of the caller's, as it is stored. One that is not there is told by its other name, as on the real server.
    async fn stored(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Object, Status> {
        let token = self.0.get(cx, name, options).await?.object().map_err(Status::internal)?;
        if token.str_at(&["userName"]) != cx.user.name {
            return Err(Status::not_found(USER_TOKENS.gvk.group, USER_TOKENS.plural, name));
        }
        Ok(token)
    }
}

/// The same options, for the caller's tokens only.
fn narrowed(cx: &RequestContext, options: &ListOptions) -> ListOptions {
    let mut options = options.clone();
    options.fields.requirements.push(FieldRequirement {
        field: "userName".to_owned(),
        value: cx.user.name.clone(),
        negated: false,
    });
    options
}

/// An access token as its user sees it.
fn own(item: &Item) -> Result<Arc<Item>, Status> {
    let object = item.object().map_err(Status::internal)?;
    Ok(shown(object, item.revision))
}

fn shown(mut token: Object, revision: u64) -> Arc<Item> {
    token.0.insert("kind".to_owned(), USER_TOKENS.gvk.kind.into());
    Arc::new(Item::new(&USER_TOKENS, token, revision))
}

/// An event as its user sees it. There are no bookmarks, as on the real server, but for the one that a client waits for
/// who asked to be told the state first.
fn event(event: WatchEvent) -> Option<WatchEvent> {
    let converted = match &event {
        WatchEvent::Added(item) => own(item).map(WatchEvent::Added),
        WatchEvent::Modified(item) => own(item).map(WatchEvent::Modified),
        WatchEvent::Deleted(item) => own(item).map(WatchEvent::Deleted),
        WatchEvent::Bookmark { initial_events_end: false, .. } => return None,
        WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => return Some(event),
    };
    Some(converted.unwrap_or_else(WatchEvent::Error))
}

#[async_trait]
impl Storage for OwnTokens {
    fn resource(&self) -> &'static Resource {
        &USER_TOKENS
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        printing::user_token_row(object, Timestamp::now())
    }

    async fn get(&self, cx: &RequestContext, name: &str, options: &GetOptions) -> Result<Arc<Item>, Status> {
        let token = self.stored(cx, name, options).await?;
        let revision = token.resource_version().parse().map_err(Status::internal)?;
        Ok(shown(token, revision))
    }

    async fn list(&self, cx: &RequestContext, options: &ListOptions) -> Result<List, Status> {
        let list = self.0.list(cx, &narrowed(cx, options)).await?;
        let items = list.items.iter().map(|item| own(item)).collect::<Result<Vec<_>, Status>>()?;
        Ok(List { items: Items::Picked(items), ..list })
    }

    async fn watch(&self, cx: &RequestContext, options: &ListOptions) -> Result<Watch, Status> {
        let watch = self.0.watch(cx, &narrowed(cx, options)).await?;
        let own = watch.map(|events| events.into_iter().filter_map(event).collect::<Vec<_>>());
        Ok(own.filter(|events| std::future::ready(!events.is_empty())).boxed())
    }

    /// The answer is the access token.
    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let token = self.stored(cx, name, &GetOptions::default()).await?;
        let mut options = options.clone();
        options.preconditions.uid.get_or_insert_with(|| token.uid().to_owned());
        self.0.delete(cx, name, &options).await
    }
}
