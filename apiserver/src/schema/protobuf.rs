//! Objects in `application/vnd.kubernetes.protobuf`: to the byte what the code that Kubernetes generates for the Go
//! types writes, and read as it reads.
//!
//! In: objects that fit their schema, or messages that strangers sent. Out: messages, or objects. The layouts come from
//! the `.proto` files of the pinned modules, by the build. A descriptor set alone would not do: whether Go writes an empty
//! field hangs on the pointers of the Go types, which the build knows too.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use jiff::civil::DateTime;
use serde::Deserialize;

pub use decode::DecodeError;

use super::{Field, LoadError};

/// From when seconds are counted.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A field of a message.
#[derive(Debug)]
pub(super) struct WireField {
    number: u32,
    /// Name in Go, for errors.
    go: Box<str>,
    slot: Slot,
}

/// What a field of a message is in JSON.
#[derive(Debug)]
enum Slot {
    /// A field, by its index in the struct.
    Field(usize),
    /// A message whose fields stand beside the others in JSON.
    Inline(Box<[WireField]>),
}

/// The form of a [`WireField`] in the embedded document.
#[derive(Deserialize)]
pub(super) struct RawWireField {
    number: u32,
    go: Box<str>,
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    inline: Vec<RawWireField>,
}

/// Compiles a struct's layout; `fields` are sorted by name.
pub(super) fn layout(raw: Vec<RawWireField>, fields: &[Field]) -> Result<Box<[WireField]>, LoadError> {
    let compile = |raw: RawWireField| {
        let slot = match raw.field {
            None => Slot::Inline(layout(raw.inline, fields)?),
            Some(name) => {
                let found = fields.binary_search_by(|field| (*field.name).cmp(&name));
                Slot::Field(found.map_err(|_| LoadError::Missing(name))?)
            }
        };
        Ok(WireField { number: raw.number, go: raw.go, slot })
    };
    raw.into_iter().map(compile).collect()
}
