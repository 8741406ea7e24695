//! The OpenAPI v2 document of all groups.

use serde_json::{Map, Value, json};

use super::operations::{self, Operation, Path};
use super::parameters::Parameter;
use super::v3::versions;
use super::{Definitions, TITLE, VERSION};
use crate::resource::Resource;

/// The document.
pub(super) fn document(resources: &[&'static Resource], definitions: &Definitions) -> Value {
    let mut paths = Map::new();
    let mut add = |path: Path| {
        let value = write_path(&path);
        paths.insert(path.path, value);
    };
    add(operations::discovery("/apis/", "get available API versions", "APIGroupList", ""));
    let mut groups: Vec<&str> = resources.iter().map(|r| r.gvk.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let id = operations::group_id(group);
        add(operations::discovery(&format!("/apis/{group}/"), "get information of a group", "APIGroup", &id));
    }
    for version in versions(resources) {
        operations::of_version(&version, definitions).into_iter().for_each(&mut add);
    }
    let mut definitions = definitions.clone();
    definitions.values_mut().for_each(drop_defaults);
    json!({
        "swagger": "2.0",
        "info": { "title": TITLE, "version": VERSION },
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "in": "header",
                "name": "authorization",
                "type": "apiKey",
            },
        },
        "security": [{ "BearerToken": [] }],
    })
}

/// Kubernetes publishes no defaults in v2. Equal definitions of two servers stay one when they are merged.
fn drop_defaults(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    map.remove("default");
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(drop_defaults);
    }
    for inner in ["items", "additionalProperties"] {
        map.get_mut(inner).into_iter().for_each(drop_defaults);
    }
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
    let mut parameters: Vec<Value> = operation.parameters.iter().map(write_parameter).collect();
    if let Some((schema, required)) = &operation.body {
        let mut body = json!({ "in": "body", "name": "body", "schema": reference(schema) });
        if *required {
            body["required"] = true.into();
        }
        parameters.push(body);
    }
    let mut responses = Map::new();
    for code in operation.codes {
        let description = description(code);
        responses.insert(
            (*code).to_owned(),
            json!({ "description": description, "schema": reference(&operation.answer) }),
        );
    }
    responses.insert("401".to_owned(), json!({ "description": "Unauthorized" }));
    let mut out = Map::from_iter([
        ("consumes".to_owned(), operations::consumes(operation).into()),
        ("description".to_owned(), operation.description.clone().into()),
        ("operationId".to_owned(), operation.id.clone().into()),
        ("produces".to_owned(), operations::produces(operation).into()),
        ("responses".to_owned(), Value::Object(responses)),
        ("schemes".to_owned(), json!(["https"])),
        ("tags".to_owned(), json!([operation.tag])),
    ]);
    if !parameters.is_empty() {
        out.insert("parameters".to_owned(), parameters.into());
    }
    operations::extensions(operation, &mut out);
    Value::Object(out)
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{schema}") })
}

fn write_parameter(parameter: &Parameter) -> Value {
    let mut out = json!({
        "description": parameter.description,
        "in": parameter.place,
        "name": parameter.name,
        "type": parameter.kind,
        "uniqueItems": true,
    });
    if parameter.place == "path" {
        out["required"] = true.into();
    }
    out
}

/// What a code means.
pub(super) fn description(code: &str) -> &'static str {
    match code {
        "201" => "Created",
        "202" => "Accepted",
        _ => "OK",
    }
}
