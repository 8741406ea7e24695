//! Kubernetes' protobuf encoding: the wire format, the envelope of objects, and what every server answers:
//! `PartialObjectMetadata(List)`, `Status`, watch events. Whole objects are written by their schemas.
//!
//! In: JSON objects. Out: bytes as `k8s.io/apimachinery` writes them (field numbers are those of its `generated.proto`;
//! fields that are no pointers, lists or maps are written even when they are empty).

mod envelope;
pub mod wire;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::Value;

use crate::media_type::MetaVersion;
use crate::object::Object;
use crate::status::{Cause, Details, Status};
pub use envelope::{ENVELOPE_END, Envelope, envelope};
use wire::Message;

/// Metadata of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListMeta<'a> {
    /// `resourceVersion`.
    pub resource_version: &'a str,
    /// `continue`, empty for none.
    pub continue_token: &'a str,
    /// `remainingItemCount`.
    pub remaining: Option<u64>,
}

impl ListMeta<'_> {
    /// The encoded message.
    #[must_use]
    pub fn message(&self) -> Message {
        let mut out = Message::default();
        out.text(1, "");
        out.text(2, self.resource_version);
        out.text(3, self.continue_token);
        if let Some(remaining) = self.remaining {
            out.integer(4, i64::try_from(remaining).unwrap_or(i64::MAX));
        }
        out
    }
}

/// The metadata of an object as `PartialObjectMetadata`.
#[must_use]
pub fn partial_object_metadata(object: &Object, version: MetaVersion) -> Bytes {
    envelope(version.api_version(), "PartialObjectMetadata", partial(object).as_slice())
}

/// The metadata of objects as `PartialObjectMetadataList`.
#[must_use]
pub fn partial_object_metadata_list<'a>(
    items: impl IntoIterator<Item = &'a Object>,
    meta: ListMeta<'_>,
    version: MetaVersion,
) -> Bytes {
    let (meta_number, items_number) = match version {
        MetaVersion::V1 => (1, 2),
        MetaVersion::V1beta1 => (2, 1),
    };
    let mut out = Message::default();
    if version == MetaVersion::V1 {
        out.message(meta_number, &meta.message());
    }
    for item in items {
        out.message(items_number, &partial(item));
    }
    if version == MetaVersion::V1beta1 {
        out.message(meta_number, &meta.message());
    }
    envelope(version.api_version(), "PartialObjectMetadataList", out.as_slice())
}

/// A status.
#[must_use]
pub fn status(status: &Status) -> Bytes {
    let mut out = Message::default();
    out.message(1, &ListMeta::default().message());
    out.text(2, &status.status);
    out.text(3, &status.message);
    out.text(4, &status.reason);
    if let Some(details) = &status.details {
        out.message(5, &status_details(details));
    }
    out.integer(6, i64::from(status.code));
    envelope("v1", "Status", out.as_slice())
}

/// A watch event with its length before it, as it is streamed. `object` is what one of the functions above made.
#[must_use]
pub fn watch_event(kind: &str, object: &[u8]) -> Bytes {
    let mut raw = Message::default();
    raw.bytes(1, object);
    let mut event = Message::default();
    event.text(1, kind);
    event.message(2, &raw);
    let mut out = BytesMut::with_capacity(event.as_slice().len() + 4);
    out.put_u32(u32::try_from(event.as_slice().len()).unwrap_or(u32::MAX));
    out.put_slice(event.as_slice());
    out.freeze()
}

fn partial(object: &Object) -> Message {
    let mut out = Message::default();
    out.message(1, &object_meta(object.0.get("metadata").unwrap_or(&Value::Null)));
    out
}

fn object_meta(meta: &Value) -> Message {
    let mut out = Message::default();
    for (number, field) in [
        (1, "name"),
        (2, "generateName"),
        (3, "namespace"),
        (4, "selfLink"),
        (5, "uid"),
        (6, "resourceVersion"),
    ] {
        out.text(number, text(meta, field));
    }
    out.integer(7, meta["generation"].as_i64().unwrap_or_default());
    out.message(8, &time(text(meta, "creationTimestamp")));
    if let Some(deleted) = meta["deletionTimestamp"].as_str() {
        out.message(9, &time(deleted));
    }
    if let Some(seconds) = meta["deletionGracePeriodSeconds"].as_i64() {
        out.integer(10, seconds);
    }
    for (number, field) in [(11, "labels"), (12, "annotations")] {
        for (key, value) in meta[field].as_object().into_iter().flatten() {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value.as_str().unwrap_or_default());
            out.message(number, &entry);
        }
    }
    for owner in list(meta, "ownerReferences") {
        out.message(13, &owner_reference(owner));
    }
    for finalizer in list(meta, "finalizers") {
        out.text(14, finalizer.as_str().unwrap_or_default());
    }
    for entry in list(meta, "managedFields") {
        out.message(17, &managed_fields(entry));
    }
    out
}

fn owner_reference(owner: &Value) -> Message {
    let mut out = Message::default();
    for (number, field) in [(1, "kind"), (3, "name"), (4, "uid"), (5, "apiVersion")] {
        out.text(number, text(owner, field));
    }
    for (number, field) in [(6, "controller"), (7, "blockOwnerDeletion")] {
        if let Some(set) = owner[field].as_bool() {
            out.integer(number, i64::from(set));
        }
    }
    out
}

fn managed_fields(entry: &Value) -> Message {
    let mut out = Message::default();
    for (number, field) in [(1, "manager"), (2, "operation"), (3, "apiVersion")] {
        out.text(number, text(entry, field));
    }
    if let Some(at) = entry["time"].as_str() {
        out.message(4, &time(at));
    }
    out.text(6, text(entry, "fieldsType"));
    if !entry["fieldsV1"].is_null() {
        let mut fields = Message::default();
        fields.text(1, &entry["fieldsV1"].to_string());
        out.message(7, &fields);
    }
    out.text(8, text(entry, "subresource"));
    out
}

fn status_details(details: &Details) -> Message {
    let mut out = Message::default();
    out.text(1, &details.name);
    out.text(2, &details.group);
    out.text(3, &details.kind);
    for Cause { reason, message, field } in &details.causes {
        let mut cause = Message::default();
        cause.text(1, reason);
        cause.text(2, message);
        cause.text(3, field);
        out.message(4, &cause);
    }
    out.integer(5, i64::from(details.retry_after_seconds));
    out.text(6, &details.uid);
    out
}

/// Seconds and nanoseconds; nothing for the zero time.
fn time(text: &str) -> Message {
    let mut out = Message::default();
    if let Ok(time) = text.parse::<Timestamp>() {
        out.integer(1, time.as_second());
        out.integer(2, 0);
    }
    out
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
