//! The endpoints over a kube-apiserver of a few lines. What a real server answered is in `recorded`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{LOCATION, SET_COOKIE};
use http_body_util::BodyExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::*;
use crate::oauth::call::tests::call;
use crate::oauth::fake::Fake;
use crate::oauth::metrics::OAuthMetrics;
use crate::oauth::provider::Hashing;
use crate::oauth::session::Keys;
use crate::oauth::throttle::Throttle;
use crate::oauth::url::{Values, query_escape};

mod attacks;
mod flows;
mod recorded;

const ISSUER: &str = "https://127.0.0.1:8445";
const CLIENTS: &str = "/apis/oauth.openshift.io/v1/oauthclients";
/// SHA-1 of `alicepw`, and of `bobpw`: quick to check.
const FILE: &str = "alice:{SHA}ALICE\nbob:{SHA}BOB\n";
/// When tests happen.
const NOW: &str = "2026-01-01T00:01:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn later() -> Timestamp {
    "2026-01-01T00:07:00Z".parse().unwrap()
}

/// A server with three users' worth of everything.
struct Lab {
    fake: Arc<Fake>,
    directory: Arc<Directory>,
    endpoints: Endpoints,
    keys: String,
}

fn sha(password: &str) -> String {
    use sha1::Digest as _;
    STANDARD.encode(sha1::Sha1::digest(password))
}

fn secret(name: &str, key: &str, data: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    secret.metadata.uid = Some("u".to_owned());
    secret.metadata.resource_version = Some("1".to_owned());
    let created = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now());
    secret.metadata.creation_timestamp = Some(created);
    secret.data = Some([(key.to_owned(), ByteString(data.as_bytes().to_vec()))].into());
    secret
}

impl Lab {
    fn new() -> Self {
        let client = |redirect: String, more: Value| {
            let mut client = json!({"redirectURIs": [redirect], "grantMethod": "auto"});
            for (name, value) in more.as_object().into_iter().flatten() {
                client[name] = value.clone();
            }
            client
        };
        let fake = Arc::new(Fake::default());
        for (name, object) in [
            (
                "openshift-challenging-client",
                client(format!("{ISSUER}/oauth/token/implicit"), json!({"respondWithChallenges": true})),
            ),
            (
                "openshift-browser-client",
                client(format!("{ISSUER}/oauth/token/display"), json!({"secret": "browser-secret"})),
            ),
            ("openshift-cli-client", client("http://127.0.0.1/callback".to_owned(), json!({}))),
            (
                "promptclient",
                client(
                    "https://127.0.0.1:9/cb".to_owned(),
                    json!({"grantMethod": "prompt", "secret": "s3cret"}),
                ),
            ),
            ("denied", client("https://127.0.0.1:9/cb".to_owned(), json!({"grantMethod": ""}))),
            (
                "narrow",
                client(
                    "https://127.0.0.1:9/cb".to_owned(),
                    json!({"scopeRestrictions": [{"literals": ["user:info"]}]}),
                ),
            ),
            (
                "short",
                client(
                    "https://127.0.0.1:9/cb".to_owned(),
                    json!({"accessTokenMaxAgeSeconds": 60, "accessTokenInactivityTimeoutSeconds": 300}),
                ),
            ),
        ] {
            fake.put(&format!("{CLIENTS}/{name}"), object);
        }
        *fake.now.lock() = NOW.to_owned();
        let directory = Arc::new(Directory::default());
        let lab = Self {
            endpoints: endpoints(&fake, &directory, now),
            keys: Keys::generate().unwrap(),
            fake,
            directory,
        };
        lab.directory.set_keys(Keys::read(lab.keys.as_bytes()));
        lab.providers(&["htpasswd"]);
        lab
    }

    /// Providers of these names, all with the same users.
    fn providers(&self, names: &[&str]) {
        let file = FILE.replace("ALICE", &sha("alicepw")).replace("BOB", &sha("bobpw"));
        self.directory.set_file(&secret("users", "htpasswd", &file));
        let provider = |name: &&str| json!({"name": name, "type": "HTPasswd", "mappingMethod": "claim", "htpasswd": {"fileData": {"name": "users"}}});
        let providers: Vec<_> = names.iter().map(provider).collect();
        self.directory.set_oauth(json!({ "identityProviders": providers }));
    }

