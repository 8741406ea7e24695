//! Objects and lists in protobuf, each object encoded once.

use std::ops::Range;

use bytes::Bytes;
use picoshift_machinery::protobuf::{self, wire};
use picoshift_machinery::{Object, Status};

use super::storage::List;
use crate::resource::Resource;
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
        let enveloped = protobuf::envelope(object.api_version(), object.kind(), &raw);
        let end = enveloped.len() - protobuf::ENVELOPE_END;
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

/// The list in protobuf, put together from items that were encoded before.
///
/// # Errors
/// As [`Message::of`].
pub fn list(resource: &Resource, schemas: &Schemas, list: &List) -> Result<Bytes, Status> {
    let version = list.revision.to_string();
    let meta = protobuf::ListMeta {
        resource_version: &version,
        continue_token: &list.continue_token,
        remaining: list.remaining,
    };
    let mut out = wire::Message::default();
    out.message(1, &meta.message());
    for item in list.items.iter() {
        out.bytes(2, item.message(schemas)?.raw());
    }
    Ok(protobuf::envelope(&resource.gvk.api_version(), &resource.list_kind(), out.as_slice()))
}
