//! What should be there, as a function of what is.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{AUTHENTICATION, MANAGED, SESSION};
use crate::oauth::session::{Keys, random};

const NAMESPACES: [&str; 3] = [AUTHENTICATION, "openshift-config", MANAGED];
const CLIENTS: &str = "/apis/oauth.openshift.io/v1/oauthclients";
const METADATA: &str = "oauthMetadata";

/// A client of ours.
struct OwnClient {
    name: &'static str,
    has_secret: bool,
    challenges: bool,
    redirects: fn(&str) -> Vec<String>,
}

const OWN: [OwnClient; 3] = [
    OwnClient {
        name: "openshift-browser-client",
        has_secret: true,
        challenges: false,
        redirects: |issuer| vec![format!("{issuer}/oauth/token/display")],
    },
    OwnClient {
        name: "openshift-challenging-client",
        has_secret: false,
        challenges: true,
        redirects: |issuer| vec![format!("{issuer}/oauth/token/implicit")],
    },
    OwnClient {
        name: "openshift-cli-client",
        has_secret: false,
        challenges: false,
        redirects: |_| vec!["http://127.0.0.1/callback".to_owned(), "http://[::1]/callback".to_owned()],
    },
];

/// What should be there.
pub(super) struct Desired {
    issuer: String,
    ca_file: Option<PathBuf>,
}

impl Desired {
    pub(super) fn new(issuer: &str, ca_file: Option<PathBuf>) -> Self {
        Self { issuer: issuer.to_owned(), ca_file }
    }

    /// The paths of all that is kept, in the order in which it is made.
    pub(super) fn places(&self) -> Vec<String> {
        let mut places: Vec<String> =
            NAMESPACES.iter().map(|name| format!("/api/v1/namespaces/{name}")).collect();
        places.push(secret());
        places.extend(OWN.iter().map(|client| format!("{CLIENTS}/{}", client.name)));
        places.push(map(MANAGED, "oauth-openshift"));
        places.push(map(AUTHENTICATION, "v4-0-config-system-metadata"));
        if self.ca_file.is_some() {
            places.push(map(MANAGED, "oauth-serving-cert"));
        }
        places
    }

    /// The path of something that is kept.
    pub(super) fn place(&self, namespace: Option<&str>, name: &str) -> Option<String> {
        let middle = namespace.map_or(format!("{CLIENTS}/"), |namespace| format!("/namespaces/{namespace}/"));
        self.places().into_iter().find(|place| {
            place.strip_suffix(name).is_some_and(|rest| rest.ends_with('/') && rest.contains(&middle))
        })
    }

    /// What the object at a path should become; `None` if it is right.
    pub(super) fn wanted(&self, place: &str, current: Option<&Value>) -> Option<Value> {
        let name = place.rsplit('/').next().unwrap_or_default();
        if let Some(client) = OWN.iter().find(|client| client.name == name) {
            return self.client(client, current);
        }
        if place.ends_with(SESSION) {
            return session(current);
        }
        if place.contains("/configmaps/") {
            return self.map(name, current);
        }
        current
            .is_none()
            .then(|| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    }

    fn client(&self, client: &OwnClient, current: Option<&Value>) -> Option<Value> {
        let mut wanted = current.cloned().unwrap_or_else(|| {
            json!({"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClient", "metadata": {"name": client.name}})
        });
        let before = wanted.clone();
        wanted["redirectURIs"] = json!((client.redirects)(&self.issuer));
        wanted["grantMethod"] = "auto".into();
        let keys = wanted.as_object_mut()?;
        match client.challenges {
            true => keys.insert("respondWithChallenges".to_owned(), true.into()),
            false => keys.remove("respondWithChallenges"),
        };
        let has_secret = keys.get("secret").and_then(Value::as_str).is_some_and(|secret| secret.len() >= 32);
        if client.has_secret && !has_secret {
            keys.insert("secret".to_owned(), random(43).ok()?.into());
        } else if !client.has_secret {
            keys.remove("secret");
        }
        for other in ["additionalSecrets", "scopeRestrictions"] {
            keys.remove(other);
        }
        (wanted != before || current.is_none()).then_some(wanted)
    }

    fn map(&self, name: &str, current: Option<&Value>) -> Option<Value> {
        let (key, text) = match (name, &self.ca_file) {
            ("oauth-serving-cert", Some(file)) => ("ca-bundle.crt", std::fs::read_to_string(file).ok()?),
            ("oauth-serving-cert", None) => return None,
            _ => (METADATA, metadata(&self.issuer)),
        };
        let mut wanted = current
            .cloned()
            .unwrap_or_else(|| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}));
        let data = json!({ key: text });
        if wanted["data"] == data {
            return None;
        }
        wanted["data"] = data;
        Some(wanted)
    }
}

