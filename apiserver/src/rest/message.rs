//! Objects and lists in protobuf, each object encoded once; metadata alone is encoded each time it is asked for.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use picoshift_machinery::media_type::MetaVersion;
use picoshift_machinery::protobuf::{self, ListMeta, envelope, wire};
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use crate::registry::chunk::Chunk;
use crate::schema::Schemas;

/// An object in protobuf.
#[derive(Clone, Debug)]
pub struct Message {
    enveloped: Bytes,
    raw: Range<usize>,
}

impl Message {
    /// An object in its envelope.
    ///
    /// # Errors
    /// 406 for an object whose kind has no message, as of a Go type without one.
    pub fn of(object: &Object, schemas: &Schemas) -> Result<Self, Status> {
        let raw = schemas.to_protobuf(object).ok_or_else(|| no_message(object.kind()))?;
        let enveloped = envelope(object.api_version(), object.kind(), &raw);
        let end = enveloped.len() - protobuf::ENVELOPE_END.len();
        Ok(Self { enveloped, raw: end - raw.len()..end })
    }

    /// The object in its envelope, as it is sent alone or in a watch.
    #[must_use]
    pub fn enveloped(&self) -> &Bytes {
        &self.enveloped
    }

    /// The message itself, as lists have it.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        self.enveloped.get(self.raw.clone()).unwrap_or_default()
    }
}

fn no_message(kind: &str) -> Status {
    let message = format!(
        "object {kind} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    );
    Status::failure(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

/// An object's metadata as `PartialObjectMetadata`, in its envelope.
#[must_use]
pub fn metadata(metadata: &Value, schemas: &Schemas, version: MetaVersion) -> Bytes {
    envelope(version.api_version(), "PartialObjectMetadata", &schemas.metadata_to_protobuf(metadata))
}

/// Objects' metadata as `PartialObjectMetadataList`, in its envelope.
#[must_use]
pub fn metadata_list(items: &[Value], meta: ListMeta<'_>, schemas: &Schemas, version: MetaVersion) -> Bytes {
    let (meta_number, items_number) = match version {
        MetaVersion::V1 => (1, 2),
        MetaVersion::V1beta1 => (2, 1),
    };
    let mut out = wire::Message::default();
    if version == MetaVersion::V1 {
        out.message(meta_number, &meta.message());
    }
    for metadata in items {
        out.bytes(items_number, &schemas.metadata_to_protobuf(metadata));
    }
    if version == MetaVersion::V1beta1 {
        out.message(meta_number, &meta.message());
    }
    envelope(version.api_version(), "PartialObjectMetadataList", out.as_slice())
}

/// A list in protobuf, of which so many bytes are put together at a time as are sent.
pub struct ListMessage {
    head: Vec<u8>,
    chunks: Vec<Arc<Chunk>>,
    length: usize,
}

impl ListMessage {
    /// A list of `kind`; encodes those items that no client has asked for before.
    ///
    /// # Errors
    /// As [`Message::of`].
    pub fn new(
        (api_version, kind): (&str, &str),
        meta: ListMeta<'_>,
        chunks: Vec<Arc<Chunk>>,
        schemas: &Schemas,
    ) -> Result<Self, Status> {
        let mut fields = wire::Message::default();
        fields.message(1, &meta.message());
        let mut items = 0;
        for item in chunks.iter().flat_map(|chunk| chunk.items()) {
            let raw = item.message(schemas)?.raw().len();
            items += item_head(raw).as_slice().len() + raw;
        }
        let mut head = protobuf::envelope_head(api_version, kind, fields.as_slice().len() + items);
        head.extend_from_slice(fields.as_slice());
        let length = head.len() + items + protobuf::ENVELOPE_END.len();
        Ok(Self { head, chunks, length })
    }

    /// How many bytes [`Self::parts`] are.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The bytes in order, made as they are taken.
    pub fn parts(self) -> impl Iterator<Item = Bytes> + Send {
        let head = std::iter::once(Bytes::from(self.head));
        let end = std::iter::once(Bytes::from_static(protobuf::ENVELOPE_END));
        head.chain(self.chunks.into_iter().map(|chunk| items(&chunk))).chain(end)
    }
}

/// The items of a chunk as fields of a list.
fn items(chunk: &Chunk) -> Bytes {
    let raw = || chunk.items().iter().filter_map(|item| item.message.get()).map(|message| message.raw());
    let mut out = BytesMut::with_capacity(raw().map(|raw| raw.len() + 8).sum());
    for raw in raw() {
        out.put_slice(item_head(raw.len()).as_slice());
        out.put_slice(raw);
    }
    out.freeze()
}

/// What stands before an item of `length` bytes in a list.
fn item_head(length: usize) -> wire::Message {
    let mut head = wire::Message::default();
    head.head(2, length);
    head
}

#[cfg(test)]
mod tests;
