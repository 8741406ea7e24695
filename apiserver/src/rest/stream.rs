//! Watches on the wire: one frame after another, in JSON lines or length-delimited protobuf, as objects, metadata
//! or tables.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
use http::{Response, StatusCode, header};
use picoshift_machinery::body::{self, Body};
use picoshift_machinery::media_type::{Answer, Encoding, MetaVersion, Shape};
use picoshift_machinery::{Object, protobuf};
use rand::RngExt;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::item::Item;
use super::message::{self, Message};
use super::options::ListOptions;
use super::partial;
use super::respond::{Form, list_metadata};
use super::storage::{Storage, Watch, WatchEvent};
use super::table::{self, TableOptions};
use crate::schema::Schemas;
use crate::store::Revision;

/// A watch without `timeoutSeconds` lasts between one and two of these (`--min-request-timeout`).
const LAST_AT_LEAST: u64 = 1800;
/// Annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Gives a watch its time-out, so that storage and stream agree on it.
pub fn with_timeout(options: &mut ListOptions) {
    let chosen = options.timeout_seconds.filter(|seconds| *seconds > 0);
    options.timeout_seconds =
        Some(chosen.unwrap_or_else(|| rand::rng().random_range(LAST_AT_LEAST..2 * LAST_AT_LEAST)));
}

/// The answer to a watch; ends cleanly when the time is over or the events end.
pub fn respond(
    storage: Arc<dyn Storage>,
    schemas: Arc<Schemas>,
    watch: Watch,
    form: Form,
    options: &ListOptions,
) -> Response<Body> {
    let mut encoder = Encoder { storage, schemas, form, with_columns: true };
    let content_type = form.media_type.content_type(Answer::Watch);
    // A watch lasts hours at most; the bound keeps the addition from overflowing.
    let seconds = options.timeout_seconds.unwrap_or(LAST_AT_LEAST).min(1 << 31);
    let end = Instant::now() + Duration::from_secs(seconds);
    let frames = watch.map(move |events| encoder.batch(&events)).take_until(sleep_until(end));
    let response = Response::builder().status(StatusCode::OK).header(header::CONTENT_TYPE, content_type);
    response.body(body::stream(frames)).unwrap_or_else(|_| Response::new(body::empty()))
}

struct Encoder {
    storage: Arc<dyn Storage>,
    schemas: Arc<Schemas>,
    form: Form,
    /// Tables say their columns once, in the first event.
    with_columns: bool,
}

impl Encoder {
    fn batch(&mut self, events: &[WatchEvent]) -> Bytes {
        let mut out = BytesMut::with_capacity(events.len() * 1024);
        for event in events {
            match event {
                WatchEvent::Added(item) => self.item(&mut out, "ADDED", item),
                WatchEvent::Modified(item) => self.item(&mut out, "MODIFIED", item),
                WatchEvent::Deleted(item) => self.item(&mut out, "DELETED", item),
                WatchEvent::Bookmark { revision, initial_events_end } => {
                    self.bookmark(&mut out, *revision, *initial_events_end);
                }
                WatchEvent::Error(status) if self.form.media_type.encoding == Encoding::Protobuf => {
                    out.put_slice(&protobuf::watch_event("ERROR", &protobuf::status(status)));
                }
                WatchEvent::Error(status) => {
                    line(&mut out, "ERROR", status.to_value().to_string().as_bytes());
                }
            }
        }
        out.freeze()
    }

    fn item(&mut self, out: &mut BytesMut, kind: &str, item: &Item) {
        if self.form.media_type.encoding != Encoding::Protobuf && self.form.media_type.shape == Shape::Whole {
            line(out, kind, &item.bytes);
            return;
        }
        if self.form.is_message() {
            if let Ok(message) = item.message(&self.schemas) {
                out.put_slice(&protobuf::watch_event(kind, message.enveloped()));
            }
            return;
        }
        match self.form.media_type.shape {
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                if let Ok(metadata) = item.metadata() {
                    self.metadata(out, kind, metadata, version);
                }
            }
            Shape::Whole | Shape::Table(_) => {
                if let Ok(object) = item.object() {
                    self.object(out, kind, object);
                }
            }
        }
    }

    fn metadata(&self, out: &mut BytesMut, kind: &str, metadata: Value, version: MetaVersion) {
        if self.form.media_type.encoding == Encoding::Protobuf {
            let metadata = message::metadata(&metadata, &self.schemas, version);
            out.put_slice(&protobuf::watch_event(kind, &metadata));
        } else {
            line(out, kind, &partial::metadata_only(metadata, version).to_bytes());
        }
    }

    /// An object, whole or as a table.
    fn object(&mut self, out: &mut BytesMut, kind: &str, object: Object) {
        if let Shape::Table(version) = self.form.media_type.shape {
            let options = TableOptions { version, include: self.form.include };
            let metadata = list_metadata(object.resource_version(), "", None);
            let with_columns = std::mem::take(&mut self.with_columns);
            let table = table::table(&*self.storage, &[object], &metadata, options, with_columns);
            line(out, kind, table.to_string().as_bytes());
        } else if self.form.media_type.encoding == Encoding::Protobuf {
            if let Ok(message) = Message::of(&object, &self.schemas) {
                out.put_slice(&protobuf::watch_event(kind, message.enveloped()));
            }
        } else {
            line(out, kind, &object.to_bytes());
        }
    }

    fn bookmark(&mut self, out: &mut BytesMut, revision: Revision, initial_events_end: bool) {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
        if initial_events_end {
            metadata.insert("annotations".to_owned(), json!({ INITIAL_EVENTS_END: "true" }));
        }
        match self.form.media_type.shape {
            Shape::Metadata(version) | Shape::MetadataList(version) => {
                self.metadata(out, "BOOKMARK", metadata.into(), version);
            }
            Shape::Whole | Shape::Table(_) => {
                // As the real one: an object in which nothing else is set.
                let mut object = self.schemas.empty(self.storage.resource());
                object.0.insert("metadata".to_owned(), metadata.into());
                self.object(out, "BOOKMARK", object);
            }
        }
    }
}

fn line(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.reserve(object.len() + 40);
    out.put_slice(br#"{"type":""#);
    out.put_slice(kind.as_bytes());
    out.put_slice(br#"","object":"#);
    out.put_slice(object);
    out.put_slice(b"}\n");
}
