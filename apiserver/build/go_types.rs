//! Reads struct declarations of Go packages: the type of each field and how it is encoded, which OpenAPI does not say.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// One field with a `json` tag.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoField {
    /// The name in Go.
    pub(crate) name: String,
    /// The type as Go prints it, without a leading `*`: `[]v1.RouteIngress`.
    pub(crate) r#type: String,
    /// Whether the field is a pointer.
    pub(crate) pointer: bool,
    /// `omitempty`.
    pub(crate) omit_empty: bool,
    /// `omitzero`.
    pub(crate) omit_zero: bool,
    /// Where in the struct it is declared.
    pub(crate) position: usize,
    /// Tag `patchStrategy`.
    pub(crate) patch_strategy: String,
    /// Tag `patchMergeKey`.
    pub(crate) patch_merge_key: String,
}

/// One struct.
#[derive(Debug, Default)]
pub(crate) struct GoStruct {
    /// Fields by JSON name.
    pub(crate) fields: HashMap<String, GoField>,
    /// Types whose fields stand in this struct's place (`json:",inline"`).
    pub(crate) inline: Vec<String>,
}

/// Structs of one package by name.
#[derive(Debug, Default)]
pub(crate) struct Package(HashMap<String, GoStruct>);

impl Package {
    /// Reads all sources of a package that are not generated and no tests.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut package = Self::default();
        let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let source = file.ends_with(".go")
                && !["zz_generated", "generated."].iter().any(|p| file.starts_with(p))
                && !file.ends_with("_test.go");
            if source {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                package.add(&text, name);
            }
        }
        Ok(package)
    }

    /// The field of a struct, looked for in inlined structs of the same package too.
    pub(crate) fn field(&self, name: &str, json: &str) -> Option<&GoField> {
        let found = self.0.get(name)?;
        found.fields.get(json).or_else(|| {
            found.inline.iter().find_map(|inner| self.field(inner.rsplit('.').next().unwrap_or(inner), json))
        })
    }

    fn add(&mut self, text: &str, package: &str) {
        let mut aliases = HashMap::new();
        let mut current: Option<(String, GoStruct)> = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (&mut current, words.as_slice()) {
                (None, ["type", name, "struct", "{"]) => {
                    current = Some(((*name).to_owned(), GoStruct::default()));
                }
                (None, [alias, path] | ["import", alias, path]) if quoted(path).is_some() => {
                    if let Some(last) = quoted(path).and_then(|p| p.rsplit('/').next()) {
                        aliases.insert((*alias).to_owned(), last.to_owned());
                    }
                }
                (Some(_), ["}"]) if line.starts_with('}') => self.0.extend(current.take()),
                (Some((_, found)), _) => field(line, package, &aliases, found),
                (None, _) => {}
            }
        }
    }
}

fn quoted(word: &str) -> Option<&str> {
    word.strip_prefix('"')?.strip_suffix('"')
}

/// Adds the field that a line declares, if it declares one.
fn field(line: &str, package: &str, aliases: &HashMap<String, String>, found: &mut GoStruct) {
    let Some((declaration, tags)) = line.split_once('`') else { return };
    let tag =
        |name: &str| tags.split_once(&format!("{name}:\"")).and_then(|(_, rest)| rest.split('"').next());
    let text_of = |name: &str| tag(name).unwrap_or_default().to_owned();
    let (patch_strategy, patch_merge_key) = (text_of("patchStrategy"), text_of("patchMergeKey"));
    let Some(tag) = tag("json") else { return };
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let (go_name, text) = match words.as_slice() {
        [embedded] => (embedded.rsplit(['.', '*']).next().unwrap_or(embedded), (*embedded).to_owned()),
        [name, rest @ ..] => (*name, rest.join(" ")),
        [] => return,
    };
    let mut options = tag.split(',');
    let name = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    if name.is_empty() && options.contains(&"inline") {
        found.inline.push(text);
        return;
    }
    let pointer = text.starts_with('*');
    found.fields.insert(
        name.to_owned(),
        GoField {
            name: go_name.to_owned(),
            r#type: printed(text.trim_start_matches('*'), package, aliases),
            pointer,
            omit_empty: options.contains(&"omitempty"),
            omit_zero: options.contains(&"omitzero"),
            position: found.fields.len() + 1,
            patch_strategy,
            patch_merge_key,
        },
    );
}

/// A type as Go prints it: with the name of its package, not with the alias of an import.
fn printed(text: &str, package: &str, aliases: &HashMap<String, String>) -> String {
    for prefix in ["[]", "*", "map[string]"] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return format!("{prefix}{}", printed(rest, package, aliases));
        }
    }
    match text.split_once('.') {
        Some((alias, name)) => format!("{}.{name}", aliases.get(alias).map_or(alias, String::as_str)),
        None if text.starts_with(char::is_uppercase) => format!("{package}.{text}"),
        None => text.to_owned(),
    }
}
