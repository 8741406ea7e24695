//! OpenAPI documents in protobuf, as `github.com/google/gnostic-models` writes them: what client-go's discovery, older
//! kubectl and `oc explain` ask for.
//!
//! In: documents in JSON. Out: messages. Values of any type are YAML texts in them.

pub(super) mod v2;
pub(super) mod v3;
mod yaml;

use picoshift_machinery::protobuf::wire::Message;
use serde_json::{Map, Value};

/// What begins with `x-`.
fn extensions(out: &mut Message, number: u32, of: &Value) {
    for (name, value) in members(of).filter(|(name, _)| name.starts_with("x-")) {
        named(out, number, name, |out| any(out, value));
    }
}

fn any(out: &mut Message, value: &Value) {
    out.text(2, &yaml::block(value));
}

fn named(out: &mut Message, number: u32, name: &str, value: impl FnOnce(&mut Message)) {
    out.nested(number, |out| {
        out.text(1, name);
        out.nested(2, value);
    });
}

/// Texts, where they are not empty.
fn texts(out: &mut Message, of: &Value, fields: &[(u32, &str)]) {
    for (number, field) in fields {
        if let Some(text) = of[*field].as_str().filter(|text| !text.is_empty()) {
            out.text(*number, text);
        }
    }
}

fn all_texts(out: &mut Message, number: u32, texts: &Value) {
    for text in list(texts) {
        out.text(number, text.as_str().unwrap_or_default());
    }
}

fn truth(out: &mut Message, number: u32, value: &Value) {
    if value == true {
        out.integer(number, 1);
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