fn secret() -> String {
    format!("/api/v1/namespaces/{AUTHENTICATION}/secrets/{SESSION}")
}

fn map(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

/// Keys that can be used stay, whoever made them: others would log everybody out.
fn session(current: Option<&Value>) -> Option<Value> {
    let file = current.and_then(|secret| STANDARD.decode(secret["data"][SESSION].as_str()?).ok());
    if file.is_some_and(|file| Keys::read(&file).is_some()) {
        return None;
    }
    let mut wanted = current.cloned().unwrap_or_else(
        || json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": SESSION}}),
    );
    wanted["data"] = json!({ SESSION: STANDARD.encode(Keys::generate().ok()?) });
    Some(wanted)
}

/// What clients read at `/.well-known/oauth-authorization-server`, as the authentication operator writes it.
fn metadata(issuer: &str) -> String {
    let scopes =
        ["user:check-access", "user:full", "user:info", "user:list-projects", "user:list-scoped-projects"];
    let list = |items: &[&str]| {
        let lines: Vec<String> = items.iter().map(|item| format!("    {item:?}")).collect();
        format!("[\n{}\n  ]", lines.join(",\n"))
    };
    format!(
        "{{\n  \"issuer\": {issuer:?},\n  \"authorization_endpoint\": {:?},\n  \"token_endpoint\": {:?},\n  \
         \"scopes_supported\": {},\n  \"response_types_supported\": {},\n  \"grant_types_supported\": {},\n  \
         \"code_challenge_methods_supported\": {}\n}}\n",
        format!("{issuer}/oauth/authorize"),
        format!("{issuer}/oauth/token"),
        list(&scopes),
        list(&["code", "token"]),
        list(&["authorization_code", "implicit"]),
        list(&["plain", "S256"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired() -> Desired {
        Desired::new("https://127.0.0.1:9443", None)
    }

    /// What stands at a path once it has been brought to what it should be; then nothing is left to do.
    fn settled(place: &str) -> Value {
        let made = desired().wanted(place, None).unwrap();
        assert_eq!(desired().wanted(place, Some(&made)), None, "{place}");
        made
    }

    #[test]
    fn everything_is_made_once() {
        for place in desired().places() {
            settled(&place);
        }
        let metadata = settled("/api/v1/namespaces/openshift-config-managed/configmaps/oauth-openshift");
        let metadata: Value = serde_json::from_str(metadata["data"][METADATA].as_str().unwrap()).unwrap();
        assert_eq!(metadata["issuer"], "https://127.0.0.1:9443");
        assert_eq!(metadata["token_endpoint"], "https://127.0.0.1:9443/oauth/token");
        assert_eq!(metadata.as_object().unwrap().len(), 7);
    }

    #[test]
    fn clients_are_brought_back() {
        let place = format!("{CLIENTS}/openshift-challenging-client");
        let mut client = settled(&place);
        assert_eq!(client["respondWithChallenges"], true);
        client["metadata"]["resourceVersion"] = "7".into();
        client["redirectURIs"] = json!(["https://evil.example"]);
        client["secret"] = "s".into();
        client["accessTokenMaxAgeSeconds"] = 60.into();
        let wanted = desired().wanted(&place, Some(&client)).unwrap();
        assert_eq!(wanted["redirectURIs"], json!(["https://127.0.0.1:9443/oauth/token/implicit"]));
        assert_eq!((&wanted["secret"], &wanted["metadata"]["resourceVersion"]), (&Value::Null, &"7".into()));
        assert_eq!(
            wanted["accessTokenMaxAgeSeconds"], 60,
            "how long tokens live is the administrator's to say"
        );
        let browser = settled(&format!("{CLIENTS}/openshift-browser-client"));
        assert_eq!(browser["secret"].as_str().map(str::len), Some(43));
    }

    #[test]
    fn keys_that_work_stay() {
        let made = settled(&secret());
        let mut broken = made.clone();
        broken["data"] = json!({ SESSION: "e30=" });
        assert_ne!(desired().wanted(&secret(), Some(&broken)).unwrap()["data"], made["data"]);
    }

    #[test]
    fn changes_are_found_by_name() {
        let place = |namespace, name| desired().place(namespace, name);
        assert_eq!(place(None, "openshift-cli-client"), Some(format!("{CLIENTS}/openshift-cli-client")));
        assert_eq!(place(None, "cli-client"), None);
        assert_eq!(place(Some(AUTHENTICATION), SESSION), Some(secret()));
        assert_eq!(place(Some("other"), SESSION), None);
        assert_eq!(
            place(Some(MANAGED), "oauth-openshift").as_deref(),
            Some(map(MANAGED, "oauth-openshift").as_str())
        );
        assert_eq!(place(Some(MANAGED), "oauth-serving-cert"), None);
    }
}
