//! YAML bodies. The first document counts; anchors and aliases within limits that keep a small body from becoming a large object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Options, Spanned};

use super::Parsed;
use super::json::MAX_DEPTH;
use super::node::Node;

/// How many nodes aliases may add.
const MAX_ALIASED: usize = 20_000;

/// Parses the first YAML document.
pub(super) fn parse(body: &[u8]) -> Result<Parsed, String> {
    let mut options = Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    // Kubernetes reads YAML 1.1.
    options.legacy_octal_numbers = true;
    options.alias_limits.max_total_replayed_events = MAX_ALIASED;
    if let Some(budget) = &mut options.budget {
        budget.max_depth = MAX_DEPTH;
        budget.max_documents = 1;
    }
    let text = std::str::from_utf8(body).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let document: Document = serde_saphyr::from_str_with_options(first_document(text), options)
        .map_err(|error| go_error(&error.to_string()))?;
    let mut repeated = Vec::new();
    let node = document.node(&mut repeated);
    Ok(Parsed { node, repeated })
}

/// The text up to where the first document ends: what stands after it is not read.
fn first_document(text: &str) -> &str {
    let mut begun = false;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let marks = |mark: &str| {
            let rest = line.strip_prefix(mark);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        let start = marks("---");
        if begun && (start || marks("...")) {
            return &text[..end];
        }
        begun |= start || !(line.trim().is_empty() || line.starts_with(['#', '%']));
        end += line.len();
    }
    text
}

/// The strict error that keys which appear twice make together.
pub(super) fn strict_error(repeated: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "))
}

/// `error: line 2 column 3: why` as Go's parser writes it; it does not name the first line.
fn go_error(text: &str) -> String {
    let text = text.lines().next().unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let located = text.strip_prefix("line ").and_then(|rest| {
        let (line, rest) = rest.split_once(" column ")?;
        let (_, why) = rest.split_once(": ")?;
        Some((line, why))
    });
    match located {
        Some(("1", why)) => format!("yaml: {why}"),
        Some((line, why)) => format!("yaml: line {line}: {why}"),
        None => format!("yaml: {text}"),
    }
}

/// A YAML node with the lines of its keys.
enum Document {
    Scalar(Node),
    List(Vec<Document>),
    Map(Vec<(String, u64, Document)>),
}

impl Document {
    fn node(self, repeated: &mut Vec<String>) -> Node {
        match self {
            Self::Scalar(node) => node,
            Self::List(list) => Node::List(list.into_iter().map(|item| item.node(repeated)).collect()),
            Self::Map(members) => {
                let mut out: Vec<(String, Node)> = Vec::with_capacity(members.len());
                let mut seen = std::collections::HashMap::new();
                for (name, line, value) in members {
                    let node = value.node(repeated);
                    // The last of keys with one name counts; JSON made from YAML has none of them twice.
                    if let Some(at) = seen.insert(name.clone(), out.len()) {
                        repeated.push(format!(
                            "line {line}: key {} already set in map",
                            picoshift_machinery::field_error::quote(&name)
                        ));
                        seen.insert(name, at);
                        out[at].1 = node;
                    } else {
                        out.push((name, node));
                    }
                }
                Node::Map(out)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value that JSON can hold")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Number(value.to_string().into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Number(value.to_string().into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Document, E> {
        let number =
            serde_json::Number::from_f64(value).ok_or_else(|| E::custom("a number that JSON cannot hold"))?;
        // JSON made from YAML writes whole numbers without a fraction.
        let text = number.to_string();
        Ok(Document::Scalar(Node::Number(text.strip_suffix(".0").unwrap_or(&text).into())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Text(value)))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Null))
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(Document::Scalar(Node::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        Document::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            members.push((key.value, key.referenced.line(), map.next_value()?));
        }
        Ok(Document::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use super::first_document;

    #[test]
    fn the_first_document_ends_where_another_begins() {
        for (text, first) in [
            ("a: b\n---\nc: d\n", "a: b\n"),
            ("# x\n---\na: b\n--- # y\nc: d", "# x\n---\na: b\n"),
            ("a: b\n...\nrest", "a: b\n"),
            ("---\n---\na: b", "---\n"),
            ("a: |\n  ---\n---x: y\n", "a: |\n  ---\n---x: y\n"),
            ("{}", "{}"),
            ("", ""),
        ] {
            assert_eq!(first_document(text), first, "{text:?}");
        }
    }
}
