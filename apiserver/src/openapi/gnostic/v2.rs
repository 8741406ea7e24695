//! An OpenAPI v2 document as an `openapi.v2.Document`.

use picoshift_machinery::protobuf::wire::Message;
use serde_json::Value;

use super::{all_texts, any, extensions, list, members, named, texts, truth};

/// The document.
pub(in crate::openapi) fn document(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    texts(&mut out, document, &[(1, "swagger")]);
    out.nested(2, |out| texts(out, &document["info"], &[(1, "title"), (2, "version"), (3, "description")]));
    out.nested(8, |out| {
        for (path, item) in members(&document["paths"]) {
            named(out, 2, path, |out| path_item(out, item));
        }
    });
    out.nested(9, |out| schemas(out, &document["definitions"]));
    for requirement in list(&document["security"]) {
        out.nested(12, |out| {
            for (name, scopes) in members(requirement) {
                named(out, 1, name, |out| all_texts(out, 1, scopes));
            }
        });
    }
    out.nested(13, |out| {
        for (name, key) in members(&document["securityDefinitions"]) {
            named(out, 1, name, |out| out.nested(2, |out| api_key(out, key)));
        }
    });
    out.into_vec()
}

fn api_key(out: &mut Message, key: &Value) {
    texts(out, key, &[(1, "type"), (2, "name"), (3, "in"), (4, "description")]);
}

fn path_item(out: &mut Message, item: &Value) {
    for (number, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        if item[method].is_object() {
            out.nested(number, |out| operation(out, &item[method]));
        }
    }
    parameters(out, 9, &item["parameters"]);
    extensions(out, 10, item);
}

fn operation(out: &mut Message, operation: &Value) {
    all_texts(out, 1, &operation["tags"]);
    texts(out, operation, &[(2, "summary"), (3, "description"), (5, "operationId")]);
    all_texts(out, 6, &operation["produces"]);
    all_texts(out, 7, &operation["consumes"]);
    parameters(out, 8, &operation["parameters"]);
    out.nested(9, |out| {
        for (code, response) in members(&operation["responses"]) {
            named(out, 1, code, |out| {
                out.nested(1, |out| {
                    texts(out, response, &[(1, "description")]);
                    if response["schema"].is_object() {
                        out.nested(2, |out| out.nested(1, |out| schema(out, &response["schema"])));
                    }
                });
            });
        }
    });
    all_texts(out, 10, &operation["schemes"]);
    extensions(out, 13, operation);
}

fn parameters(out: &mut Message, number: u32, parameters: &Value) {
    for one in list(parameters) {
        // ParametersItem, Parameter: one of several each.
        out.nested(number, |out| out.nested(1, |out| parameter(out, one)));
    }
}

fn parameter(out: &mut Message, parameter: &Value) {
    let place = parameter["in"].as_str().unwrap_or_default();
    if place == "body" {
        out.nested(1, |out| {
            texts(out, parameter, &[(1, "description"), (2, "name"), (3, "in")]);
            truth(out, 4, &parameter["required"]);
            if parameter["schema"].is_object() {
                out.nested(5, |out| schema(out, &parameter["schema"]));
            }
            extensions(out, 6, parameter);
        });
        return;
    }
    // Query parameters may be empty: their message has a field more.
    let (kind, shift) = match place {
        "header" => (1, 0),
        "query" => (3, 1),
        _ => (4, 0),
    };
    out.nested(2, |out| {
        out.nested(kind, |out| {
            truth(out, 1, &parameter["required"]);
            texts(out, parameter, &[(2, "in"), (3, "description"), (4, "name")]);
            texts(out, parameter, &[(5 + shift, "type"), (6 + shift, "format")]);
            truth(out, 19 + shift, &parameter["uniqueItems"]);
            extensions(out, 22 + shift, parameter);
        });
    });
}

fn schemas(out: &mut Message, schemas: &Value) {
    for (name, one) in members(schemas) {
        named(out, 1, name, |out| schema(out, one));
    }
}

fn schema(out: &mut Message, of: &Value) {
    texts(out, of, &[(1, "$ref"), (2, "format"), (3, "title"), (4, "description")]);
    if let Some(default) = of.get("default") {
        out.nested(5, |out| any(out, default));
    }
    all_texts(out, 19, &of["required"]);
    for value in list(&of["enum"]) {
        out.nested(20, |out| any(out, value));
    }
    if of["additionalProperties"].is_object() {
        out.nested(21, |out| out.nested(1, |out| schema(out, &of["additionalProperties"])));
    }
    if let Some(name) = of["type"].as_str() {
        out.nested(22, |out| out.text(1, name));
    }
    if of["items"].is_object() {
        out.nested(23, |out| out.nested(1, |out| schema(out, &of["items"])));
    }
    if of["properties"].is_object() {
        out.nested(25, |out| schemas(out, &of["properties"]));
    }
    extensions(out, 31, of);
}
