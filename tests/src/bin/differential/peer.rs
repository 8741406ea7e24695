//! The second peer: a CRD of our own schema of Route, served by the kube-apiserver before ours.

use anyhow::Context as _;
use picoshift_tests::crd;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::Http;
use serde_json::{Map, Value, json};

/// The CRD's group.
pub(crate) const CRD_GROUP: &str = "peer.example.com";
/// The group of our Routes.
pub(crate) const OUR_GROUP: &str = "route.openshift.io";

/// Fields of a schema that a structural one can have too. Defaults are not among them: the published ones are those of Go.
const KEPT: [&str; 6] = [
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Makes the CRD, unless it is there, and returns when it is served.
///
/// # Errors
/// When it cannot be made or is not served in time.
pub(crate) async fn install(admin: &Http) -> anyhow::Result<()> {
    let path = format!("/openapi/v3/apis/{OUR_GROUP}/v1");
    // kube-apiserver learns of it a moment after it has found the group available.
    let document = eventually("the document of our group", 60, || async {
        let answer = admin.get(&path).await?;
        if answer.status == 404 { Ok(Err(answer.text())) } else { Ok(Ok(answer.ok()?)) }
    })
    .await?;
    let definitions = &document["components"]["schemas"];
    let mut schema = structural(definitions, &definitions["com.github.openshift.api.route.v1.Route"])
        .context("no schema of Route is published")?;
    set_defaults(&mut schema);
    let mut manifest = crd::manifest(CRD_GROUP, "Route", "routes", &schema);
    let version = &mut manifest["spec"]["versions"][0];
    version["additionalPrinterColumns"] = columns();
    version["selectableFields"] = ["host", "path", "subdomain", "to.name"]
        .map(|field| json!({"jsonPath": format!(".spec.{field}")}))
        .into();
    manifest["spec"]["names"]["categories"] = json!(["all"]);
    crd::install(admin, &manifest, &format!("/apis/{CRD_GROUP}/v1/routes")).await
}

/// A schema without references, as a CRD takes it.
fn structural(definitions: &Value, schema: &Value) -> Option<Value> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.strip_prefix("#/components/schemas/")?;
        return match name.rsplit('.').next()? {
            "ObjectMeta" => Some(json!({"type": "object"})),
            "IntOrString" => Some(json!({"x-kubernetes-int-or-string": true})),
            _ => structural(definitions, &definitions[name]),
        };
    }
    let mut out: Map<String, Value> =
        schema.as_object()?.iter().filter(|(key, _)| KEPT.contains(&key.as_str())).map(clone).collect();
    for field in ["items", "additionalProperties"] {
        if schema[field].is_object() {
            out.insert(field.to_owned(), structural(definitions, &schema[field])?);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties =
            properties.iter().map(|(key, value)| Some((key.clone(), structural(definitions, value)?)));
        out.insert("properties".to_owned(), Value::Object(properties.collect::<Option<_>>()?));
    }
    Some(Value::Object(out))
}

fn clone((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// What our strategy of Routes fills in.
fn set_defaults(schema: &mut Value) {
    let spec = "/properties/spec/properties";
    let backend = |place: &str| {
        [(format!("{spec}/{place}/kind"), json!("Service")), (format!("{spec}/{place}/weight"), json!(100))]
    };
    let defaults =
        backend("to/properties").into_iter().chain(backend("alternateBackends/items/properties")).chain([
            (format!("{spec}/wildcardPolicy"), json!("None")),
            (format!("{spec}/tls/properties/termination"), json!("edge")),
            (
                "/properties/status/properties/ingress/items/properties/wildcardPolicy".to_owned(),
                json!("None"),
            ),
        ]);
    for (place, default) in defaults {
        if let Some(field) = schema.pointer_mut(&place) {
            field["default"] = default;
        }
    }
}

/// The columns of Routes besides the name.
fn columns() -> Value {
    [
        ("Host/Port", ".spec.host"),
        ("Path", ".spec.path"),
        ("Services", ".spec.to.name"),
        ("Port", ".spec.port.targetPort"),
        ("Termination", ".spec.tls.termination"),
        ("Wildcard", ".spec.wildcardPolicy"),
    ]
    .map(|(name, path)| json!({"name": name, "type": "string", "jsonPath": path}))
    .into()
}
