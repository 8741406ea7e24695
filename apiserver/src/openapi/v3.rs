//! The OpenAPI v3 documents, one for each group version and for discovery.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::operations::{self, Operation, Path};
use super::parameters::Parameter;
use super::v2::description;
use super::{Definitions, TITLE, VERSION};
use crate::resource::Resource;

/// Documents by key: `apis`, `apis/GROUP`, `apis/GROUP/VERSION`.
pub(super) fn documents(resources: &[&'static Resource], definitions: &Definitions) -> Vec<(String, Value)> {
    let all = operations::discovery("/apis/", "get available API versions", "APIGroupList", "");
    let mut out = vec![("apis".to_owned(), document(vec![all], &[], definitions))];
    let groups: BTreeSet<&str> = resources.iter().map(|r| r.gvk.group).collect();
    for group in groups {
        let path = format!("/apis/{group}/");
        let id = operations::group_id(group);
        let path = operations::discovery(&path, "get information of a group", "APIGroup", &id);
        out.push((format!("apis/{group}"), document(vec![path], &[], definitions)));
    }
    for version in versions(resources) {
        let Some(first) = version.first() else { continue };
        let key = format!("apis/{}", first.gvk.api_version());
        let roots: Vec<&str> = version.iter().map(|r| r.schema).collect();
        out.push((key, document(operations::of_version(&version, definitions), &roots, definitions)));
    }
    out
}

/// The resources by group version.
pub(super) fn versions(resources: &[&'static Resource]) -> Vec<Vec<&'static Resource>> {
    let keys: BTreeSet<(&str, &str)> = resources.iter().map(|r| (r.gvk.group, r.gvk.version)).collect();
    let of = |key| resources.iter().copied().filter(move |r| (r.gvk.group, r.gvk.version) == key).collect();
    keys.into_iter().map(of).collect()
}

fn document(paths: Vec<Path>, roots: &[&str], definitions: &Definitions) -> Value {
    let mut open: Vec<String> = roots.iter().map(|r| (*r).to_owned()).collect();
    let mut written = Map::new();
    for path in paths {
        for operation in &path.operations {
            open.push(operation.answer.clone());
            open.extend(operation.body.iter().map(|(schema, _)| schema.clone()));
            if operation.streams {
                open.push("io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent".to_owned());
            }
        }
        let value = write_path(&path);
        written.insert(path.path, value);
    }
    json!({
        "openapi": "3.0.0",
        "info": { "title": TITLE, "version": VERSION },
        "paths": written,
        "components": {
            "schemas": schemas(open, definitions),
            "securitySchemes": {
                "BearerToken": {
                    "description": "Bearer Token authentication",
                    "in": "header",
                    "name": "authorization",
                    "type": "apiKey",
                },
            },
        },
    })
}

/// The definitions that are needed, in the form of v3.
fn schemas(mut open: Vec<String>, definitions: &Definitions) -> Map<String, Value> {
    let mut out = Map::new();
    while let Some(name) = open.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(definition) = definitions.get(&name) else { continue };
        let schema = convert(definition, &mut open);
        out.insert(name, schema);
    }
    out
}

/// A v2 schema as v3 writes it: a reference has no neighbours, so that it moves into `allOf` where it has some.
fn convert(schema: &Value, open: &mut Vec<String>) -> Value {
    match schema {
        Value::Array(list) => list.iter().map(|v| convert(v, open)).collect(),
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/definitions/"));
            let mut out: Map<String, Value> = map
                .iter()
                .filter(|(key, _)| name.is_none() || *key != "$ref")
                .map(|(key, value)| (key.clone(), convert(value, open)))
                .collect();
            let Some(name) = name else { return Value::Object(out) };
            open.push(name.to_owned());
            if out.is_empty() {
                return reference(name);
            }
            out.insert("allOf".to_owned(), json!([reference(name)]));
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn write_path(path: &Path) -> Value {
    let mut out = Map::new();
    for operation in &path.operations {
        out.insert(operation.method.to_owned(), write_operation(operation));
    }
    if !path.parameters.is_empty() {
        out.insert("parameters".to_owned(), path.parameters.iter().map(write_parameter).collect());
    }
    Value::Object(out)
}

fn write_operation(operation: &Operation) -> Value {
    let content = |types: Vec<&str>, schema: &str| -> Value {
        let entries = types.into_iter().map(|t| (t.to_owned(), json!({ "schema": reference(schema) })));
        Value::Object(entries.collect())
    };
    let mut responses = Map::new();
    for code in operation.codes {
        let content = content(operations::produces(operation), &operation.answer);
        responses.insert((*code).to_owned(), json!({ "description": description(code), "content": content }));
    }
    responses.insert("401".to_owned(), json!({ "description": "Unauthorized" }));
    let mut out = Map::from_iter([
        ("description".to_owned(), operation.description.clone().into()),
        ("operationId".to_owned(), operation.id.clone().into()),
        ("responses".to_owned(), Value::Object(responses)),
        ("tags".to_owned(), json!([operation.tag])),
    ]);
    if !operation.parameters.is_empty() {
        out.insert("parameters".to_owned(), operation.parameters.iter().map(write_parameter).collect());
    }
    if let Some((schema, required)) = &operation.body {
        let mut body = json!({ "content": content(operations::consumes(operation), schema) });
        if *required {
            body["required"] = true.into();
        }
        out.insert("requestBody".to_owned(), body);
    }
    operations::extensions(operation, &mut out);
    Value::Object(out)
}

fn write_parameter(parameter: &Parameter) -> Value {
    let mut out = json!({
        "description": parameter.description,
        "in": parameter.place,
        "name": parameter.name,
        "schema": { "type": parameter.kind, "uniqueItems": true },
    });
    if parameter.place == "path" {
        out["required"] = true.into();
    }
    out
}
