//! Messages → objects. Unknown fields are passed over; of a field that is there twice the last one counts, lists grow,
//! messages are filled further, as in Go.

mod values;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picoshift_machinery::Object;
use picoshift_machinery::protobuf::wire::{Field, Reader, WireError};
use serde_json::{Map, Number, Value};

use self::values::{int_or_string, list, number, object, quantity, raw, text, time};
use super::{Slot, WireField};
use crate::schema::{ELEMENTS_MAX, Kind, Schemas, Struct, Type};

/// Why a message is no object of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are no such message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A value that JSON cannot show.
    #[error("{0}")]
    Value(String),
    /// Too many messages inside.
    #[error("proto: more than {ELEMENTS_MAX} messages in lists and maps")]
    TooLarge,
}

impl Schemas {
    /// Reads the message of a schema by its name in the OpenAPI document. The object has neither apiVersion nor kind.
    ///
    /// # Errors
    /// [`DecodeError`]; also when there is no such schema.
    pub fn from_protobuf(&self, schema: &str, bytes: &[u8]) -> Result<Object, DecodeError> {
        let no_schema = || DecodeError::Value(format!("no schema {schema}"));
        let index = *self.by_name.get(schema).ok_or_else(no_schema)?;
        let root = &self.structs[index];
        let mut map = Map::new();
        Decoder { schemas: self, elements: 0 }.fields(root, &root.wire, &root.go, bytes, &mut map)?;
        self.complete(index, &mut map);
        Ok(Object(map))
    }
}

struct Decoder<'s> {
    schemas: &'s Schemas,
    /// Messages in lists and maps so far.
    elements: usize,
}

/// The types of the served kinds do not contain themselves, so no message makes this recursion deep.
impl Decoder<'_> {
    fn fields(
        &mut self,
        of: &Struct,
        wire: &[WireField],
        name: &str,
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        let mut reader = Reader::new(bytes);
        while let Some(field) = reader.field(name)? {
            let Ok(at) = wire.binary_search_by_key(&field.number, |known| known.number) else {
                reader.skip(field)?;
                continue;
            };
            let WireField { go, slot, .. } = &wire[at];
            match slot {
                Slot::Inline(inner) => {
                    field.expect(2, go)?;
                    self.fields(of, inner, go, reader.bytes()?, map)?;
                }
                Slot::Field(index) => {
                    let known = &of.fields[*index];
                    let value = map.entry(&*known.name).or_insert(Value::Null);
                    self.value(&known.r#type, go, field, &mut reader, value)?;
                }
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        r#type: &Type,
        go: &str,
        field: Field,
        reader: &mut Reader<'_>,
        slot: &mut Value,
    ) -> Result<(), DecodeError> {
        if !r#type.wrapped {
            return self.unwrapped(&r#type.kind, go, field, reader, slot);
        }
        field.expect(2, go)?;
        if slot.is_null() {
            *slot = if matches!(r#type.kind, Kind::Map(_)) {
                Map::new().into()
            } else {
                Vec::<Value>::new().into()
            };
        }
        let name = r#type.go.rsplit('.').next().unwrap_or_default();
        let mut reader = Reader::new(reader.bytes()?);
        while let Some(field) = reader.field(name)? {
            match field.number {
                1 => self.unwrapped(&r#type.kind, "Items", field, &mut reader, slot)?,
                _ => reader.skip(field)?,
            }
        }
        Ok(())
    }

    fn unwrapped(
        &mut self,
        kind: &Kind,
        go: &str,
        field: Field,
        reader: &mut Reader<'_>,
        slot: &mut Value,
    ) -> Result<(), DecodeError> {
        match kind {
            Kind::Bool | Kind::Int32 | Kind::Int64 => {
                field.expect(0, go)?;
                *slot = number(kind, reader.varint()?);
            }
            Kind::Float => {
                field.expect(1, go)?;
                *slot = Number::from_f64(reader.double()?).map_or(Value::Null, Value::Number);
            }
            Kind::List(element) => self.element(element, go, field, reader, slot)?,
            _ => {
                field.expect(2, go)?;
                self.delimited(kind, reader.bytes()?, slot)?;
            }
        }
        Ok(())
    }

    /// A value that is written with its length.
    fn delimited(&mut self, kind: &Kind, bytes: &[u8], slot: &mut Value) -> Result<(), DecodeError> {
        match kind {
            Kind::String => *slot = text(bytes),
            Kind::Bytes => *slot = STANDARD.encode(bytes).into(),
            Kind::Time => *slot = time(bytes)?,
            Kind::IntOrString => *slot = int_or_string(bytes)?,
            Kind::Quantity => *slot = quantity(bytes)?,
            Kind::Raw => *slot = raw(bytes)?,
            Kind::Struct(index) => {
                let schemas = self.schemas;
                let of = &schemas.structs[*index];
                self.fields(of, &of.wire, &of.go, bytes, object(slot))?;
            }
            Kind::Map(inner) => {
                let (key, value) = self.entry(inner, bytes)?;
                object(slot).insert(key, value);
            }
            Kind::Bool | Kind::Float | Kind::Int32 | Kind::Int64 | Kind::List(_) => {}
        }
        Ok(())
    }

    fn element(
        &mut self,
        element: &Type,
        go: &str,
        field: Field,
        reader: &mut Reader<'_>,
        slot: &mut Value,
    ) -> Result<(), DecodeError> {
        let list = list(slot);
        let is_number = matches!(element.kind, Kind::Bool | Kind::Int32 | Kind::Int64);
        if is_number && field.wire_type == 2 {
            let mut packed = Reader::new(reader.bytes()?);
            while !packed.is_done() {
                list.push(number(&element.kind, packed.varint()?));
            }
            return Ok(());
        }
        self.count(element)?;
        let mut value = Value::Null;
        self.value(element, go, field, reader, &mut value)?;
        list.push(value);
        Ok(())
    }

    /// An entry of a map: a message with the key as 1 and the value as 2.
    fn entry(&mut self, inner: &Type, bytes: &[u8]) -> Result<(String, Value), DecodeError> {
        self.count(inner)?;
        let (mut key, mut value) = (String::new(), Value::Null);
        let mut reader = Reader::new(bytes);
        while let Some(field) = reader.field("")? {
            match field.number {
                1 => key = String::from_utf8_lossy(reader.bytes()?).into_owned(),
                2 => {
                    value = Value::Null;
                    self.value(inner, "", field, &mut reader, &mut value)?;
                }
                _ => reader.skip(field)?,
            }
        }
        let value = match (&inner.kind, value) {
            (Kind::Bytes, Value::Null) => "".into(),
            (_, Value::Null) => self.schemas.zero_of(inner),
            (_, value) => value,
        };
        Ok((key, value))
    }

    fn count(&mut self, element: &Type) -> Result<(), DecodeError> {
        self.elements += usize::from(element.is_object());
        if self.elements > ELEMENTS_MAX { Err(DecodeError::TooLarge) } else { Ok(()) }
    }
}
