//! Service accounts as OAuth clients: annotations say where their users may be sent, by URL or by Route.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use picoshift_machinery::scope::restriction::{Restriction, RoleRestriction};
use picoshift_machinery::url::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Client, ClientError, GrantMethod, Secrets};
use crate::oauth::api::{Api, ApiError, segment};
use crate::oauth::url;

const PREFIX: &str = "system:serviceaccount:";
const URI: &str = "serviceaccounts.openshift.io/oauth-redirecturi.";
const REFERENCE: &str = "serviceaccounts.openshift.io/oauth-redirectreference.";
const CHALLENGES: &str = "serviceaccounts.openshift.io/oauth-want-challenges";
/// Bytes of an account's name that begin the name of an event about it.
const MOST_OF_NAME: usize = 200;
/// The scopes that a service account may ask for beside roles in its namespace.
const SCOPES: [&str; 4] =
    ["user:info", "user:check-access", "user:list-scoped-projects", "user:list-projects"];

/// Namespace and name of the service account that a user name or client id stands for.
#[must_use]
pub fn split(id: &str) -> Option<(&str, &str)> {
    let (namespace, name) = id.strip_prefix(PREFIX)?.split_once(':')?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text.len() <= 253
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
    };
    (is_name(namespace) && is_name(name)).then_some((namespace, name))
}

/// Where a redirect goes, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Target {
    scheme: String,
    host: String,
    port: String,
    path: String,
}

impl Target {
    /// What this says, and otherwise what `usual` says.
    fn over(&self, usual: &Self) -> Self {
        let pick = |own: &String, usual: &String| if own.is_empty() { usual.clone() } else { own.clone() };
        Self {
            scheme: pick(&self.scheme, &usual.scheme),
            host: pick(&self.host, &usual.host),
            port: pick(&self.port, &usual.port),
            path: pick(&self.path, &usual.path),
        }
    }

    fn uri(&self) -> Option<String> {
        if self.scheme.is_empty() || self.host.is_empty() {
            return None;
        }
        let host = match self.port.as_str() {
            "" => self.host.clone(),
            port if self.host.contains(':') => format!("[{}]:{port}", self.host),
            port => format!("{}:{port}", self.host),
        };
        Some(Url { scheme: self.scheme.clone(), host, path: self.path.clone(), ..Url::default() }.to_string())
    }
}

/// What the annotations of one name say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    target: Target,
    /// A Route of the namespace; empty for none.
    route: String,
    /// A reference to something that we do not follow.
    is_foreign: bool,
}

/// The models, and what could not be read.
fn models(annotations: &Value) -> (Vec<Model>, Vec<String>) {
    let (mut models, mut errors) = (BTreeMap::<&str, Model>::new(), Vec::new());
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if let Some(name) = key.strip_prefix(URI) {
            let model = models.entry(name).or_default();
            match url::read(value) {
                Ok(uri) => model.target = target(&uri),
                Err(error) => errors.push(format!("{value}: {error}")),
            }
        } else if let Some(name) = key.strip_prefix(REFERENCE) {
            let model = models.entry(name).or_default();
            match serde_json::from_str::<Value>(value) {
                Ok(reference) if !is_reference(&reference) => {
                    errors.push(format!("{REFERENCE}{name} is no OAuthRedirectReference"));
                }
                Ok(reference) => {
                    let of = |field: &str| reference["reference"][field].as_str().unwrap_or_default();
                    model.is_foreign =
                        of("kind") != "Route" || !matches!(of("group"), "" | "route.openshift.io");
                    of("name").clone_into(&mut model.route);
                }
                Err(error) => errors.push(error.to_string()),
            }
        }
    }
    (models.into_values().collect(), errors)
}

fn is_reference(value: &Value) -> bool {
    let version = value["apiVersion"].as_str().unwrap_or_default();
    value["kind"] == "OAuthRedirectReference" && matches!(version, "v1" | "oauth.openshift.io/v1")
}

fn target(url: &Url) -> Target {
    let port = url.host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'));
    let host = if port.is_some() { url.host_name().to_owned() } else { url.host.clone() };
    Target {
        scheme: url.scheme.clone(),
        host,
        port: port.unwrap_or_default().to_owned(),
        path: url.path.clone(),
    }
}

