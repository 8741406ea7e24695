//! Service accounts as OAuth clients: their redirect URIs by annotations, and the scopes that they may ask for
//! (`library-go/pkg/oauth/oauthserviceaccountclient`).

use std::collections::BTreeMap;

use picoshift_machinery::Object;
use picoshift_machinery::scope::restriction::{Restriction, RoleRestriction};
use picoshift_machinery::url::Url;
use serde::Deserialize;
use serde_json::Value;

const URI: &str = "serviceaccounts.openshift.io/oauth-redirecturi.";
const REFERENCE: &str = "serviceaccounts.openshift.io/oauth-redirectreference.";
const SCOPES: [&str; 4] =
    ["user:info", "user:check-access", "user:list-scoped-projects", "user:list-projects"];

/// What two annotations of one name say together.
#[derive(Default)]
struct Model {
    scheme: String,
    host: String,
    /// The Route that gives what the URI leaves out; `None` for a URI that stands alone.
    route: Option<String>,
    /// Whether it refers to what is no Route.
    foreign: bool,
}

/// The value of a reference annotation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedirectReference {
    api_version: String,
    kind: String,
    #[serde(default)]
    reference: Reference,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    group: String,
    kind: String,
    name: String,
}

/// What the service account `client` may ask for.
///
/// # Errors
/// When nothing can be redirected to it.
pub(super) fn restrictions(
    client: &str,
    namespace: &str,
    account: &Object,
    route: &dyn Fn(&str) -> Option<Object>,
) -> Result<Vec<Restriction>, String> {
    if !models(account).values().any(|model| leads_somewhere(model, route)) {
        return Err(format!(
            "{client} has no redirectURIs; set {URI}<some-value>=<redirect> or create a dynamic URI using \
             {REFERENCE}<some-value>=<reference>"
        ));
    }
    let literals = SCOPES.map(str::to_owned).to_vec();
    let cluster_role = RoleRestriction {
        role_names: vec!["*".to_owned()],
        namespaces: vec![namespace.to_owned()],
        allow_escalation: true,
    };
    Ok(vec![
        Restriction { literals, cluster_role: None },
        Restriction { literals: Vec::new(), cluster_role: Some(cluster_role) },
    ])
}

fn models(account: &Object) -> BTreeMap<&str, Model> {
    let mut models: BTreeMap<&str, Model> = BTreeMap::new();
    for (key, value) in account.annotations() {
        if let Some(name) = key.strip_prefix(URI) {
            let model = models.entry(name).or_default();
            if let Ok(uri) = Url::parse(value) {
                (model.scheme, model.host) = (uri.scheme, uri.host);
            }
        } else if let Some(name) = key.strip_prefix(REFERENCE) {
            let model = models.entry(name).or_default();
            let known = |r: &RedirectReference| {
                r.kind == "OAuthRedirectReference"
                    && ["v1", "oauth.openshift.io/v1"].contains(&&*r.api_version)
            };
            let read = serde_json::from_str::<RedirectReference>(value).ok().filter(known);
            if let Some(RedirectReference { reference: Reference { group, kind, name }, .. }) = read {
                let of_route = kind == "Route" && (group.is_empty() || group == "route.openshift.io");
                let nothing = kind.is_empty() && group.is_empty() && name.is_empty();
                model.foreign = !(of_route || nothing);
                model.route = of_route.then_some(name);
            }
        }
    }
    models
}

/// Whether a model comes to a URI with a scheme and a host.
fn leads_somewhere(model: &Model, route: &dyn Fn(&str) -> Option<Object>) -> bool {
    match &model.route {
        _ if model.foreign => false,
        None => !model.scheme.is_empty() && !model.host.is_empty(),
        // A Route gives the scheme.
        Some(name) => route(name).is_some_and(|route| !model.host.is_empty() || has_admitted_host(&route)),
    }
}

fn has_admitted_host(route: &Object) -> bool {
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let status = route.0.get("status").cloned().unwrap_or_default();
    list(&status, "ingress").iter().any(|ingress| {
        let admitted =
            |condition: &Value| text(condition, "type") == "Admitted" && text(condition, "status") == "True";
        !text(ingress, "host").is_empty() && list(ingress, "conditions").iter().any(admitted)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(annotations: &Value, route: &Value) -> Result<usize, String> {
        let account = Object::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        let find = |name: &str| (name == "r").then(|| Object::from_value(route.clone()).unwrap());
        restrictions("system:serviceaccount:a:b", "a", &account, &find).map(|list| list.len())
    }

    #[test]
    fn a_service_account_needs_somewhere_to_return_to() {
        let reference = json!({"kind": "OAuthRedirectReference", "apiVersion": "v1",
            "reference": {"kind": "Route", "name": "r"}})
        .to_string();
        let to_other = reference.replace("Route\"", "Ingress\"");
        let admitted = json!({"status": {"ingress": [{"host": "h",
            "conditions": [{"type": "Admitted", "status": "True"}]}]}});
        let (uri, by_route) = (format!("{URI}x"), format!("{REFERENCE}x"));
        for (annotations, route, good) in [
            (json!({}), json!({}), false),
            (json!({&uri: "https://x/cb"}), json!({}), true),
            (json!({&uri: "/relative"}), json!({}), false),
            (json!({&by_route: &reference}), json!({}), false),
            (json!({&by_route: &reference}), admitted.clone(), true),
            (json!({&by_route: &reference, &uri: "https://h"}), json!({}), true),
            (json!({&by_route: "nonsense"}), admitted.clone(), false),
            (json!({&by_route: &to_other, &uri: "https://h"}), admitted, false),
        ] {
            assert_eq!(asked(&annotations, &route).is_ok(), good, "{annotations}");
        }
        let why = asked(&json!({}), &json!({})).unwrap_err();
        assert_eq!(
            why,
            "system:serviceaccount:a:b has no redirectURIs; set \
             serviceaccounts.openshift.io/oauth-redirecturi.<some-value>=<redirect> or create a dynamic URI using \
             serviceaccounts.openshift.io/oauth-redirectreference.<some-value>=<reference>"
        );
    }
}