    /// The same server some minutes later, after a restart.
    fn restarted(&self, clock: fn() -> Timestamp) -> Self {
        let directory = Arc::new(Directory::default());
        let endpoints = endpoints(&self.fake, &directory, clock);
        let lab = Self { fake: Arc::clone(&self.fake), directory, endpoints, keys: self.keys.clone() };
        lab.directory.set_keys(Keys::read(lab.keys.as_bytes()));
        lab.providers(&["htpasswd"]);
        lab
    }

    async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let reply = self.endpoints.answer(&call(method, target, headers, form).await).await;
        let (parts, body) = reply.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "").await
    }

    /// Authorizes with name and password in the header.
    async fn basic(&self, query: &str, name: &str, password: &str) -> Answer {
        let basic = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        let headers = [("authorization", basic.as_str()), ("x-csrf-token", "1")];
        self.ask("GET", &format!("/oauth/authorize?{query}"), &headers, "").await
    }

    /// A code for a client, by name and password.
    async fn code(&self, query: &str) -> String {
        let answer = self.basic(query, "alice", "alicepw").await;
        let code = answer.told("code");
        assert!(code.starts_with("sha256~"), "{answer:?}");
        code
    }

    async fn exchange(&self, client: &str, form: &[(&str, &str)]) -> Answer {
        let basic = format!("Basic {}", STANDARD.encode(client));
        let form: Vec<String> =
            form.iter().map(|(name, value)| format!("{name}={}", query_escape(value))).collect();
        let form = format!("grant_type=authorization_code&{}", form.join("&"));
        self.ask("POST", "/oauth/token", &[("authorization", &basic)], &form).await
    }

    /// The cookie header of somebody who has opened the login page and logged in there.
    async fn log_in(&self, name: &str, password: &str) -> (Answer, String) {
        let page = self.get("/login?then=%2F").await;
        let csrf = page.cookie("csrf").unwrap();
        let form = format!("then=%2F&csrf={csrf}&username={name}&password={password}");
        let cookie = format!("csrf={csrf}");
        let answer = self.ask("POST", "/login", &[("cookie", &cookie)], &form).await;
        let session = answer.cookie("ssn").unwrap_or_default();
        (answer, format!("csrf={csrf}; ssn={session}"))
    }
}

fn endpoints(fake: &Arc<Fake>, directory: &Arc<Directory>, clock: fn() -> Timestamp) -> Endpoints {
    let settings = Settings {
        issuer: ISSUER.to_owned(),
        api_url: "https://127.0.0.1:6443".to_owned(),
        console_url: Some("https://console.example/".to_owned()),
    };
    let logins = Logins {
        api: Arc::clone(fake) as _,
        throttle: Throttle::default(),
        hashing: Hashing::default(),
        metrics: OAuthMetrics::default(),
    };
    Endpoints::new(settings, Arc::clone(directory), logins, clock)
}

/// An answer that has been read.
#[derive(Debug)]
struct Answer {
    code: u16,
    headers: http::HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn location(&self) -> &str {
        self.header(LOCATION.as_str())
    }

    /// What the client was told in the query or fragment.
    fn told(&self, name: &str) -> String {
        let (_, told) = self.location().split_once(['?', '#']).unwrap_or_default();
        Values::parse(told).get(name).to_owned()
    }

    fn cookie(&self, name: &str) -> Option<String> {
        let cookies = self.headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        let prefix = format!("{name}=");
        let mut values = cookies
            .filter_map(|cookie| cookie.strip_prefix(&prefix)?.strip_suffix("; Path=/; HttpOnly; Secure"));
        values.next().map(ToOwned::to_owned)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The value of a hidden field.
    fn field(&self, name: &str) -> String {
        let start = format!("name=\"{name}\" value=\"");
        let (_, rest) = self.body.split_once(&start).unwrap_or_default();
        rest.split('"').next().unwrap_or_default().replace("&#38;", "&").replace("&amp;", "&")
    }
}
