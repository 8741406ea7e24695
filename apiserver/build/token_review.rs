//! The definitions of Kubernetes' TokenReview, which our group of OAuth takes and which OpenShift's document leaves out.
//! Shapes are written here; descriptions come from the pinned module.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::definitions::Definitions;

/// What stands before the names of the definitions.
pub(crate) const PACKAGE: &str = "io.k8s.api.authentication.v1.";
const DESCRIPTIONS: &str = "authentication/v1/types_swagger_doc_generated.go";

/// The definitions; `module` is the folder of `k8s.io/api`, `known` are those that it refers to.
pub(crate) fn definitions(module: &Path, known: &Definitions) -> Result<Definitions> {
    let path = module.join(DESCRIPTIONS);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let reference = |name: &str| json!({ "$ref": format!("#/definitions/{name}"), "default": {} });
    let own = |name: &str| reference(&format!("{PACKAGE}{name}"));
    let string = json!({ "type": "string" });
    let strings = json!({ "type": "array", "items": { "type": "string", "default": "" } });
    let mut atomic = strings.clone();
    atomic["x-kubernetes-list-type"] = "atomic".into();
    let user = known.get("com.github.openshift.api.user.v1.User").context("no definition of a kind")?;
    let of_every_kind = |name: &str| user["properties"][name].clone();
    let metadata = reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let shapes = [
        (
            "TokenReview",
            vec![
                ("apiVersion", of_every_kind("apiVersion")),
                ("kind", of_every_kind("kind")),
                ("metadata", metadata),
                ("spec", own("TokenReviewSpec")),
                ("status", own("TokenReviewStatus")),
            ],
        ),
        ("TokenReviewSpec", vec![("audiences", atomic.clone()), ("token", string.clone())]),
        (
            "TokenReviewStatus",
            vec![
                ("audiences", atomic.clone()),
                ("authenticated", json!({ "type": "boolean" })),
                ("error", string.clone()),
                ("user", own("UserInfo")),
            ],
        ),
        (
            "UserInfo",
            vec![
                ("extra", json!({ "type": "object", "additionalProperties": strings })),
                ("groups", atomic),
                ("uid", string.clone()),
                ("username", string),
            ],
        ),
    ];
    let mut out = Definitions::new();
    for (name, fields) in shapes {
        let described = descriptions(&text, name)?;
        let mut properties = Map::new();
        for (field, mut shape) in fields {
            if let Some(description) = described.get(field) {
                shape["description"] = description.as_str().into();
            }
            properties.insert(field.to_owned(), shape);
        }
        let mut definition = json!({ "type": "object", "properties": properties });
        definition["description"] = described.get("").cloned().unwrap_or_default().into();
        if name == "TokenReview" {
            definition["required"] = json!(["spec"]);
        }
        out.insert(format!("{PACKAGE}{name}"), definition);
    }
    Ok(out)
}

/// The descriptions of a type and, by their names, of its fields: `"field": "text",` in lines of a Go map.
fn descriptions(text: &str, name: &str) -> Result<HashMap<String, String>> {
    let start = format!("var map_{name} = map[string]string{{");
    let (_, rest) =
        text.split_once(&start).with_context(|| format!("{DESCRIPTIONS} does not describe {name}"))?;
    let (body, _) = rest.split_once("\n}").unwrap_or((rest, ""));
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let pair = |line: &str| -> Result<(String, String)> {
        // A pair of Go strings is one of JSON.
        let value: Value = serde_json::from_str(&format!("{{{}}}", line.trim_end_matches(',')))
            .with_context(|| format!("{DESCRIPTIONS}: {line}"))?;
        let pair = value.as_object().and_then(|pair| pair.iter().next());
        let (field, text) = pair.with_context(|| format!("{DESCRIPTIONS}: {line}"))?;
        Ok((field.clone(), text.as_str().unwrap_or_default().to_owned()))
    };
    lines.map(pair).collect()
}
