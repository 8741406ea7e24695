//! Which tags follow which, and what each tag means now: an index over all streams, so that a change of one tag
//! finds its followers without a look at any other stream.
//!
//! A tag whose `from` is an `ImageStreamTag` follows it. Tags that follow each other in a circle do not follow at
//! all, and neither does a tag at the end of a chain of more than [`CHAIN_MAX`] tags: both would never settle.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use picoshift_machinery::Object;

use super::facts::{self, Facts};
use crate::groups::image::model::spec_tags::STREAM_TAG;
use crate::groups::image::model::{Event, provisional, spec_tags};
use crate::store::Key;

/// Most tags in a chain; as many rounds of touches follow a write.
const CHAIN_MAX: usize = 16;

/// A tag of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TagAt {
    /// Key of the stream.
    pub(super) stream: Key,
    pub(super) tag: Box<str>,
}

impl TagAt {
    pub(super) fn new(stream: &Key, tag: &str) -> Self {
        Self { stream: Arc::clone(stream), tag: tag.into() }
    }

    /// Namespace and name of the stream.
    pub(super) fn stream_name(&self) -> (&str, &str) {
        let mut parts = self.stream.splitn(3, '/').skip(1);
        (parts.next().unwrap_or(""), parts.next().unwrap_or(""))
    }
}

/// `namespace/stream:tag`.
impl std::fmt::Display for TagAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (namespace, name) = self.stream_name();
        write!(f, "{namespace}/{name}:{}", self.tag)
    }
}

/// What a tag means now.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Newest {
    pub(super) event: Event,
    /// Whether it is only the pull spec of a tag that is to be imported.
    pub(super) provisional: bool,
}

/// The sources of a stream's following tags.
pub(super) type Sources = BTreeMap<Box<str>, TagAt>;

/// The key of a stream.
pub(super) fn stream_key(namespace: &str, name: &str) -> Key {
    Key::from(format!("imagestreams.image.openshift.io/{namespace}/{name}"))
}

/// The sources of the following tags of a stream.
pub(super) fn sources(stream: &Object) -> Sources {
    let following = spec_tags::spec_tags(stream).into_iter().filter_map(|(tag, reference)| {
        let from = reference.from().filter(|from| from.kind() == STREAM_TAG)?;
        let (name, source) = from.stream_and_rest(stream.name())?;
        let namespace = from.namespace_or(stream.namespace());
        Some((Box::from(tag), TagAt { stream: stream_key(namespace, name), tag: source.into() }))
    });
    following.collect()
}

/// What a stream's tags mean, with the events of `facts` in it already.
fn meanings(folded: &Object, facts: &Facts) -> HashMap<Box<str>, Newest> {
    facts::newest(folded)
        .map(|(tag, event)| {
            let provisional = provisional::is_provisional(folded, tag) || facts.is_provisional(tag, &event);
            (Box::from(tag), Newest { event, provisional })
        })
        .collect()
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Following {
    streams: HashMap<Key, Entry>,
    /// Streams with tags that follow a tag.
    followers: HashMap<TagAt, BTreeSet<Key>>,
}

#[derive(Debug, Default)]
struct Entry {
    newest: HashMap<Box<str>, Newest>,
    sources: Sources,
}

impl Following {
    /// What a tag means now.
    pub(super) fn newest(&self, at: &TagAt) -> Option<&Newest> {
        self.streams.get(&at.stream)?.newest.get(&at.tag)
    }

    /// Takes in a stream as it is now; `None` when it is gone.
    pub(super) fn set(&mut self, key: &Key, stream: Option<(&Object, &Facts)>) {
        for source in self.streams.remove(key).into_iter().flat_map(|entry| entry.sources.into_values()) {
            if let Some(keys) = self.followers.get_mut(&source) {
                keys.remove(key);
                if keys.is_empty() {
                    self.followers.remove(&source);
                }
            }
        }
        let Some((stream, facts)) = stream else { return };
        let sources = sources(stream);
        for source in sources.values() {
            self.followers.entry(source.clone()).or_default().insert(Arc::clone(key));
        }
        let mut folded = stream.clone();
        facts.fold(&mut folded);
        let newest = meanings(&folded, facts);
        if !newest.is_empty() || !sources.is_empty() {
            self.streams.insert(Arc::clone(key), Entry { newest, sources });
        }
    }

    /// The other streams that may have to change when the stream `key` becomes `folded`, or goes.
    pub(super) fn affected(&self, key: &Key, folded: Option<(&Object, &Facts)>) -> Vec<Key> {
        if self.followers.is_empty() {
            return Vec::new();
        }
        let none = Entry::default();
        let before = self.streams.get(key).unwrap_or(&none);
        let (newest, sources) = match folded {
            Some((stream, facts)) => (meanings(stream, facts), sources(stream)),
            None => (HashMap::new(), Sources::new()),
        };
        let mut found = BTreeSet::new();
        // What a tag no longer means its followers keep.
        for (tag, now) in &newest {
            if before.newest.get(tag).is_none_or(|had| had != now) {
                found.extend(self.followers.get(&TagAt::new(key, tag)).into_iter().flatten().cloned());
            }
        }
        let relinked = before.sources.iter().chain(&sources).filter(|(tag, source)| {
            before.sources.get(*tag) != Some(*source) || sources.get(*tag) != Some(*source)
        });
        for (tag, _) in relinked {
            // Another end of the chain: it may be a circle now, or no longer be one.
            self.all_followers(&TagAt::new(key, tag), &mut found);
        }
        found.remove(key);
        found.into_iter().collect()
    }

    /// Streams whose tags follow a tag, over any number of tags between.
    fn all_followers(&self, at: &TagAt, found: &mut BTreeSet<Key>) {
        let mut seen = BTreeSet::from([at.clone()]);
        let mut open = vec![at.clone()];
        while let Some(at) = open.pop() {
            for key in self.followers.get(&at).into_iter().flatten() {
                found.insert(Arc::clone(key));
                let sources = self.streams.get(key).into_iter().flat_map(|entry| &entry.sources);
                for (tag, _) in sources.filter(|(_, source)| **source == at) {
                    let next = TagAt::new(key, tag);
                    if seen.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
        }
    }

    /// The following tags of a stream that settle, sources before followers. `own` are the stream's sources as they
    /// will be.
    pub(super) fn order(&self, key: &Key, own: &Sources) -> Vec<Box<str>> {
        let mut ranked: Vec<(usize, &Box<str>)> =
            own.keys().filter_map(|tag| Some((self.chain(&TagAt::new(key, tag), key, own)?, tag))).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, tag)| tag.clone()).collect()
    }

    /// How many tags of a chain begin at `start`; `None` where it comes back to `start` or is too long.
    fn chain(&self, start: &TagAt, key: &Key, own: &Sources) -> Option<usize> {
        let mut seen = BTreeSet::new();
        let mut at = start;
        while seen.insert(at) {
            let sources =
                if at.stream == *key { Some(own) } else { self.streams.get(&at.stream).map(|e| &e.sources) };
            match sources.and_then(|sources| sources.get(&at.tag)) {
                None => return Some(seen.len()),
                Some(_) if seen.len() > CHAIN_MAX => return None,
                Some(next) => at = next,
            }
        }
        // Into a circle of others, which stands still: only its members do not follow.
        (at != start).then_some(seen.len())
    }
}
