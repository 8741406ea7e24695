//! The envelope around every object: `k8s`, a zero byte, and a `runtime.Unknown` with the kind and the encoded object.

use bytes::Bytes;

use super::wire::{Message, Reader, WireError};

/// What stands before every object.
const MAGIC: &[u8] = b"k8s\0";

/// An opened envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`, empty where there is none.
    pub api_version: String,
    /// `kind`, empty where there is none.
    pub kind: String,
    /// The encoded object.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens the envelope around an object.
    ///
    /// # Errors
    /// [`WireError`], in the words of Kubernetes' serializer.
    pub fn open(bytes: &'a [u8]) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Err(WireError::NoEnvelope("empty data"));
        }
        let content = bytes.strip_prefix(MAGIC).ok_or(WireError::NoEnvelope(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ))?;
        if content.is_empty() {
            return Err(WireError::NoEnvelope("empty body"));
        }
        let mut envelope = Self::default();
        let mut reader = Reader::new(content);
        while let Some(field) = reader.field("Unknown")? {
            let name = match field.number {
                1 => "TypeMeta",
                2 => "Raw",
                3 => "ContentEncoding",
                4 => "ContentType",
                _ => {
                    reader.skip(field)?;
                    continue;
                }
            };
            field.expect(2, name)?;
            let value = reader.bytes()?;
            match field.number {
                1 => envelope.read_type(value)?,
                2 => envelope.raw = value,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(bytes);
        while let Some(field) = reader.field("TypeMeta")? {
            let (slot, name) = match field.number {
                1 => (&mut self.api_version, "APIVersion"),
                2 => (&mut self.kind, "Kind"),
                _ => {
                    reader.skip(field)?;
                    continue;
                }
            };
            field.expect(2, name)?;
            *slot = String::from_utf8_lossy(reader.bytes()?).into_owned();
        }
        Ok(())
    }
}

/// What an envelope has behind the object: contentEncoding and contentType, which are empty.
pub const ENVELOPE_END: &[u8] = &[0x1a, 0, 0x22, 0];

/// What an envelope has before an object of `length` bytes.
#[must_use]
pub fn envelope_head(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut head = Message::behind(MAGIC);
    head.nested(1, |type_meta| {
        type_meta.text(1, api_version);
        type_meta.text(2, kind);
    });
    head.head(2, length);
    head.into_vec()
}

/// Puts an encoded object into its envelope.
#[must_use]
pub fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
    [&envelope_head(api_version, kind, raw.len())[..], raw, ENVELOPE_END].concat().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_are_those_of_the_serializer() {
        for (bytes, text) in [
            (&b""[..], "empty data"),
            (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
            (b"k8s\0", "empty body"),
            (b"k8s\0\0", "proto: Unknown: illegal tag 0 (wire type 0)"),
            (b"k8s\0\x10\x01", "proto: wrong wireType = 0 for field Raw"),
            (b"k8s\0\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field APIVersion"),
            (b"k8s\0\x0a\x09", "unexpected EOF"),
        ] {
            assert_eq!(Envelope::open(bytes).unwrap_err().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn opens_what_it_closes(version in "[a-z/0-9]{0,9}", kind in "[A-Za-z]{0,9}", raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let closed = envelope(&version, &kind, &raw);
            let opened = Envelope::open(&closed).unwrap();
            prop_assert_eq!(opened, Envelope { api_version: version, kind, raw: &raw });
        }

        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            bytes.splice(0..0, MAGIC.iter().copied());
            let _ = Envelope::open(&bytes);
        }
    }
}
