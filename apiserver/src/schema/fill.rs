//! Decodes a document into a struct as `sigs.k8s.io/json` does: names are case-sensitive, the first wrong type is the
//! error (told once all is read), custom types end the decoding at once, unknown and repeated fields are collected.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::{ELEMENTS_MAX, Field, Kind, Mismatch, Schemas, Type, quantity, time};
use crate::decode::node::{Node, number};
use crate::decode::strict::StrictErrors;

/// Decodes `document` into the struct `root`, which Go prints as `go`. Answers what was set, and strict errors.
pub(super) fn fill(
    schemas: &Schemas,
    root: usize,
    go: &str,
    document: Node,
    strict: bool,
) -> Result<(Map<String, Value>, Vec<String>), Mismatch> {
    let mut filler = Filler {
        schemas,
        at: None,
        fields: Vec::new(),
        error: None,
        strict: strict.then(StrictErrors::default),
        elements: 0,
    };
    let mut slot = Value::Null;
    let r#type = Type { go: go.into(), kind: Kind::Struct(root), wrapped: false };
    filler.value(&r#type, document, &mut slot).map_err(|Abort(why)| Mismatch(why))?;
    if let Some(why) = filler.error {
        return Err(Mismatch(why));
    }
    let map = match slot {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Ok((map, filler.strict.map(StrictErrors::into_found).unwrap_or_default()))
}

/// An error of a type that decodes itself: nothing more is read.
struct Abort(String);

struct Filler<'s> {
    schemas: &'s Schemas,
    /// The struct whose field is being read.
    at: Option<&'s str>,
    /// Names of the fields that lead here; indexes of lists and keys of maps are not among them, as in Go.
    fields: Vec<&'s str>,
    error: Option<String>,
    /// Unknown and repeated fields, where they are asked for.
    strict: Option<StrictErrors>,
    /// Objects in lists and maps so far.
    elements: usize,
}

impl<'s> Filler<'s> {
    /// Decodes into `slot`, which holds what an earlier field of the same name left, or null.
    fn value(&mut self, r#type: &Type, node: Node, slot: &mut Value) -> Result<(), Abort> {
        match (&r#type.kind, node) {
            (Kind::Time, node) => *slot = self.time(node)?,
            // Null changes no number.
            (Kind::IntOrString, Node::Null) if slot.is_number() => {}
            (Kind::IntOrString, node) => *slot = self.int_or_string(node)?,
            (Kind::Quantity, node) => *slot = read_quantity(node)?,
            (Kind::Raw, node) => *slot = node.into_value(),
            // Null empties what can be empty and changes nothing else.
            (Kind::List(_) | Kind::Map(_) | Kind::Bytes, Node::Null) => *slot = Value::Null,
            (_, Node::Null) => {}
            (Kind::Bool, Node::Bool(set)) => *slot = set.into(),
            (Kind::String, Node::Text(text)) => *slot = text.into(),
            (Kind::Bytes, Node::Text(text)) => self.bytes(text, slot),
            (Kind::Int32 | Kind::Int64 | Kind::Float, Node::Number(text)) => match parse(&r#type.kind, &text)
            {
                Some(number) => *slot = number.into(),
                None => self.mismatch(&format!("number {text}"), &r#type.go),
            },
            (Kind::List(element), Node::List(items)) => self.list(element, items, slot)?,
            (Kind::Map(inner), Node::Map(members)) => self.map(inner, members, slot)?,
            (Kind::Struct(index), Node::Map(members)) => self.structure(*index, members, slot)?,
            (_, node) => self.mismatch(node.kind(), &r#type.go),
        }
        Ok(())
    }

    fn structure(
        &mut self,
        index: usize,
        members: Vec<(String, Node)>,
        slot: &mut Value,
    ) -> Result<(), Abort> {
        let schemas = self.schemas;
        let structure = &schemas.structs[index];
        let map = object(slot);
        let mut seen = vec![false; structure.fields.len()];
        for (name, node) in members {
            let Ok(at) = structure.fields.binary_search_by(|f| (*f.name).cmp(&name)) else {
                self.strict_error("unknown field", &name);
                continue;
            };
            let field: &'s Field = &structure.fields[at];
            if std::mem::replace(&mut seen[at], true) {
                self.strict_error("duplicate field", &name);
            }
            let outer = self.at.replace(&structure.go);
            self.fields.push(&field.name);
            let length = self.enter_name(&name);
            let entry = map.entry(name).or_insert(Value::Null);
            if field.pointer && node == Node::Null {
                *entry = Value::Null;
            } else {
                self.value(&field.r#type, node, entry)?;
            }
            self.leave(length);
            self.fields.pop();
            self.at = outer;
        }
        Ok(())
    }

    fn map(&mut self, inner: &Type, members: Vec<(String, Node)>, slot: &mut Value) -> Result<(), Abort> {
        self.count(inner, members.len())?;
        let map = object(slot);
        let mut seen = std::collections::HashSet::new();
        for (name, node) in members {
            if self.strict.is_some() && !seen.insert(name.clone()) {
                self.strict_error("duplicate field", &name);
            }
            let length = self.enter_name(&name);
            let mut value = Value::Null;
            self.value(inner, node, &mut value)?;
            self.leave(length);
            map.insert(name, self.or_zero(inner, value));
        }
        Ok(())
    }

    /// Where a list appears twice, items are decoded into the earlier ones of the same place, as in Go.
    fn list(&mut self, element: &Type, items: Vec<Node>, slot: &mut Value) -> Result<(), Abort> {
        self.count(element, items.len())?;
        let earlier = match slot.take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
        let mut earlier = earlier.into_iter();
        let mut list = Vec::with_capacity(items.len());
        for (at, node) in items.into_iter().enumerate() {
            let length = self.enter_item(at);
            let mut value = earlier.next().unwrap_or(Value::Null);
            self.value(element, node, &mut value)?;
            self.leave(length);
            list.push(self.or_zero(element, value));
        }
        *slot = Value::Array(list);
        Ok(())
    }

    fn count(&mut self, element: &Type, more: usize) -> Result<(), Abort> {
        self.elements += if element.is_object() { more } else { 0 };
        if self.elements > ELEMENTS_MAX {
            return Err(Abort(format!("json: more than {ELEMENTS_MAX} objects in lists and maps")));
        }
        Ok(())
    }

    /// An element that was null, or wrong, is the zero value.
    fn or_zero(&self, r#type: &Type, value: Value) -> Value {
        if value.is_null() { self.schemas.zero_of(r#type) } else { value }
    }

    fn time(&mut self, node: Node) -> Result<Value, Abort> {
        match node {
            Node::Null => Ok(Value::Null),
            Node::Text(text) => time::normalize(&text).map_err(|error| Abort(error.0)),
            other => Err(self.abort(other.kind(), "string")),
        }
    }

    fn int_or_string(&mut self, node: Node) -> Result<Value, Abort> {
        match node {
            Node::Null => Ok(0.into()),
            Node::Text(text) => Ok(text.into()),
            Node::Number(text) => match parse(&Kind::Int32, &text) {
                Some(number) => Ok(number.into()),
                None => Err(self.abort(&format!("number {text}"), "int32")),
            },
            other => Err(self.abort(other.kind(), "int32")),
        }
    }

    fn bytes(&mut self, text: String, slot: &mut Value) {
        match STANDARD.decode(&text) {
            Ok(_) => *slot = text.into(),
            Err(error) => {
                let at = match error {
                    base64::DecodeError::InvalidByte(at, _) => at,
                    _ => text.len(),
                };
                self.error.get_or_insert_with(|| format!("illegal base64 data at input byte {at}"));
            }
        }
    }

    fn mismatch(&mut self, value: &str, go: &str) {
        if self.error.is_none() {
            self.error = Some(self.unmarshal(value, go));
        }
    }

    fn abort(&self, value: &str, go: &str) -> Abort {
        Abort(self.unmarshal(value, go))
    }

    fn unmarshal(&self, value: &str, go: &str) -> String {
        match self.at {
            Some(name) => {
                let path = self.fields.join(".");
                format!("json: cannot unmarshal {value} into Go struct field {name}.{path} of type {go}")
            }
            None => format!("json: cannot unmarshal {value} into Go value of type {go}"),
        }
    }

    fn strict_error(&mut self, what: &str, name: &str) {
        if let Some(strict) = &mut self.strict {
            strict.add(what, name);
        }
    }

    fn enter_name(&mut self, name: &str) -> usize {
        self.strict.as_mut().map_or(0, |strict| strict.enter_name(name))
    }

    fn enter_item(&mut self, at: usize) -> usize {
        self.strict.as_mut().map_or(0, |strict| strict.enter_item(at))
    }

    fn leave(&mut self, length: usize) {
        if let Some(strict) = &mut self.strict {
            strict.leave(length);
        }
    }
}

/// The object in `slot`, made where there is none.
fn object(slot: &mut Value) -> &mut Map<String, Value> {
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}

fn parse(kind: &Kind, text: &str) -> Option<Number> {
    match kind {
        Kind::Int32 => text.parse::<i32>().ok().map(Number::from),
        Kind::Int64 => text.parse::<i64>().ok().map(Number::from),
        _ => number(text),
    }
}

/// Null says nothing; what is no text is read as its JSON, as in Go.
fn read_quantity(node: Node) -> Result<Value, Abort> {
    let text = match node {
        Node::Null => return Ok(Value::Null),
        Node::Text(text) => text,
        Node::Number(text) => text.into(),
        other => other.into_value().to_string(),
    };
    quantity::canonical(&text).map(Value::from).map_err(|error| Abort(error.to_owned()))
}
