//! Reads the messages of `generated.proto` files, which go-to-protobuf writes in one plain form: one declaration in a line,
//! no message inside another.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// How often a field may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Optional,
    Repeated,
    /// `map<string, T>`.
    Map,
}

/// One field of a message.
#[derive(Clone, Debug)]
pub(crate) struct ProtoField {
    pub(crate) number: u32,
    /// The name, which is the JSON name but for embedded structs and a few meta types.
    pub(crate) name: String,
    pub(crate) label: Label,
    /// A scalar such as `int64`, or the definition that a message is in the OpenAPI document.
    pub(crate) r#type: String,
}

/// Messages of one file by name.
#[derive(Debug)]
pub(crate) struct ProtoFile(HashMap<String, Vec<ProtoField>>);

impl ProtoFile {
    /// Reads `generated.proto` in the folder of a package.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("generated.proto");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("reading {}", path.display()))
    }

    /// The fields of a message, by number.
    pub(crate) fn message(&self, name: &str) -> Option<&[ProtoField]> {
        self.0.get(name).map(Vec::as_slice)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut messages = HashMap::new();
        let mut package = String::new();
        let mut current: Option<(String, Vec<ProtoField>)> = None;
        let mut in_comment = false;
        for line in text.lines().map(str::trim) {
            in_comment = (in_comment || line.starts_with("/*")) && !line.ends_with("*/");
            if in_comment || line.ends_with("*/") || line.is_empty() || line.starts_with("//") {
                continue;
            }
            let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
            match (&mut current, words.as_slice()) {
                (None, ["package", name]) => package = definition(name),
                (None, ["syntax" | "import" | "option", ..]) => {}
                (None, ["message", name, "{"]) => current = Some(((*name).to_owned(), Vec::new())),
                (Some((name, fields)), ["}"]) => {
                    fields.sort_by_key(|field| field.number);
                    messages.insert(std::mem::take(name), std::mem::take(fields));
                    current = None;
                }
                (Some((_, fields)), words) => {
                    fields.push(field(words, &package).with_context(|| line.to_owned())?);
                }
                (None, _) => bail!("unknown declaration: {line}"),
            }
        }
        Ok(Self(messages))
    }
}

fn field(words: &[&str], package: &str) -> Result<ProtoField> {
    let (label, r#type, name, number) = match words {
        ["optional", r#type, name, "=", number] => (Label::Optional, *r#type, name, number),
        ["repeated", r#type, name, "=", number] => (Label::Repeated, *r#type, name, number),
        ["map<string,", value, name, "=", number] => (Label::Map, value.trim_end_matches('>'), name, number),
        _ => bail!("unknown form of a field"),
    };
    let r#type = match r#type.strip_prefix('.') {
        Some(full) => definition(full),
        None if r#type.starts_with(char::is_uppercase) => format!("{package}.{type}"),
        None => r#type.to_owned(),
    };
    Ok(ProtoField { number: number.parse()?, name: (*name).to_owned(), label, r#type })
}

/// What stands before the names of definitions for what stands before the names of messages.
fn definition(name: &str) -> String {
    for (proto, open_api) in [("github.com.", "com.github."), ("k8s.io.", "io.k8s.")] {
        if let Some(rest) = name.strip_prefix(proto) {
            return format!("{open_api}{rest}");
        }
    }
    name.to_owned()
}
