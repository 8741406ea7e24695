//! Objects → messages. Fields that are no pointers, lists, maps or bytes are written even when they are empty; maps are
//! written in the order of their keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::DateTime;
use picoshift_machinery::Object;
use picoshift_machinery::protobuf::wire::Message;
use serde_json::{Map, Value};

use super::{EPOCH, Slot, WireField};
use crate::schema::quantity::ZERO;
use crate::schema::{Kind, Schemas, Struct, Type};

impl Schemas {
    /// The object as a message, without its envelope; `None` for a kind that has no schema.
    #[must_use]
    pub fn to_protobuf(&self, object: &Object) -> Option<Vec<u8>> {
        let kind = format!("{}/{}", object.api_version(), object.kind());
        let root = &self.structs[*self.by_kind.get(kind.as_str())?];
        let mut out = Message::default();
        self.fields(root, &root.wire, Some(&object.0), &mut out);
        Some(out.into_vec())
    }

    /// The message of an object that has this metadata alone, without its envelope.
    #[must_use]
    pub fn metadata_to_protobuf(&self, metadata: &Value) -> Vec<u8> {
        let meta = &self.structs[self.object_meta];
        let mut out = Message::default();
        out.nested(1, |out| self.fields(meta, &meta.wire, metadata.as_object(), out));
        out.into_vec()
    }

    fn fields(&self, of: &Struct, wire: &[WireField], map: Option<&Map<String, Value>>, out: &mut Message) {
        for WireField { number, slot, .. } in wire {
            match slot {
                Slot::Inline(inner) => out.nested(*number, |out| self.fields(of, inner, map, out)),
                Slot::Field(index) => {
                    let field = &of.fields[*index];
                    let value = set(map.and_then(|map| map.get(&*field.name)));
                    if value.is_some() || !field.pointer {
                        self.value(*number, &field.r#type, value, out);
                    }
                }
            }
        }
    }

    /// Writes a value; `None` is Go's zero value.
    fn value(&self, number: u32, r#type: &Type, value: Option<&Value>, out: &mut Message) {
        if !r#type.wrapped {
            self.unwrapped(number, &r#type.kind, value, out);
        } else if value.is_some() {
            out.nested(number, |out| self.unwrapped(1, &r#type.kind, value, out));
        }
    }

    fn unwrapped(&self, number: u32, kind: &Kind, value: Option<&Value>, out: &mut Message) {
        let text = value.and_then(Value::as_str);
        match kind {
            Kind::Bool => out.integer(number, value.and_then(Value::as_bool).unwrap_or_default().into()),
            Kind::Int32 | Kind::Int64 => {
                out.integer(number, value.and_then(Value::as_i64).unwrap_or_default());
            }
            Kind::Float => out.double(number, value.and_then(Value::as_f64).unwrap_or_default()),
            Kind::String => out.text(number, text.unwrap_or_default()),
            Kind::Bytes => {
                if let Some(text) = text {
                    out.bytes(number, &STANDARD.decode(text).unwrap_or_default());
                }
            }
            Kind::Time => out.nested(number, |out| time(text.unwrap_or_default(), out)),
            Kind::IntOrString => out.nested(number, |out| {
                out.integer(1, text.is_some().into());
                out.integer(2, value.and_then(Value::as_i64).unwrap_or_default());
                out.text(3, text.unwrap_or_default());
            }),
            Kind::Quantity => out.nested(number, |out| out.text(1, text.unwrap_or(ZERO))),
            Kind::Raw => out.nested(number, |out| {
                if let Some(value) = value {
                    out.text(1, &value.to_string());
                }
            }),
            Kind::Struct(index) => {
                let of = &self.structs[*index];
                let map = value.and_then(Value::as_object);
                out.nested(number, |out| self.fields(of, &of.wire, map, out));
            }
            Kind::List(element) => {
                for item in value.and_then(Value::as_array).into_iter().flatten() {
                    match (&element.kind, set(Some(item))) {
                        (Kind::Bytes, None) => out.bytes(number, b""),
                        (_, item) => self.value(number, element, item, out),
                    }
                }
            }
            Kind::Map(inner) => {
                for (key, item) in value.and_then(Value::as_object).into_iter().flatten() {
                    out.nested(number, |out| {
                        out.text(1, key);
                        self.value(2, inner, set(Some(item)), out);
                    });
                }
            }
        }
    }
}

/// Null is as good as nothing.
fn set(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

/// Seconds, and nanoseconds that are always 0; nothing for the zero time.
fn time(text: &str, out: &mut Message) {
    // A civil time reaches the end of the year 9999, a timestamp does not.
    if let Ok(time) = text.trim_end_matches('Z').parse::<DateTime>() {
        out.integer(1, time.duration_since(EPOCH).as_secs());
        out.integer(2, 0);
    }
}