/// Where a Route leads: one target for each host that a router has admitted, or one without a host.
fn targets(route: &Value) -> Vec<Target> {
    let scheme = if route["spec"]["tls"].is_object() { "https" } else { "http" };
    let path = route["spec"]["path"].as_str().unwrap_or_default();
    let usual = Target { scheme: scheme.to_owned(), path: path.to_owned(), ..Target::default() };
    let ingresses = route["status"]["ingress"].as_array().into_iter().flatten();
    let admitted = ingresses.filter(|ingress| {
        let conditions = ingress["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|condition| condition["type"] == "Admitted" && condition["status"] == "True")
    });
    let hosts = admitted.filter_map(|ingress| ingress["host"].as_str()).filter(|host| !host.is_empty());
    let found: Vec<_> = hosts.map(|host| Target { host: host.to_owned(), ..usual.clone() }).collect();
    if found.is_empty() { vec![usual] } else { found }
}

/// The client that a service account is; `None` when there is no such account.
pub(super) async fn find(
    api: &dyn Api,
    id: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Client>, ClientError> {
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}", segment(namespace), segment(name));
    let Some(account) = api.find(&path).await? else { return Ok(None) };
    let annotations = &account["metadata"]["annotations"];
    let (models, mut errors) = models(annotations);
    let mut uris = BTreeSet::new();
    for model in models.iter().filter(|model| !model.is_foreign) {
        if model.route.is_empty() {
            uris.extend(model.target.uri());
            continue;
        }
        match route(api, namespace, &model.route).await {
            Ok(route) => {
                uris.extend(targets(&route).iter().filter_map(|usual| model.target.over(usual).uri()));
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    if uris.is_empty() {
        let why = format!(
            "{id} has no redirectURIs; set {URI}<some-value>=<redirect> or create a dynamic URI using \
             {REFERENCE}<some-value>=<reference>"
        );
        errors.push(why.clone());
        tell(api, &account, &errors).await;
        return Err(ClientError::NoRedirects(why));
    }
    let challenges = annotations[CHALLENGES].as_str().unwrap_or_default();
    Ok(Some(Client {
        name: id.to_owned(),
        redirect_uris: uris.into_iter().collect(),
        challenges: matches!(challenges, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        grant: GrantMethod::Prompt,
        max_age: None,
        inactivity: None,
        restrictions: restrictions(namespace),
        secrets: Secrets::ServiceAccount,
    }))
}

async fn route(api: &dyn Api, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let path =
        format!("/apis/route.openshift.io/v1/namespaces/{}/routes/{}", segment(namespace), segment(name));
    api.send(http::Method::GET, &path, None).await
}

fn restrictions(namespace: &str) -> Vec<Restriction> {
    let role = RoleRestriction {
        role_names: vec!["*".to_owned()],
        namespaces: vec![namespace.to_owned()],
        allow_escalation: true,
    };
    vec![
        Restriction { literals: SCOPES.map(ToOwned::to_owned).into(), cluster_role: None },
        Restriction { literals: Vec::new(), cluster_role: Some(role) },
    ]
}

/// Tells the owner of the account by an Event.
async fn tell(api: &dyn Api, account: &Value, errors: &[String]) {
    let metadata = &account["metadata"];
    let (namespace, name) =
        (metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default());
    let message = match errors {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    // One event for each complaint: whoever asks is nobody yet, and must not fill the cluster's store by asking.
    let sum = Sha256::digest(format!("{}{message}", metadata["uid"]));
    let start = name.get(..MOST_OF_NAME).unwrap_or(name).trim_end_matches(['.', '-']);
    let event_name =
        format!("{start}.{:016x}", sum.iter().take(8).fold(0_u64, |n, byte| n << 8 | u64::from(*byte)));
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": event_name, "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "ServiceAccount", "namespace": namespace, "name": name,
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "reason": "NoSAOAuthRedirectURIs", "message": message, "type": "Warning", "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": "service-account-oauth-client-getter"},
    });
    let path = format!("/api/v1/namespaces/{}/events", segment(namespace));
    if let Err(error) = api.create(&path, &event).await {
        tracing::debug!(%error, "cannot tell about a service account without redirects");
    }
}

/// The audiences that a token names, not believed yet; `None` for what is no token of a service account.
pub(super) fn audiences(token: &str) -> Option<Vec<String>> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    match &claims["aud"] {
        Value::Array(all) => Some(all.iter().filter_map(text).take(16).collect()),
        one => Some(text(one).into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_service_accounts_are_split() {
        assert_eq!(split("system:serviceaccount:ns:sa"), Some(("ns", "sa")));
        for other in [
            "system:serviceaccount:ns",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount::a",
            "x",
            "system:serviceaccount:..:a/b",
            "system:serviceaccount:..:a",
            "system:serviceaccount:a:.",
            "system:serviceaccount:a:-",
        ] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn annotations_make_uris() {
        let annotations = json!({
            "serviceaccounts.openshift.io/oauth-redirecturi.a": "https://a.example:8443/cb",
            "serviceaccounts.openshift.io/oauth-redirecturi.b": "/only/path",
            "serviceaccounts.openshift.io/oauth-redirectreference.b":
                "{\"kind\":\"OAuthRedirectReference\",\"apiVersion\":\"v1\",\"reference\":{\"kind\":\"Route\",\"name\":\"web\"}}",
            "serviceaccounts.openshift.io/oauth-redirectreference.c":
                "{\"kind\":\"OAuthRedirectReference\",\"apiVersion\":\"v1\",\"reference\":{\"kind\":\"Ingress\",\"name\":\"x\"}}",
            "serviceaccounts.openshift.io/oauth-redirectreference.d": "no JSON",
            // Our API server, which judges the tokens, reads none either.
            "serviceaccounts.openshift.io/oauth-redirectreference.e": "{\"reference\":{\"kind\":\"Route\",\"name\":\"web\"}}",
        });
        let (models, errors) = models(&annotations);
        assert_eq!(errors.len(), 2);
        assert_eq!(models[4].route, "");
        assert_eq!(models[0].target.uri().as_deref(), Some("https://a.example:8443/cb"));
        assert!(models[2].is_foreign);
        let admitted = json!([{"type": "Admitted", "status": "True"}]);
        let route = json!({"spec": {"tls": {}, "path": "/usual"},
            "status": {"ingress": [{"host": "web.example", "conditions": admitted}, {"host": "no.example"}]}});
        let uris: Vec<_> =
            targets(&route).iter().filter_map(|usual| models[1].target.over(usual).uri()).collect();
        assert_eq!(uris, ["https://web.example/only/path"]);
        let refused = json!({"spec": {}, "status": {}});
        assert_eq!(targets(&refused)[0].uri(), None);
    }

    #[test]
    fn audiences_are_read_without_being_believed() {
        let token = |claims: &str| format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(audiences(&token("{\"aud\":[\"a\",\"b\"]}")), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(audiences(&token("{\"aud\":\"a\"}")), Some(vec!["a".to_owned()]));
        assert_eq!(audiences(&token("{}")), Some(Vec::new()));
        assert_eq!(audiences("sha256~abc"), None);
        assert_eq!(audiences("a.!.c"), None);
    }
}
