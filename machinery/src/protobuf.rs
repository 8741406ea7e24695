//! Kubernetes' protobuf encoding: the wire format, the envelope of objects, and what every server answers: `Status`,
//! watch events, metadata of lists. Objects are written by their schemas.
//!
//! Out: bytes as `k8s.io/apimachinery` writes them (field numbers are those of its `generated.proto`;
//! fields that are no pointers, lists or maps are written even when they are empty).

mod envelope;
pub mod wire;

use bytes::{BufMut, Bytes, BytesMut};

use crate::status::{Cause, Details, Status};
pub use envelope::{ENVELOPE_END, Envelope, envelope, envelope_head};
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

/// A watch event with its length before it, as it is streamed. `object` is in its envelope.
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

#[cfg(test)]
mod tests;
