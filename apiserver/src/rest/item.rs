//! `Item`: an object as it is served, encoded once.

use bytes::Bytes;
use picoshift_machinery::Object;
use serde_json::Value;

use crate::resource::Resource;
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
        let bytes = object.to_bytes();
        Self {
            namespace: object.namespace().into(),
            name: object.name().into(),
            revision,
            labels,
            fields,
            untyped: untyped(&bytes),
            bytes,
        }
    }

    /// The object as lists show it, without its opening brace and without apiVersion and kind, which the list has.
    #[must_use]
    pub fn listed(&self) -> &[u8] {
        self.bytes.get(self.untyped..).unwrap_or_default()
    }

    /// The object, parsed again: for what is not on a hot path (tables, metadata, patches).
    ///
    /// # Errors
    /// The parser's; bytes of an `Item` were encoded by `new`, so an error is ours.
    pub fn object(&self) -> Result<Object, serde_json::Error> {
        Object::from_slice(&self.bytes)
    }
}

/// Where the fields after apiVersion and kind begin: fields are encoded in the order of their names, and these two texts
/// need no escapes.
fn untyped(bytes: &[u8]) -> usize {
    let mut at = 1;
    for start in [&b"\"apiVersion\":\""[..], b"\"kind\":\""] {
        let Some(value) = bytes.get(at..).and_then(|rest| rest.strip_prefix(start)) else { continue };
        let Some(end) = value.windows(2).position(|two| two == b"\",") else { return 1 };
        at += start.len() + end + 2;
    }
    at
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
    use super::*;

    #[test]
    fn lists_leave_the_type_out() {
        let shown = |text: &str| text[untyped(text.as_bytes())..].to_owned();
        let rest = r#""metadata":{"kind":"x"}}"#;
        assert_eq!(shown(&format!(r#"{{"apiVersion":"a/v1","kind":"K",{rest}"#)), rest);
        assert_eq!(shown(&format!("{{{rest}")), rest);
        assert_eq!(shown(&format!(r#"{{"kind":"K",{rest}"#)), rest);
    }
}
