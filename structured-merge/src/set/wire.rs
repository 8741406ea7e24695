//! FieldsV1, the JSON form of a set: `{"f:spec":{".":{},"f:host":{}}}`.

use serde_json::{Map, Value};

use super::{FieldSet, Node};
use crate::path::PathElement;

/// How deep paths may be. Objects nest less deep, and what is deeper is none of ours.
const MAX_DEPTH: usize = 100;

/// Why a value is no FieldsV1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key is no path element.
    #[error("{0}")]
    Element(#[from] crate::path::ElementError),
    /// Neither an object nor null.
    #[error("expect {{ or n")]
    Form,
    /// Nested too deep.
    #[error("exceeded max depth")]
    Depth,
}

impl FieldSet {
    /// Reads a set. Elements of a kind that is not known are left out, as they may be a newer version's.
    ///
    /// # Errors
    /// [`FieldsError`].
    pub fn from_json(value: &Value) -> Result<Self, FieldsError> {
        Ok(read(value, MAX_DEPTH)?.0)
    }

    /// The JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, member: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if member && !self.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in &self.nodes {
            map.insert(node.element.encode(), Value::Object(node.children.write(node.member)));
        }
        map
    }
}

/// The set that a value holds, and whether what leads to it is a member.
fn read(value: &Value, depth: usize) -> Result<(FieldSet, bool), FieldsError> {
    let depth = depth.checked_sub(1).ok_or(FieldsError::Depth)?;
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok((FieldSet::default(), true)),
        _ => return Err(FieldsError::Form),
    };
    let mut nodes: Vec<Node> = Vec::with_capacity(map.len());
    let mut member = false;
    for (key, below) in map {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (children, member) = read(below, depth)?;
        if member || !children.is_empty() {
            nodes.push(Node { element, member, children });
        }
    }
    if !nodes.is_sorted_by(|a, b| a.element < b.element) {
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        // Two texts may be one element: `v:1` and `v:1.0`.
        nodes.dedup_by(|later, earlier| {
            let same = later.element == earlier.element;
            if same {
                earlier.member |= later.member;
                earlier.children = earlier.children.union(&later.children);
            }
            same
        });
    }
    let member = member || nodes.is_empty();
    Ok((FieldSet { nodes }, member))
}
