//! Protobuf's wire format, as far as it is written here.

/// An encoded message that grows field by field.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The encoded fields.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// An integer or a truth value; negative numbers take ten bytes.
    pub(super) fn integer(&mut self, number: u32, value: i64) {
        self.key(number, 0);
        self.varint(value.cast_unsigned());
    }

    /// A text.
    pub(super) fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    /// A message inside.
    pub(super) fn message(&mut self, number: u32, value: &Self) {
        self.bytes(number, &value.0);
    }

    /// Bytes.
    pub(super) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key(number, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
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
