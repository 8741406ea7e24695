//! `Item`: an object as it is served, encoded once.

use std::sync::OnceLock;

use bytes::Bytes;
use picoshift_machinery::{Object, Status};
use serde::Deserialize;
use serde_json::Value;

use super::message::Message;
use crate::resource::Resource;
use crate::schema::Schemas;
use crate::store::Revision;

/// An object as clients see it at one revision: its bytes, and what selectors need of it.
#[derive(Clone, Debug)]
pub struct Item {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// The revision that `metadata.resourceVersion` shows.
    pub revision: Revision,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the resource's `field_labels`, in their order.
    pub fields: Box<[Box<str>]>,
    /// The object in JSON, `metadata.resourceVersion` included.
    pub bytes: Bytes,
    /// Where the bytes go on after apiVersion and kind.
    pub(crate) untyped: usize,
    /// In protobuf, once a client has asked for it.
    pub(crate) message: OnceLock<Box<Message>>,
}

impl Item {
    /// Encodes an object whose metadata is complete but for `resourceVersion`, which becomes `revision`;
    /// 0 is an object that is not stored, and shows none.
    #[must_use]
    pub fn new(resource: &Resource, mut object: Object, revision: Revision) -> Self {
        let version = if revision == 0 { Value::Null } else { revision.to_string().into() };
        object.set_metadata("resourceVersion", version);
        let labels =
            object.labels().into_iter().map(|(k, v)| (Box::from(k), Box::from(v))).collect::<Box<[_]>>();
        let fields = resource.field_labels.iter().map(|label| field(&object, label)).collect();
        let (namespace, name) = (object.namespace().into(), object.name().into());
        let (bytes, untyped) = encode(object);
        Self { namespace, name, revision, labels, fields, bytes, untyped, message: OnceLock::new() }
    }

    /// The object as lists show it, without its opening brace and without apiVersion and kind, which the list has.
    #[must_use]
    pub fn listed(&self) -> &[u8] {
        self.bytes.get(self.untyped..).unwrap_or_default()
    }

    /// The object in protobuf, encoded when it is first asked for.
    ///
    /// # Errors
    /// 406 for a kind without a message, 500 when our own bytes cannot be read.
    pub fn message(&self, schemas: &Schemas) -> Result<&Message, Status> {
        if let Some(message) = self.message.get() {
            return Ok(message);
        }
        let message = Message::of(&self.object().map_err(Status::internal)?, schemas)?;
        Ok(self.message.get_or_init(|| Box::new(message)))
    }

    /// The object's metadata, parsed again: the garbage collector watches nothing else of all there is.
    ///
    /// # Errors
    /// As [`Item::object`].
    pub fn metadata(&self) -> Result<Value, serde_json::Error> {
        #[derive(Deserialize)]
        struct Parts {
            #[serde(default)]
            metadata: Value,
        }
        serde_json::from_slice::<Parts>(&self.bytes).map(|parts| parts.metadata)
    }

    /// The object, parsed again: for what is not on a hot path (tables, patches).
    ///
    /// # Errors
    /// The parser's; bytes of an `Item` were encoded by `new`, so an error is ours.
    pub fn object(&self) -> Result<Object, serde_json::Error> {
        Object::from_slice(&self.bytes)
    }
}

/// The object with apiVersion and kind before all else, and where the bytes go on after these two.
fn encode(mut object: Object) -> (Bytes, usize) {
    let types = ["apiVersion", "kind"].map(|field| (field, object.0.remove(field)));
    let rest = object.to_bytes();
    let mut bytes = Vec::with_capacity(rest.len() + 64);
    bytes.push(b'{');
    for (field, value) in types.into_iter().filter_map(|(field, value)| Some((field, value?))) {
        bytes.extend_from_slice(format!("\"{field}\":{value},").as_bytes());
    }
    let untyped = bytes.len();
    bytes.extend_from_slice(rest.get(1..).unwrap_or_default());
    (bytes.into(), untyped)
}

/// The text of a dotted path such as `spec.to.name`.
fn field(object: &Object, label: &str) -> Box<str> {
    let path: Vec<&str> = label.split('.').collect();
    match object.at(&path) {
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Null) | None => "".into(),
        Some(other) => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_leave_the_type_out() {
        let object =
            json!({"metadata": {"kind": "x"}, "kind": "K", "apiVersion": "a/v1", "groups": null, "extra": 1});
        let object = Object::from_value(object).unwrap();
        let (bytes, untyped) = encode(object.clone());
        assert_eq!(Object::from_slice(&bytes).unwrap(), object);
        assert_eq!(&bytes[untyped..], br#""extra":1,"groups":null,"metadata":{"kind":"x"}}"#);
        let bare = Object::from_value(json!({"metadata": {}})).unwrap();
        assert_eq!(encode(bare), (Bytes::from_static(br#"{"metadata":{}}"#), 1));
    }
}
