//! How each struct is written in protobuf: numbers of fields, which lists and maps are messages of their own, and which
//! messages JSON shows in the place of their parent.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::definitions::short_name;
use crate::modules::Modules;
use crate::proto::{Label, ProtoField, ProtoFile};

/// The `generated.proto` files that were needed.
pub(crate) struct Wire<'m> {
    modules: &'m Modules,
    files: HashMap<PathBuf, ProtoFile>,
}

impl<'m> Wire<'m> {
    pub(crate) fn new(modules: &'m Modules) -> Self {
        Self { modules, files: HashMap::new() }
    }

    /// The layout of a struct whose JSON fields are `fields`, by number; marks in `fields` what is a message of its own.
    /// `go_names` answers the names that errors have.
    pub(crate) fn describe(
        &mut self,
        definition: &str,
        fields: &mut Map<String, Value>,
        go_names: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Value> {
        let mut out = Vec::new();
        for field in self.message(definition)? {
            let described = match fields.get_mut(&field.name) {
                Some(json) => {
                    self.mark(&mut json["type"], &field).with_context(|| field.name.clone())?;
                    let go =
                        go_names(&field.name).with_context(|| format!("no Go name of {}", field.name))?;
                    json!({ "number": field.number, "go": go, "field": field.name })
                }
                // An embedded struct: a message here, but its fields stand beside the others in JSON.
                None if field.label == Label::Optional && field.r#type.contains('.') => json!({
                    "number": field.number,
                    "go": short_name(&field.r#type),
                    "inline": self.describe(&field.r#type, fields, go_names)?,
                }),
                None => bail!("JSON has no field {}", field.name),
            };
            out.push(described);
        }
        Ok(out.into())
    }

    /// Holds a type that JSON describes against its declaration.
    fn mark(&mut self, r#type: &mut Value, field: &ProtoField) -> Result<()> {
        let is_message = field.r#type.contains('.');
        let one = ProtoField { label: Label::Optional, ..field.clone() };
        let kind = &mut r#type["kind"];
        let word = match &*kind {
            Value::String(word) => word.clone(),
            kind => kind.as_object().and_then(|k| k.keys().next().cloned()).unwrap_or_default(),
        };
        match (word.as_str(), field.label) {
            ("list", Label::Repeated) | ("map", Label::Map) => self.mark(&mut kind[word.as_str()], &one),
            // A list or map that can be there and empty is a message with the list or map in it.
            ("list" | "map", Label::Optional) if is_message => {
                let inner = self.message(&field.r#type)?;
                let [items] = inner.as_slice() else { bail!("{} has not one field", field.r#type) };
                ensure!(
                    items.number == 1 && items.label != Label::Optional,
                    "{} is no wrapper",
                    field.r#type
                );
                r#type["wrapped"] = true.into();
                let mut unwrapped = json!({ "kind": r#type["kind"].take() });
                self.mark(&mut unwrapped, items)?;
                r#type["kind"] = unwrapped["kind"].take();
                Ok(())
            }
            ("struct" | "time" | "raw" | "intorstring" | "quantity", Label::Optional) if is_message => Ok(()),
            ("float", Label::Optional) if field.r#type == "double" => Ok(()),
            (word, Label::Optional) if word == field.r#type => Ok(()),
            (word, label) => bail!("{word} in JSON is {label:?} {} in protobuf", field.r#type),
        }
    }

    fn message(&mut self, definition: &str) -> Result<Vec<ProtoField>> {
        let unknown = || format!("{definition} comes from an unknown module");
        let folder = self.modules.package(definition).with_context(unknown)?;
        if !self.files.contains_key(&folder) {
            self.files.insert(folder.clone(), ProtoFile::read(&folder)?);
        }
        let found = self.files[&folder].message(short_name(definition));
        Ok(found.with_context(|| format!("{definition} has no message"))?.to_vec())
    }
}
