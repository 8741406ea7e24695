//! Lists of tags, made from a list of streams. A page ends after so many tags, not streams, and goes on where it
//! ended: the real server limits streams and loses its place.

use std::cmp::Ordering;
use std::sync::Arc;

use picoshift_machinery::Status;

use super::kind::TagKind;
use crate::groups::image::names::split_stream_tag;
use crate::registry::page::{Continue, expired};
use crate::rest::options::VersionMatch;
use crate::rest::{Item, Items, List, ListOptions, RequestContext, Storage};

/// The tags that are selected: by the labels of their streams and by their own names.
pub(super) async fn list(
    kind: &dyn TagKind,
    streams: &dyn Storage,
    cx: &RequestContext,
    options: &ListOptions,
) -> Result<List, Status> {
    let token = match options.continue_token.as_str() {
        "" => None,
        text => Some(Continue::decode(text)?),
    };
    let found =
        streams.list(cx, &of_streams(options, token.as_ref())).await.map_err(|status| match &token {
            Some(token) if status.is("Expired") => expired(token),
            _ => status,
        })?;
    let mut page = Page {
        kind,
        options,
        token: token.as_ref().map(|token| token.last(&cx.info.namespace)),
        limit: usize::try_from(options.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
        tags: Vec::new(),
    };
    let mut complete = true;
    for stream in each(&found.items) {
        complete = page.take(stream)?;
        if !complete {
            break;
        }
    }
    let continue_token = match page.tags.last() {
        Some(last) if !complete => {
            let within = &cx.info.namespace;
            Continue::after(found.revision, within, &last.namespace, &last.name).encode()
        }
        _ => String::new(),
    };
    let items = Items::Picked(page.tags);
    Ok(List { revision: found.revision, continue_token, remaining: None, items })
}

/// The streams to look at: all pages of a list are of one revision.
fn of_streams(options: &ListOptions, token: Option<&Continue>) -> ListOptions {
    let labels = options.labels.clone();
    let Some(token) = token else {
        // A page of a revision is of exactly that one, unless something else is said.
        let page = options.limit > 0 && options.resource_version.is_some_and(|version| version > 0);
        return ListOptions {
            labels,
            resource_version: options.resource_version,
            version_match: options.version_match.or(page.then_some(VersionMatch::Exact)),
            ..ListOptions::default()
        };
    };
    let resource_version = token.revision();
    let version_match = resource_version.map(|_| VersionMatch::Exact);
    ListOptions { labels, resource_version, version_match, ..ListOptions::default() }
}

fn each(items: &Items) -> Box<dyn Iterator<Item = &Arc<Item>> + Send + '_> {
    match items {
        Items::Picked(items) => Box::new(items.iter()),
        Items::Whole(chunks) => Box::new(chunks.iter().flat_map(|chunk| chunk.items())),
    }
}

/// A page that is being filled.
struct Page<'a> {
    kind: &'a dyn TagKind,
    options: &'a ListOptions,
    /// Namespace and name of the last tag sent.
    token: Option<(&'a str, &'a str)>,
    limit: usize,
    tags: Vec<Arc<Item>>,
}

impl Page<'_> {
    /// Takes a stream's tags; answers whether all that are wanted had room.
    fn take(&mut self, item: &Item) -> Result<bool, Status> {
        let after = match self.token {
            None => "",
            Some((namespace, name)) => {
                let (last, tag) = split_stream_tag(name).unwrap_or((name, ""));
                match order((&item.namespace, &item.name), (namespace, last)) {
                    Ordering::Less => return Ok(true),
                    Ordering::Equal => tag,
                    Ordering::Greater => "",
                }
            }
        };
        if !self.may_select(item) {
            return Ok(true);
        }
        let stream = item.object().map_err(Status::internal)?;
        for tag in self.kind.names(&stream) {
            if !after.is_empty() && tag.as_str() <= after {
                continue;
            }
            let Some(object) = self.kind.render(&stream, &tag, None, false) else { continue };
            let tag = Item::new(self.kind.resource(), object, item.revision);
            if !self.selects(&tag.namespace, &tag.name) {
                continue;
            }
            if self.tags.len() == self.limit {
                return Ok(false);
            }
            self.tags.push(Arc::new(tag));
        }
        Ok(true)
    }

    /// Whether a tag of the stream can be selected, before the stream is read.
    fn may_select(&self, stream: &Item) -> bool {
        let Some(name) = self.options.fields.exact("metadata.name") else { return true };
        split_stream_tag(name).is_some_and(|(wanted, _)| wanted == &*stream.name)
    }

    fn selects(&self, namespace: &str, name: &str) -> bool {
        self.options.fields.matches(|field| match field {
            "metadata.name" => Some(name),
            "metadata.namespace" => Some(namespace),
            _ => None,
        })
    }
}

/// The order of streams in a list: that of `namespace/name`.
fn order(one: (&str, &str), other: (&str, &str)) -> Ordering {
    let key = |(namespace, name): (&str, &str)| format!("{namespace}/{name}");
    key(one).cmp(&key(other))
}
