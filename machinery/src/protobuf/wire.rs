//! Protobuf's wire format: messages that grow field by field, and the fields of messages that others wrote.

mod read;

pub use read::{Field, Reader, WireError};

/// An encoded message that grows field by field.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// A message that is written behind other bytes, and begins with them.
    #[must_use]
    pub fn behind(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The encoded fields.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The encoded fields, owned.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// An integer or a truth value; negative numbers take ten bytes.
    pub fn integer(&mut self, number: u32, value: i64) {
        self.key(number, 0);
        self.varint(value.cast_unsigned());
    }

    /// A number of eight bytes.
    pub fn double(&mut self, number: u32, value: f64) {
        self.key(number, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A text.
    pub fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    /// A message inside.
    pub fn message(&mut self, number: u32, value: &Self) {
        self.bytes(number, &value.0);
    }

    /// A message inside that `fill` writes in place.
    pub fn nested(&mut self, number: u32, fill: impl FnOnce(&mut Self)) {
        self.key(number, 2);
        // Most messages are shorter than 128 bytes: one byte for the length, and the rest moves where that is not enough.
        self.0.push(0);
        let start = self.0.len();
        fill(self);
        let length = self.0.len() - start;
        let mut head = Self::default();
        head.varint(length as u64);
        let more = head.0.len() - 1;
        if more > 0 {
            self.0.resize(start + length + more, 0);
            self.0.copy_within(start..start + length, start + more);
        }
        self.0[start - 1..start + more].copy_from_slice(&head.0);
    }

    /// Bytes.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.head(number, value.len());
        self.0.extend_from_slice(value);
    }

    /// What stands before `length` bytes that follow: the bytes themselves are the caller's to add.
    pub fn head(&mut self, number: u32, length: usize) {
        self.key(number, 2);
        self.varint(length as u64);
    }

    fn key(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from(number << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
