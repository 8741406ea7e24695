//! An OpenAPI v3 document as an `openapi.v3.Document`.

use picoshift_machinery::protobuf::wire::Message;
use serde_json::Value;

use super::{all_texts, any, extensions, list, members, named, texts, truth};

/// The document.
pub(in crate::openapi) fn document(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    texts(&mut out, document, &[(1, "openapi")]);
    out.nested(2, |out| texts(out, &document["info"], &[(1, "title"), (2, "description"), (6, "version")]));
    out.nested(4, |out| {
        for (path, item) in members(&document["paths"]) {
            named(out, 1, path, |out| path_item(out, item));
        }
    });
    out.nested(5, |out| components(out, &document["components"]));
    out.into_vec()
}

fn components(out: &mut Message, components: &Value) {
    if components["schemas"].is_object() {
        out.nested(1, |out| schemas(out, &components["schemas"]));
    }
    out.nested(7, |out| {
        for (name, scheme) in members(&components["securitySchemes"]) {
            let fields = [(1, "type"), (2, "description"), (3, "name"), (4, "in")];
            // SecuritySchemeOrReference: the scheme itself.
            named(out, 1, name, |out| out.nested(1, |out| texts(out, scheme, &fields)));
        }
    });
}

fn path_item(out: &mut Message, item: &Value) {
    let methods =
        [(4, "get"), (5, "put"), (6, "post"), (7, "delete"), (8, "options"), (9, "head"), (10, "patch")];
    for (number, method) in methods {
        if item[method].is_object() {
            out.nested(number, |out| operation(out, &item[method]));
        }
    }
    parameters(out, 13, &item["parameters"]);
    extensions(out, 14, item);
}

fn operation(out: &mut Message, operation: &Value) {
    all_texts(out, 1, &operation["tags"]);
    texts(out, operation, &[(2, "summary"), (3, "description"), (5, "operationId")]);
    parameters(out, 6, &operation["parameters"]);
    let body = &operation["requestBody"];
    if body.is_object() {
        out.nested(7, |out| {
            out.nested(1, |out| {
                texts(out, body, &[(1, "description")]);
                content(out, 2, &body["content"]);
                truth(out, 3, &body["required"]);
            });
        });
    }
    out.nested(8, |out| {
        for (code, response) in members(&operation["responses"]) {
            named(out, 2, code, |out| {
                out.nested(1, |out| {
                    texts(out, response, &[(1, "description")]);
                    content(out, 3, &response["content"]);
                });
            });
        }
    });
    extensions(out, 13, operation);
}

fn parameters(out: &mut Message, number: u32, parameters: &Value) {
    for parameter in list(parameters) {
        // ParameterOrReference: the parameter itself.
        out.nested(number, |out| {
            out.nested(1, |out| {
                texts(out, parameter, &[(1, "name"), (2, "in"), (3, "description")]);
                truth(out, 4, &parameter["required"]);
                if parameter["schema"].is_object() {
                    out.nested(10, |out| schema(out, &parameter["schema"]));
                }
            });
        });
    }
}

/// Schemas by media type.
fn content(out: &mut Message, number: u32, content: &Value) {
    if !content.is_object() {
        return;
    }
    out.nested(number, |out| {
        for (media_type, of) in members(content) {
            named(out, 1, media_type, |out| out.nested(1, |out| schema(out, &of["schema"])));
        }
    });
}

fn schemas(out: &mut Message, schemas: &Value) {
    for (name, of) in members(schemas) {
        named(out, 1, name, |out| schema(out, of));
    }
}

/// A schema or a reference to one.
fn schema(out: &mut Message, of: &Value) {
    if of["$ref"].is_string() {
        out.nested(2, |out| texts(out, of, &[(1, "$ref")]));
    } else {
        out.nested(1, |out| fields(out, of));
    }
}

fn fields(out: &mut Message, of: &Value) {
    truth(out, 1, &of["nullable"]);
    texts(out, of, &[(9, "title"), (17, "pattern")]);
    truth(out, 20, &of["uniqueItems"]);
    all_texts(out, 23, &of["required"]);
    for value in list(&of["enum"]) {
        out.nested(24, |out| any(out, value));
    }
    texts(out, of, &[(25, "type")]);
    for (number, field) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for one in list(&of[field]) {
            out.nested(number, |out| schema(out, one));
        }
    }
    if of["items"].is_object() {
        out.nested(30, |out| out.nested(1, |out| schema(out, &of["items"])));
    }
    if of["properties"].is_object() {
        out.nested(31, |out| schemas(out, &of["properties"]));
    }
    match &of["additionalProperties"] {
        Value::Bool(allowed) => out.nested(32, |out| out.integer(2, i64::from(*allowed))),
        more if more.is_object() => out.nested(32, |out| out.nested(1, |out| schema(out, more))),
        _ => {}
    }
    if let Some(default) = of.get("default") {
        out.nested(33, |out| scalar(out, default));
    }
    texts(out, of, &[(34, "description"), (35, "format")]);
    extensions(out, 36, of);
}

/// A default, which can be nothing but a scalar here: of any other it says only that there is one.
fn scalar(out: &mut Message, value: &Value) {
    match value {
        Value::Bool(truth) => out.integer(2, i64::from(*truth)),
        Value::Number(number) => out.double(1, number.as_f64().unwrap_or_default()),
        Value::String(text) => out.text(3, text),
        _ => {}
    }
}
