//! Single values out of messages.

use jiff::SignedDuration;
use picoshift_machinery::protobuf::wire::Reader;
use serde_json::{Map, Value};

use super::DecodeError;
use crate::decode::json;
use crate::schema::Kind;
use crate::schema::protobuf::EPOCH;
use crate::schema::quantity::{ZERO, canonical};

/// Bytes that are no UTF-8 are shown as Go's JSON shows them.
pub(super) fn text(bytes: &[u8]) -> Value {
    let mut text = String::new();
    json::push_text(&mut text, bytes);
    text.into()
}

pub(super) fn number(kind: &Kind, value: u64) -> Value {
    match kind {
        Kind::Bool => (value != 0).into(),
        Kind::Int32 => (value as u32).cast_signed().into(),
        _ => value.cast_signed().into(),
    }
}

pub(super) fn object(slot: &mut Value) -> &mut Map<String, Value> {
    if !slot.is_object() {
        *slot = Map::new().into();
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}

pub(super) fn list(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = Vec::<Value>::new().into();
    }
    match slot {
        Value::Array(list) => list,
        _ => unreachable!("made a list just above"),
    }
}

/// Whole seconds since 1970; the zero time where there is nothing at all.
pub(super) fn time(bytes: &[u8]) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let mut seconds = 0;
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.field("Timestamp")? {
        match field.number {
            1 => {
                field.expect(0, "Seconds")?;
                seconds = reader.varint()?.cast_signed();
            }
            2 => {
                field.expect(0, "Nanos")?;
                reader.varint()?;
            }
            _ => reader.skip(field)?,
        }
    }
    let time = EPOCH.checked_add(SignedDuration::from_secs(seconds));
    let text = time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    match text {
        Ok(text) if text == "0001-01-01T00:00:00Z" => Ok(Value::Null),
        Ok(text) if !text.starts_with('-') => Ok(text.into()),
        _ => Err(DecodeError::Value(format!("no time of a year between 0 and 9999: {seconds}"))),
    }
}

pub(super) fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut of, mut integer, mut string) = (0, Value::from(0), Value::from(""));
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.field("IntOrString")? {
        match field.number {
            1 => {
                field.expect(0, "Type")?;
                of = reader.varint()?;
            }
            2 => {
                field.expect(0, "IntVal")?;
                integer = number(&Kind::Int32, reader.varint()?);
            }
            3 => {
                field.expect(2, "StrVal")?;
                string = text(reader.bytes()?);
            }
            _ => reader.skip(field)?,
        }
    }
    match of {
        0 => Ok(integer),
        1 => Ok(string),
        _ => Err(DecodeError::Value("impossible IntOrString.Type".to_owned())),
    }
}

pub(super) fn quantity(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut found = Value::from(ZERO);
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.field("Quantity")? {
        if field.number == 1 {
            field.expect(2, "String_")?;
            let text = String::from_utf8_lossy(reader.bytes()?);
            let written = canonical(&text).map_err(|error| DecodeError::Value(error.to_owned()))?;
            found = written.into();
        } else {
            reader.skip(field)?;
        }
    }
    Ok(found)
}

/// JSON inside a message: `RawExtension` and `FieldsV1`.
pub(super) fn raw(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut value = Value::Null;
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.field("RawExtension")? {
        match field.number {
            1 => {
                field.expect(2, "Raw")?;
                let node = json::parse(reader.bytes()?).map_err(|error| DecodeError::Value(error.0))?;
                value = node.into_value();
            }
            _ => reader.skip(field)?,
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broken_byte_is_shown() {
        assert_eq!(text(b"a\xe2\x82b\xff\xc3\xa9"), "a\u{fffd}\u{fffd}b\u{fffd}\u{e9}");
    }
}
