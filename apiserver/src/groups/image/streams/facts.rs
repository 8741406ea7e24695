//! What a stream shows beyond what was written: where the cluster's registry has it, and the events of tags that
//! follow other tags, since the last write. Stored beside the stream, so that a revision always shows the same.

use std::collections::BTreeMap;

use picoshift_machinery::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::groups::image::hostnames;
use crate::groups::image::model::{Event, add_event, latest_event, status_tags};
use crate::registry::strategy::Computed;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Facts {
    /// Host of the cluster's registry inside the cluster; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) internal: String,
    /// The same outside.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) external: String,
    /// Events that came since the last write, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Followed>,
    /// What each following tag took from its source last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) taken: BTreeMap<String, Taken>,
}

/// An event that a tag got from the tag that it follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Followed {
    pub(super) tag: String,
    pub(super) event: Event,
    /// Whether it takes the place of the newest event, which was provisional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) replaces: bool,
}

/// What a following tag took from its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// The source as `namespace/stream:tag`.
    pub(super) from: String,
    /// The source's event; its time does not count.
    pub(super) event: Event,
    /// Whether the event was provisional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) provisional: bool,
}

impl Facts {
    pub(super) fn read(computed: &Computed) -> Self {
        Self::deserialize(&computed.facts).unwrap_or_default()
    }

    /// The facts as they are stored; null where there are none.
    pub(super) fn to_value(&self) -> Value {
        if *self == Self::default() { Value::Null } else { json!(self) }
    }

    /// Adds the events to a stored stream: what the next write stores.
    pub(super) fn fold(&self, stream: &mut Object) {
        for followed in &self.events {
            followed.apply(stream);
        }
    }

    /// Makes a stored stream what clients see.
    pub(super) fn present(&self, stream: &mut Object) {
        self.fold(stream);
        let (internal, external) = hostnames::repositories(&self.internal, &self.external, stream);
        let status = stream.object_mut("status");
        status.insert("dockerImageRepository".to_owned(), internal.into());
        if !external.is_empty() {
            status.insert("publicDockerImageRepository".to_owned(), external.into());
        }
    }

    /// Whether the newest event of a following tag is one that it took while its source was provisional.
    pub(super) fn is_provisional(&self, tag: &str, newest: &Event) -> bool {
        self.taken.get(tag).is_some_and(|taken| taken.provisional && taken.event.means(newest))
    }
}

impl Followed {
    /// Adds the event to a stream; answers whether that changed anything.
    pub(super) fn apply(&self, stream: &mut Object) -> bool {
        if self.replaces {
            status_tags::remove_latest(stream, &self.tag);
        }
        add_event(stream, &self.tag, &self.event) || self.replaces
    }
}

/// Removes from a stream what [`Facts::present`] adds to its status, but for the events: they are to be stored.
pub(super) fn strip(stream: &mut Object) {
    let status = stream.object_mut("status");
    status.insert("dockerImageRepository".to_owned(), "".into());
    status.remove("publicDockerImageRepository");
}

/// The newest events of all tags.
pub(super) fn newest(stream: &Object) -> impl Iterator<Item = (&str, Event)> {
    status_tags::status_tags(stream).iter().filter_map(|entry| {
        let tag = entry.get("tag").and_then(Value::as_str)?;
        Some((tag, latest_event(stream, tag)?))
    })
}
