//! What the decoder needs to know of each definition: fields, their kinds, their Go types, when they are omitted, and
//! how they are written in protobuf.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use crate::definitions::{Definitions, definition_name, short_name};
use crate::go_types::{GoField, Package};
use crate::modules::Modules;
use crate::wire::Wire;

/// Definitions that are no structs for the decoder, with their kinds.
const SPECIAL: [(&str, &str); 6] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "raw"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Patch", "raw"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", "raw"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "intorstring"),
];

/// Types that are declared as another type.
const DECLARED_AS: [(&str, &str); 2] = [
    ("com.github.openshift.api.image.v1.SecretList", "io.k8s.api.core.v1.SecretList"),
    (
        "com.github.openshift.api.oauth.v1.UserOAuthAccessToken",
        "com.github.openshift.api.oauth.v1.OAuthAccessToken",
    ),
];

/// Describes all definitions that are structs.
pub(crate) fn describe(definitions: &Definitions, modules: &Modules) -> Result<Map<String, Value>> {
    let mut packages: HashMap<PathBuf, Package> = HashMap::new();
    let mut wire = Wire::new(modules);
    let mut out = Map::new();
    for (name, definition) in definitions {
        if special(name).is_some() {
            continue;
        }
        let object = definition["type"] == "object";
        ensure!(object, "{name} is no struct: say in build/structs.rs and src/schema.rs how it is decoded");
        let declared = DECLARED_AS.iter().find(|(n, _)| n == name).map_or(name.as_str(), |(_, other)| other);
        let folder =
            modules.package(declared).with_context(|| format!("{name} comes from an unknown module"))?;
        if !packages.contains_key(&folder) {
            packages.insert(folder.clone(), Package::read(&folder)?);
        }
        let short = short_name(declared);
        let mut fields = Map::new();
        for (field, schema) in definition["properties"].as_object().into_iter().flatten() {
            let go = packages[&folder].field(short, field).cloned();
            let described = describe_field(field, schema, go).with_context(|| format!("{name}.{field}"))?;
            fields.insert(field.clone(), described);
        }
        let go_name = |json: &str| packages[&folder].field(short, json).map(|field| field.name.clone());
        let wire =
            wire.describe(declared, &mut fields, &go_name).with_context(|| format!("{name} in protobuf"))?;
        let kinds = kinds(definition);
        out.insert(
            name.clone(),
            json!({ "go": short_name(name), "fields": fields, "wire": wire, "kinds": kinds }),
        );
    }
    Ok(out)
}

/// `route.openshift.io/v1/Route`: what objects of a definition say that they are.
fn kinds(definition: &Value) -> Vec<String> {
    let all = definition["x-kubernetes-group-version-kind"].as_array();
    let text = |gvk: &Value, part: &str| gvk[part].as_str().unwrap_or_default().to_owned();
    let one = |gvk: &Value| {
        let name = format!("{}/{}/{}", text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"));
        name.trim_start_matches('/').to_owned()
    };
    all.into_iter().flatten().map(one).collect()
}

fn describe_field(name: &str, schema: &Value, go: Option<GoField>) -> Result<Value> {
    let go = match go {
        Some(go) => go,
        // Fields of the inlined TypeMeta, which is of another package.
        None if ["apiVersion", "kind"].contains(&name) => {
            GoField { r#type: "string".to_owned(), omit_empty: true, ..GoField::default() }
        }
        None => bail!("the Go type has no such field"),
    };
    let described = describe_type(schema, &go.r#type)?;
    // Go never finds a struct that is no pointer empty; only `omitzero` omits it.
    let is_struct = described["kind"].as_str().map_or(described["kind"]["struct"].is_string(), |k| {
        ["time", "intorstring", "quantity", "raw"].contains(&k)
    });
    let omit = go.omit_zero || (go.omit_empty && (go.pointer || !is_struct));
    let mut field =
        json!({ "type": described, "omit": omit, "pointer": go.pointer, "position": go.position });
    if !go.patch_strategy.is_empty() {
        field["patch"] = json!({ "strategy": go.patch_strategy, "merge_key": go.patch_merge_key });
    }
    Ok(field)
}

fn describe_type(schema: &Value, go: &str) -> Result<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(definition_name) {
        let kind = special(name).map_or_else(|| json!({ "struct": name }), |k| json!(k));
        let go = if go.is_empty() { package_and_name(name) } else { go.to_owned() };
        return Ok(json!({ "go": go, "kind": kind }));
    }
    let plain =
        |kind: &str, default: &str| json!({ "go": if go.is_empty() { default } else { go }, "kind": kind });
    Ok(match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("byte")) => plain("bytes", "[]uint8"),
        (Some("string"), _) => plain("string", "string"),
        (Some("boolean"), _) => plain("bool", "bool"),
        (Some("integer"), Some("int32")) => plain("int32", "int32"),
        (Some("integer"), _) => plain("int64", "int64"),
        (Some("number"), _) => plain("float", "float64"),
        (Some("array"), _) => {
            let element = go.strip_prefix("[]").unwrap_or_default().trim_start_matches('*');
            json!({ "go": go, "kind": { "list": describe_type(&schema["items"], element)? } })
        }
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            let value = go.strip_prefix("map[string]").unwrap_or_default().trim_start_matches('*');
            json!({ "go": go, "kind": { "map": describe_type(&schema["additionalProperties"], value)? } })
        }
        (Some("object") | None, _) => plain("raw", "interface {}"),
        (Some(other), _) => bail!("unknown type {other:?}"),
    })
}

fn special(name: &str) -> Option<&'static str> {
    SPECIAL.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind)
}

/// `v1.Route` of `com.github.openshift.api.route.v1.Route`.
fn package_and_name(definition: &str) -> String {
    let mut parts = definition.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(name), Some(package)) => format!("{package}.{name}"),
        _ => definition.to_owned(),
    }
}
