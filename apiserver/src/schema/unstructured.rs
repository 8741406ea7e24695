//! From JSON to a Go struct without a text in between, as a server does after a strategic merge patch or an apply: what fits, and the
//! errors, are not quite those of a JSON decoder (`k8s.io/apimachinery/pkg/runtime/converter.go`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Checked, Field, Kind, Mismatch, Schemas, Type, quantity, time};
use crate::decode::node::Node;

impl Schemas {
    /// Makes of a JSON object what the Go type would be. `strict` of the answer are unknown fields, sorted.
    ///
    /// # Errors
    /// [`Mismatch`] for the first value that cannot be converted.
    pub(crate) fn convert(&self, schema: &str, map: Map<String, Value>) -> Result<Checked, Mismatch> {
        let index = *self.by_name.get(schema).ok_or_else(|| Mismatch(format!("no schema {schema}")))?;
        let mut converter = Converter { schemas: self, path: String::new(), unknown: Vec::new() };
        let mut value = Value::Object(map);
        converter.structure(index, &mut value).map_err(Mismatch)?;
        let mut unknown = converter.unknown;
        unknown.sort_unstable();
        let checked = self.decode_as(schema, Node::from(value), false)?;
        Ok(Checked { strict: unknown, ..checked })
    }
}

struct Converter<'s> {
    schemas: &'s Schemas,
    path: String,
    unknown: Vec<String>,
}

impl Converter<'_> {
    fn structure(&mut self, index: usize, value: &mut Value) -> Result<(), String> {
        let map = match value {
            Value::Object(map) => map,
            other => return Err(format!("cannot restore struct from: {}", kind(other))),
        };
        let fields = &self.schemas.structs[index].fields;
        let mut known: Vec<&Field> = fields.iter().filter(|field| map.contains_key(&*field.name)).collect();
        known.sort_by_key(|field| field.position);
        for field in &known {
            if let Some(value) = map.get_mut(&*field.name) {
                let length = self.path.len();
                self.enter(&field.name);
                self.value(&field.r#type, value)?;
                self.path.truncate(length);
            }
        }
        if map.len() > known.len() {
            let names = map.keys().filter(|name| fields.binary_search_by(|f| (*f.name).cmp(name)).is_err());
            let names: Vec<String> = names.cloned().collect();
            for name in names {
                map.remove(&name);
                let dot = if self.path.is_empty() { "" } else { "." };
                self.unknown.push(format!("unknown field \"{}{dot}{name}\"", self.path));
            }
        }
        Ok(())
    }

    fn value(&mut self, r#type: &Type, value: &mut Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match (&r#type.kind, &mut *value) {
            (Kind::Struct(index), value) => self.structure(*index, value)?,
            (Kind::List(element), Value::Array(list)) => {
                for (at, item) in list.iter_mut().enumerate() {
                    let length = self.path.len();
                    self.path.push_str(&format!("[{at}]"));
                    self.value(element, item)?;
                    self.path.truncate(length);
                }
            }
            (Kind::Map(inner), Value::Object(map)) => {
                for item in map.values_mut() {
                    self.value(inner, item)?;
                }
            }
            (Kind::Bytes, Value::String(text)) => {
                if let Err(error) = STANDARD.decode(text.as_bytes()) {
                    let at = match error {
                        base64::DecodeError::InvalidByte(at, _) => at,
                        _ => text.len(),
                    };
                    return Err(format!("error decoding from json: illegal base64 data at input byte {at}"));
                }
            }
            (Kind::Bytes, Value::Array(list)) => {
                let bytes = list.iter().map(byte).collect::<Result<Vec<u8>, String>>()?;
                *value = STANDARD.encode(bytes).into();
            }
            (Kind::Map(_), other) => return Err(format!("cannot restore map from {}", kind(other))),
            (Kind::List(_) | Kind::Bytes, other) => {
                return Err(format!("cannot restore slice from {}", kind(other)));
            }
            (Kind::Raw, _) | (Kind::IntOrString, Value::String(_)) => {}
            (Kind::Time, Value::String(text)) => {
                time::normalize(text).map_err(|error| error.0)?;
            }
            (Kind::Time, other) => return Err(unmarshal(other, "string")),
            (Kind::Quantity, other) => {
                let text = other.as_str().map_or_else(|| other.to_string(), ToOwned::to_owned);
                *other = quantity::canonical(&text)?.into();
            }
            (Kind::IntOrString, other) => {
                // It goes through JSON, where a whole float is written as an integer is.
                if let Some(whole) = other.as_f64().filter(|float| other.is_f64() && is_whole(*float)) {
                    *other = integer(whole).into();
                }
                if other.as_i64().is_none_or(|n| i32::try_from(n).is_err()) {
                    return Err(unmarshal(other, "int32"));
                }
            }
            (Kind::Bool | Kind::Float | Kind::Int32 | Kind::Int64 | Kind::String, _) => {
                scalar(r#type, value)?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

/// Numbers become numbers of the other type where nothing is lost but high bits, as in Go.
fn scalar(r#type: &Type, value: &mut Value) -> Result<(), String> {
    let (unrecognized, is_integer) = match r#type.kind {
        Kind::Bool => ("bool", false),
        Kind::Float => ("float64", false),
        Kind::Int32 => ("int32", true),
        Kind::Int64 => ("int64", true),
        _ => ("string", false),
    };
    let cannot = |from: &str| Err(format!("cannot convert {from} to {}", r#type.go));
    match (&r#type.kind, &*value) {
        (Kind::Bool, Value::Bool(_)) | (Kind::String, Value::String(_)) | (Kind::Float, Value::Number(_)) => {
        }
        (_, Value::Number(number)) if is_integer => {
            let converted = match (number.as_i64(), number.as_f64()) {
                (Some(exact), _) => exact,
                (None, Some(float)) if float.trunc() == float => integer(float),
                _ => return cannot("float64"),
            };
            *value = match r#type.kind {
                Kind::Int32 => (converted as i32).into(),
                _ => converted.into(),
            };
        }
        // Go could make a letter of an integer, but a server does not.
        (Kind::String, Value::Number(number)) if number.is_i64() => return cannot("int64"),
        _ => return Err(format!("unrecognized type: {unrecognized}")),
    }
    Ok(())
}

/// Whether a float is an integer that an `i64` holds.
fn is_whole(float: f64) -> bool {
    float.trunc() == float && float.abs() < 9_223_372_036_854_775_808.0
}

/// What processors make of a float that no integer holds is the smallest one; Rust would take the nearest.
fn integer(float: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    if fits { float as i64 } else { i64::MIN }
}

/// One byte of a list of numbers.
fn byte(value: &Value) -> Result<u8, String> {
    match (value.as_i64(), value.as_f64()) {
        (Some(exact), _) => Ok(exact as u8),
        (None, Some(float)) if float.trunc() == float => Ok(integer(float) as u8),
        (None, Some(_)) => Err("cannot convert float64 to uint8".to_owned()),
        (None, None) if value.is_null() => Ok(0),
        (None, None) => Err("unrecognized type: uint8".to_owned()),
    }
}

/// What Go calls the kind of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// The error of a type that reads JSON itself.
fn unmarshal(value: &Value, go: &str) -> String {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if go == "int32" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go value of type {go}")
}
