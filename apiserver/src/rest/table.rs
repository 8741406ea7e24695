//! Tables, as kubectl prints them (`meta.k8s.io/v1` Table).

use picoshift_machinery::Object;
use picoshift_machinery::media_type::MetaVersion;
use serde_json::{Map, Value, json};

use super::partial;
use super::query::IncludeObject;
use super::storage::Storage;

/// How a table is wanted.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// Version of the table.
    pub version: MetaVersion,
    /// What rows carry.
    pub include: IncludeObject,
}

/// A table of objects; `metadata` is the list's, or of the one object its resourceVersion.
#[must_use]
pub fn table(
    storage: &dyn Storage,
    objects: &[Object],
    metadata: &Map<String, Value>,
    options: TableOptions,
    with_columns: bool,
) -> Value {
    let columns: Vec<Value> = if with_columns {
        let columns = storage.resource().columns.iter();
        columns
            .map(|c| {
                json!({
                    "name": c.name, "type": c.r#type, "format": c.format,
                    "description": c.description, "priority": c.priority,
                })
            })
            .collect()
    } else {
        Vec::new()
    };
    let rows: Vec<Value> = objects.iter().map(|object| row(storage, object, options)).collect();
    json!({
        "kind": "Table",
        "apiVersion": options.version.api_version(),
        "metadata": metadata,
        "columnDefinitions": if columns.is_empty() { Value::Null } else { columns.into() },
        "rows": rows,
    })
}

fn row(storage: &dyn Storage, object: &Object, options: TableOptions) -> Value {
    let mut row = Map::new();
    row.insert("cells".to_owned(), storage.row(object).into());
    match options.include {
        IncludeObject::None => {
            row.insert("object".to_owned(), Value::Null);
        }
        IncludeObject::Metadata => {
            let metadata = object.0.get("metadata").cloned().unwrap_or_default();
            row.insert("object".to_owned(), partial::metadata_only(metadata, options.version).0.into());
        }
        IncludeObject::Object => {
            row.insert("object".to_owned(), object.0.clone().into());
        }
    }
    row.into()
}
