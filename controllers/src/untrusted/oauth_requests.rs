//! Whole requests to the OAuth server, over a kube-apiserver of a few lines: wherever a browser is sent, a client has
//! registered it, or it is here.

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::browser::follow;
use crate::oauth::call::Call;
use crate::oauth::directory::Directory;
use crate::oauth::endpoints::{Endpoints, Settings};
use crate::oauth::fake::Fake;
use crate::oauth::logins::Logins;
use crate::oauth::metrics::OAuthMetrics;
use crate::oauth::provider::Hashing;
use crate::oauth::session::{Keys, User};
use crate::oauth::throttle::Throttle;

/// Where a browser may be sent: scheme, host and path.
const PLACES: [(&str, &str, &str); 3] = [
    ("https", "app.example", "/cb"),
    ("https", "console.example", "/below"),
    ("http", "127.0.0.1", "/callback"),
];
/// Stands for the cookie of somebody who has logged in.
const SESSION: &str = "{session}";
/// The password is `b`.
const FILE: &str = "a:{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g=\n";

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().ok());

/// A method and a target, lines of headers, an empty line, and a form.
pub(super) fn oauth_requests(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (Some(runtime), Some((endpoints, session))) = (&*RUNTIME, endpoints()) else { return };
    let Some(request) = request(&text.replace(SESSION, &session)) else { return };
    runtime.block_on(async {
        let Ok(call) = Call::read(request, Ipv4Addr::LOCALHOST.into()).await else { return };
        let (head, body) = endpoints.answer(&call).await.into_parts();
        let sent = head.headers.get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let place = follow(&String::from_utf8_lossy(sent));
        let is_registered = PLACES.iter().any(|(scheme, host, path)| {
            let same = place.host == *host || (*scheme == "http" && is_loopback(&place.host));
            place.scheme == *scheme && same && place.is_below(path)
        });
        assert!(
            sent.is_ascii() && (place.is_here() || is_registered),
            "{} leads to {place:?}",
            call.target()
        );
        let is_page =
            head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        let Ok(body) = body.collect().await;
        let page = String::from_utf8_lossy(&body.to_bytes()).to_ascii_lowercase();
        assert!(!is_page || !page.contains("<script"), "{} puts a script into a page", call.target());
    });
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn request(text: &str) -> Option<Request<Full<bytes::Bytes>>> {
    let (head, form) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut request = Request::new(Full::new(bytes::Bytes::from(form.to_owned())));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = target.parse().ok()?;
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, form_type);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_str(value.trim()).ok()?);
    }
    Some(request)
}

/// The server, and the session of somebody.
fn endpoints() -> Option<(Endpoints, String)> {
    static KEYS: LazyLock<Option<String>> = LazyLock::new(|| Keys::generate().ok());
    let fake = Fake::default();
    for (name, redirect, grant, challenges) in [
        ("auto", "https://app.example/cb", "auto", false),
        ("ask", "https://app.example/cb", "prompt", false),
        ("cli", "http://127.0.0.1/callback", "auto", true),
    ] {
        let client =
            json!({"redirectURIs": [redirect], "grantMethod": grant, "respondWithChallenges": challenges});
        fake.put(&format!("/apis/oauth.openshift.io/v1/oauthclients/{name}"), client);
    }
    let keys = Keys::read(KEYS.as_ref()?.as_bytes())?;
    let user = User { name: "a".to_owned(), uid: "u".to_owned() };
    let session = keys.seal(Some(&user), i64::MAX)?;
    let directory = Directory::default();
    directory.set_keys(Some(keys));
    let mut file = Secret::default();
    file.metadata.name = Some("users".to_owned());
    file.data = Some([("htpasswd".to_owned(), ByteString(FILE.as_bytes().to_vec()))].into());
    directory.set_file(&file);
    let provider = json!({"name": "p", "type": "HTPasswd", "mappingMethod": "claim", "htpasswd": {"fileData": {"name": "users"}}});
    directory.set_oauth(json!({ "identityProviders": [provider] }));
    let settings = Settings {
        issuer: "https://oauth.example".to_owned(),
        api_url: "https://api.example:6443".to_owned(),
        console_url: Some("https://console.example/below".to_owned()),
    };
    let logins = Logins {
        api: Arc::new(fake),
        throttle: Throttle::default(),
        hashing: Hashing::default(),
        metrics: OAuthMetrics::default(),
    };
    Some((Endpoints::new(settings, Arc::new(directory), logins, Timestamp::now), session))
}
