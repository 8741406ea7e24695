//! Reads messages as the code that Kubernetes generates does, with its errors.

/// Why bytes are no message; the text of Go's generated code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end within a field.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is negative.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A group ends that did not begin.
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    /// A wire type that is not there.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A group ends where a field should begin.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndOfGroup(Box<str>),
    /// A field without a number.
    #[error("proto: {message}: illegal tag {number} (wire type {key})")]
    IllegalTag {
        /// Name of the message.
        message: Box<str>,
        /// What was read as the number.
        number: i32,
        /// Number and wire type together.
        key: u64,
    },
    /// A field is not of the type that it has in the message.
    #[error("proto: wrong wireType = {found} for field {field}")]
    WrongWireType {
        /// The wire type that was found.
        found: u8,
        /// Name of the field in Go.
        field: Box<str>,
    },
    /// The bytes are no envelope of Kubernetes; its text.
    #[error("{0}")]
    NoEnvelope(&'static str),
}

/// The fields of a message.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The beginning of a field: which it is, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The number, never 0.
    pub number: u32,
    /// How the value is written: 0 for numbers, 2 for bytes, texts and messages.
    pub wire_type: u8,
    /// Where the field begins.
    start: usize,
}

impl Field {
    /// # Errors
    /// Unless the field is written as `expected`; `name` is the field's name in Go.
    pub fn expect(&self, expected: u8, name: &str) -> Result<(), WireError> {
        if self.wire_type == expected {
            return Ok(());
        }
        Err(WireError::WrongWireType { found: self.wire_type, field: name.into() })
    }
}

impl<'a> Reader<'a> {
    /// Reads the message in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next field; its value is to be read or skipped next. `None` at the end. `message` is named in errors.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn field(&mut self, message: &str) -> Result<Option<Field>, WireError> {
        let start = self.at;
        if start >= self.bytes.len() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire_type = (key & 7) as u8;
        if wire_type == 4 {
            return Err(WireError::EndOfGroup(message.into()));
        }
        // Go takes the lower half of the number and its sign.
        let number = ((key >> 3) as u32).cast_signed();
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok(Some(Field { number, wire_type, start })),
            _ => Err(WireError::IllegalTag { message: message.into(), number, key }),
        }
    }

    /// The number of a field of wire type 0.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(WireError::UnexpectedEnd)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::Overflow)
    }

    /// The number of a field of wire type 1.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn double(&mut self) -> Result<f64, WireError> {
        let bytes = self.take(8)?;
        Ok(bytes.try_into().map(f64::from_le_bytes).unwrap_or_default())
    }

    /// The bytes of a field of wire type 2.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        self.take(length)
    }

    /// Whether all is read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Passes over a field that is not known, its value included.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn skip(&mut self, field: Field) -> Result<(), WireError> {
        self.at = field.start;
        let mut depth = 0_usize;
        loop {
            if self.at >= self.bytes.len() {
                return Err(WireError::UnexpectedEnd);
            }
            match (self.varint()? & 7) as u8 {
                0 => drop(self.varint()?),
                1 => self.pass(8)?,
                2 => {
                    let length = self.length()?;
                    self.pass(length)?;
                }
                3 => depth += 1,
                4 => depth = depth.checked_sub(1).ok_or(WireError::UnexpectedEndOfGroup)?,
                5 => self.pass(4)?,
                other => return Err(WireError::IllegalWireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn length(&mut self) -> Result<usize, WireError> {
        let length = self.varint()?.cast_signed();
        let length = usize::try_from(length).map_err(|_| WireError::NegativeLength)?;
        // As a sum in Go: beyond its largest number it is negative.
        self.at
            .checked_add(length)
            .filter(|end| isize::try_from(*end).is_ok())
            .ok_or(WireError::NegativeLength)?;
        Ok(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let found = self.bytes.get(self.at..self.at + length).ok_or(WireError::UnexpectedEnd)?;
        self.at += length;
        Ok(found)
    }

    fn pass(&mut self, length: usize) -> Result<(), WireError> {
        self.take(length).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protobuf::wire::Message;

    fn only(bytes: &[u8]) -> Result<Option<Field>, String> {
        let mut reader = Reader::new(bytes);
        let field = reader.field("Route").map_err(|error| error.to_string())?;
        if let Some(field) = field {
            reader.skip(field).map_err(|error| error.to_string())?;
        }
        Ok(field)
    }

    #[test]
    fn errors_are_those_of_the_generated_code() {
        for (bytes, text) in [
            (&[0x0c][..], "proto: Route: wiretype end group for non-group"),
            (&[0x00], "proto: Route: illegal tag 0 (wire type 0)"),
            (&[0xfa; 11], "proto: integer overflow"),
            (&[0x0a, 0x05, 1], "unexpected EOF"),
            (
                &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                "proto: negative length found during unmarshaling",
            ),
            (&[0x0e], "proto: illegal wireType 6"),
            (&[0x0b, 0x08], "unexpected EOF"),
        ] {
            assert_eq!(only(bytes).unwrap_err(), text);
        }
        let field = only(&[0x08, 0x96, 0x01]).unwrap().unwrap();
        assert_eq!(
            field.expect(2, "Host").unwrap_err().to_string(),
            "proto: wrong wireType = 0 for field Host"
        );
        assert_eq!(only(&[0x0b, 0x10, 0x01, 0x0c]).unwrap().unwrap().number, 1);
    }

    proptest! {
        #[test]
        fn reads_what_is_written(number in 1_u32..1000, integer in any::<i64>(), text in "\\PC{0,300}", float in any::<f64>()) {
            let mut message = Message::default();
            message.integer(number, integer);
            message.nested(number, |inner| inner.text(number, &text));
            message.double(number, float);
            let mut reader = Reader::new(message.as_slice());
            let mut next = |wire_type| {
                let field = reader.field("M").unwrap().unwrap();
                assert_eq!((field.number, field.wire_type), (number, wire_type));
                let mut value = reader.clone();
                reader.skip(field).unwrap();
                value.bytes = &value.bytes[..reader.at];
                value
            };
            prop_assert_eq!(next(0).varint().unwrap().cast_signed(), integer);
            let mut inner = Reader::new(next(2).bytes().unwrap());
            prop_assert_eq!(inner.field("M").unwrap().unwrap().number, number);
            prop_assert_eq!(inner.bytes().unwrap(), text.as_bytes());
            prop_assert!(inner.is_done());
            prop_assert_eq!(next(1).double().unwrap().to_bits(), float.to_bits());
            prop_assert!(reader.is_done());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = Reader::new(&bytes);
            while let Ok(Some(field)) = reader.field("M") {
                if reader.skip(field).is_err() {
                    break;
                }
            }
        }
    }
}
