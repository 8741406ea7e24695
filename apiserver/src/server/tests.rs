//! Tests of the whole chain over real TLS: two authorities, port 0, hyper as the client.

use arc_swap::ArcSwap;
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use picoshift_machinery::body::{self, Body};
use picoshift_machinery::log::Verbosity;
use picoshift_machinery::{GroupVersionKind, Status, UserInfo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::*;
use crate::audit::log::Log;
use crate::audit::policy::Policy;
use crate::authn::extension_config::ExtensionConfig;
use crate::authn::memberships::Memberships;
use crate::authn::test_certificates::{Authority, Client, config, config_map};
use crate::authn::token_review::{TokenAuthenticator, TokenError, TokenReview};
use crate::authz::{Attributes, Authorizer, Decision, Scopes};
use crate::resource::{Resource, Verb};
use crate::rest::RequestContext;

static ROUTES: Resource = Resource {
    gvk: GroupVersionKind { group: "route.openshift.io", version: "v1", kind: "Route" },
    plural: "routes",
    singular: "route",
    namespaced: true,
    verbs: &[Verb::Get, Verb::Watch],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "",
};

/// Answers who asked; `slow` waits, `panic` panics, `forever` never answers, watches never end.
struct Echo {
    go: Semaphore,
    started: Semaphore,
}

#[async_trait]
impl Endpoint for Echo {
    async fn call(&self, cx: Arc<RequestContext>, request: Request<Incoming>) -> Response<Body> {
        assert!(!request.headers().keys().any(|name| name.as_str().starts_with("x-remote-")));
        match cx.info.name.as_str() {
            "slow" => {
                self.started.add_permits(1);
                drop(self.go.acquire().await);
            }
            "panic" => panic!("as the test wants"),
            "forever" => std::future::pending().await,
            _ => {}
        }
        if cx.info.verb == "watch" {
            if cx.info.namespace == "panics" {
                let events =
                    stream::iter([Bytes::from("event\n")]).chain(stream::poll_fn(|_| panic!("in a stream")));
                return Response::new(body::stream(events));
            }
            let events = stream::iter([Bytes::from("event\n")]).chain(stream::pending());
            return Response::new(body::stream(events));
        }
        respond::json(StatusCode::OK, &json!({"user": cx.user.name, "groups": cx.user.groups.len()}))
    }
}

use http::StatusCode;

/// `nobody` may nothing, unless in `team`; `broken` cannot be reviewed, webhook questions are allowed in namespace `mine`.
struct Rules;

#[async_trait]
impl Authorizer for Rules {
    async fn authorize(&self, user: &UserInfo, a: &Attributes) -> Result<Decision, Status> {
        match user.name.as_str() {
            "broken" => Err(Status::internal("no connection")),
            "nobody" if !user.in_group("team") => Ok(Decision::Deny { reason: "no rule".to_owned() }),
            "asked-about" if a.namespace != "mine" => Ok(Decision::Deny { reason: String::new() }),
            "boss" if a.verb == "impersonate" && a.name == "root" => {
                Ok(Decision::Deny { reason: String::new() })
            }
            _ => Ok(Decision::Allow),
        }
    }
}

struct NoTokens;

#[async_trait]
impl TokenReview for NoTokens {
    async fn review(&self, _token: &str) -> Result<Option<UserInfo>, TokenError> {
        Ok(None)
    }
}

struct World {
    address: SocketAddr,
    /// Certificates that clients believe.
    serving: Mutex<Vec<CertificateDer<'static>>>,
    certificate: Arc<ServingCertificate>,
    files: tempfile::TempDir,
    config: Arc<ArcSwap<ExtensionConfig>>,
    clients: Authority,
    proxy: Authority,
    echo: Arc<Echo>,
    metrics: Arc<Metrics>,
    memberships: Arc<Memberships>,
    drain: Drain,
    done: JoinHandle<()>,
}

/// A serving certificate and its key.
struct Pair(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Pair {
    fn new() -> Self {
        Self(rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap())
    }

    fn certificate(&self) -> CertificateDer<'static> {
        self.0.cert.der().clone()
    }

    fn write(&self, folder: &tempfile::TempDir) {
        std::fs::write(folder.path().join("crt"), self.0.cert.pem()).unwrap();
        std::fs::write(folder.path().join("key"), self.0.signing_key.serialize_pem()).unwrap();
    }
}

async fn start(change: impl FnOnce(&mut ServerConfig)) -> World {
    start_audited(change, None).await
}

async fn start_audited(change: impl FnOnce(&mut ServerConfig), audited: Option<(Policy, Arc<Log>)>) -> World {
    let folder = tempfile::tempdir().unwrap();
    let serving = Pair::new();
    serving.write(&folder);
    let certificate = ServingCertificate::load(folder.path().join("crt"), folder.path().join("key")).unwrap();
    let mut settings = ServerConfig::new("127.0.0.1:0".parse().unwrap(), Arc::clone(&certificate));
    change(&mut settings);

    let (clients, proxy) = (Authority::new("clients"), Authority::new("front proxy"));
    let echo = Arc::new(Echo { go: Semaphore::new(0), started: Semaphore::new(0) });
    let (mut metrics, drain, checks) = (Metrics::new(), Drain::new(), Checks::new());
    let audit = audited.map(|(policy, log)| Arc::new(Audit::new(policy, log, metrics.registry_mut())));
    let metrics = Arc::new(metrics);
    checks.add("ping", Shown::Everywhere, || Ok(()));
    let memberships = Arc::new(Memberships::new());
    let endpoints = Endpoints::new()
        .resource(&ROUTES, Arc::clone(&echo) as _)
        .path("/apis", Arc::clone(&echo) as _)
        .prefix("/openapi/v3/", Arc::clone(&echo) as _);
    let config = config(&config_map(&clients, &proxy));
    let parts = Parts {
        memberships: Arc::clone(&memberships),
        authenticator: Authenticator::new(Arc::clone(&config), TokenAuthenticator::new(Arc::new(NoTokens))),
        authorizer: Arc::new(CachedAuthorizer::new(
            Arc::new(Rules),
            Scopes::new(Arc::default()),
            Arc::clone(&metrics),
        )),
        endpoints: debug::add(endpoints, Verbosity::new("info", |_| true)),
        checks,
        metrics: Arc::clone(&metrics),
        audit,
    };
    let server = Server::bind(settings, parts, drain.clone()).await.unwrap();
    let address = server.address();
    let done = tokio::spawn(server.serve());
    World {
        address,
        serving: Mutex::new(vec![serving.certificate()]),
        certificate,
        files: folder,
        config,
        clients,
        proxy,
        echo,
        metrics,
        memberships,
        drain,
        done,
    }
}

type Request1 = http1::SendRequest<Full<Bytes>>;
type Request2 = http2::SendRequest<Full<Bytes>>;

impl World {
    async fn stream(
        &self,
        protocol: &str,
        client: Option<&Client>,
    ) -> TokioIo<tokio_rustls::client::TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        for certificate in &*self.serving.lock() {
            roots.add(certificate.clone()).unwrap();
        }
        let builder = ClientConfig::builder_with_provider(picoshift_machinery::tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut tls = match client {
            Some(client) => {
                builder.with_client_auth_cert(vec![client.certificate.clone()], client.key()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TokioIo::new(TlsConnector::from(Arc::new(tls)).connect(name, tcp).await.unwrap())
    }

    async fn http1(&self, client: Option<&Client>) -> Request1 {
        let (sender, connection) = http1::handshake(self.stream("http/1.1", client).await).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn http2(&self, client: Option<&Client>) -> Request2 {
        let stream = self.stream("h2", client).await;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn as_user(&self, name: &str) -> Request2 {
        self.http2(Some(&self.clients.client(name, &[]))).await
    }
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("https://localhost{path}")).body(Full::default()).unwrap()
}

fn route(name: &str) -> Request<Full<Bytes>> {
    get(&format!("/apis/route.openshift.io/v1/namespaces/ns/routes/{name}"))
}

async fn text(response: Response<Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn value(response: Response<Incoming>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

#[tokio::test]
async fn groups_count_from_the_next_request_on_however_one_comes() {
    let world = start(|_| {}).await;
    let oauth = "system:authenticated:oauth";
    let mut direct = world.http2(Some(&world.clients.client("nobody", &[oauth]))).await;
    let mut certificate = world.as_user("nobody").await;
    let mut proxy = world.http2(Some(&world.proxy.client("front-proxy-client", &[]))).await;
    let mut boss = world.as_user("boss").await;
    let with = |headers: [(&'static str, &'static str); 2]| {
        let mut request = route("a");
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    let fronted = with([("x-remote-user", "nobody"), ("x-remote-group", oauth)]);
    let impersonating = with([("impersonate-user", "nobody"), ("impersonate-group", oauth)]);
    let (nobody, member) = ([].into(), ["nobody".into()].into());
    for (groups, code) in [(None, 403), (Some((&nobody, &member)), 200), (Some((&member, &nobody)), 403)] {
        if let Some((old, new)) = groups {
            world.memberships.change("team", old, new);
        }
        assert_eq!(direct.send_request(route("a")).await.unwrap().status(), code);
        assert_eq!(proxy.send_request(fronted.clone()).await.unwrap().status(), code);
        assert_eq!(boss.send_request(impersonating.clone()).await.unwrap().status(), code);
        assert_eq!(certificate.send_request(route("a")).await.unwrap().status(), 403);
    }
}

#[tokio::test]
async fn the_front_proxy_brings_users_with_300_groups_over_both_protocols() {
    let world = start(|_| {}).await;
    let proxy = world.proxy.client("front-proxy-client", &[]);
    let mut request = route("a");
    request.headers_mut().insert("x-remote-user", "jane".parse().unwrap());
    request.headers_mut().insert("audit-id", "from-kube-apiserver".parse().unwrap());
    for n in 0..300 {
        request.headers_mut().append("x-remote-group", format!("group-{n}").parse().unwrap());
    }
    let first = world.http1(Some(&proxy)).await.send_request(request.clone()).await.unwrap();
    assert_eq!(first.headers()["audit-id"], "from-kube-apiserver");
    assert_eq!(first.headers()["cache-control"], "no-store");
    assert_eq!(value(first).await, json!({"user": "jane", "groups": 301}));
    let second = world.http2(Some(&proxy)).await.send_request(request.clone()).await.unwrap();
    assert_eq!(value(second).await, json!({"user": "jane", "groups": 301}));

    let spoofed = world.http2(None).await.send_request(request.clone()).await.unwrap();
    assert_eq!(value(spoofed).await["user"], "system:anonymous");
    let stranger = world.proxy.client("stranger", &[]);
    let refused = world.http1(Some(&stranger)).await.send_request(request).await.unwrap();
    assert_eq!(refused.status(), 401);
    let body = value(refused).await;
    assert_eq!((&body["message"], &body["reason"]), (&json!("Unauthorized"), &json!("Unauthorized")));
}

#[tokio::test]
async fn refusals_are_the_real_ones() {
    let world = start(|_| {}).await;
    let denied = world.as_user("nobody").await.send_request(route("a")).await.unwrap();
    assert_eq!(denied.status(), 403);
    assert_eq!(denied.headers()["x-content-type-options"], "nosniff");
    assert_eq!(
        value(denied).await["message"],
        "routes.route.openshift.io \"a\" is forbidden: User \"nobody\" cannot get resource \"routes\" in \
         API group \"route.openshift.io\" in the namespace \"ns\": no rule"
    );
    let broken = world.as_user("broken").await.send_request(get("/apis")).await.unwrap();
    assert_eq!(broken.status(), 500);
    assert_eq!(
        text(broken).await,
        "Internal Server Error: \"/apis\": Internal error occurred: no connection\n"
    );
    let mut jane = world.as_user("jane").await;
    for path in
        ["/nothing", "/apis/other.io/v1/others", "/readyz/nothing", "//apis/route.openshift.io/v1/routes"]
    {
        let missing = jane.send_request(get(path)).await.unwrap();
        assert_eq!(
            (missing.status().as_u16(), text(missing).await),
            (404, "404 page not found\n".to_owned())
        );
    }
    let missing = jane.send_request(get("/apis/route.openshift.io/v1/others")).await.unwrap();
    assert_eq!(missing.status(), 404);
    let status = value(missing).await;
    assert_eq!(status["message"], "the server could not find the requested resource");
    let panicked = jane.send_request(route("panic")).await.unwrap();
    assert_eq!(panicked.status(), 500);
    assert_eq!(world.metrics.panics.get(), 1);
    let bad_time = jane.send_request(get("/apis?timeout=soon")).await.unwrap();
    assert_eq!(bad_time.status(), 400);
    let late =
        jane.send_request(get("/apis/route.openshift.io/v1/namespaces/ns/routes/forever?timeout=10ms"));
    let late = late.await.unwrap();
    assert_eq!(late.status(), 504);
    assert_eq!(late.headers()["content-type"], "text/plain; charset=utf-8");
    let message = "Timeout: request did not complete within the allotted timeout";
    let status = json!({"metadata": {}, "status": "Failure", "message": message, "reason": "Timeout",
        "details": {}, "code": 504});
    assert_eq!(value(late).await, status);
}

#[tokio::test]
async fn a_panic_ends_its_own_request_only_and_is_counted() {
    let world = start(|_| {}).await;
    let mut jane = world.as_user("jane").await;
    let watch =
        |namespace: &str| get(&format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes?watch=1"));
    let mut other = jane.send_request(watch("ns")).await.unwrap();
    let slow = tokio::spawn(jane.send_request(route("slow")));
    drop(world.echo.started.acquire().await);
    for n in 1..20 {
        let panicked = jane.send_request(route("panic")).await.unwrap();
        assert_eq!(panicked.status(), 500);
        let text = text(panicked).await;
        assert_eq!(text, "This request caused apiserver to panic. Look in the logs for details.\n");
        let broken = jane.send_request(watch("panics")).await.unwrap();
        assert_eq!(broken.status(), 200);
        assert!(broken.into_body().collect().await.is_err(), "no clean end");
        assert_eq!(world.metrics.panics.get(), 2 * n);
    }
    assert_eq!(other.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "event\n");
    world.echo.go.add_permits(1);
    assert_eq!(slow.await.unwrap().unwrap().status(), 200);
    let mut one = world.http1(Some(&world.clients.client("jane", &[]))).await;
    assert_eq!(one.send_request(route("panic")).await.unwrap().status(), 500);
    assert_eq!(one.send_request(route("a")).await.unwrap().status(), 200, "the connection goes on");
    // The head may not be out yet.
    if let Ok(broken) = one.send_request(watch("panics")).await {
        assert!(broken.into_body().collect().await.is_err());
    }
    assert_eq!(jane.send_request(route("a")).await.unwrap().status(), 200);
    assert_eq!(world.metrics.long_running.get(), 1, "the places are free again");
}

#[tokio::test]
async fn own_paths_answer() {
    let world = start(|_| {}).await;
    let mut nobody = world.as_user("nobody").await;
    let health = nobody.send_request(get("/healthz")).await.unwrap();
    assert_eq!(
        (health.status().as_u16(), health.headers()["x-content-type-options"].clone()),
        (200, "nosniff".parse().unwrap())
    );
    assert_eq!(text(health).await, "ok");
    let ready = nobody.send_request(get("/readyz?verbose")).await.unwrap();
    assert_eq!(text(ready).await, "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n");
    assert_eq!(nobody.send_request(get("/metrics")).await.unwrap().status(), 403);
    assert_eq!(nobody.send_request(get("/debug/flags/v")).await.unwrap().status(), 403);

    let mut jane = world.as_user("jane").await;
    assert_eq!(value(jane.send_request(get("/version")).await.unwrap()).await["gitVersion"], "v1.34.1");
    let index = value(jane.send_request(get("/")).await.unwrap()).await;
    for path in ["/apis", "/openapi/v3/", "/readyz/shutdown", "/version/openshift"] {
        assert!(index["paths"].as_array().unwrap().contains(&json!(path)), "{path}");
    }
    assert!(!index["paths"].as_array().unwrap().contains(&json!("/debug/flags/v")));
    let openapi = jane.send_request(get("/openapi/v3/x")).await.unwrap();
    assert_eq!(openapi.headers()["cache-control"], "no-cache, private");
    assert_eq!(openapi.headers()["audit-id"].len(), 36);
    let mut head = route("a");
    *head.method_mut() = http::Method::HEAD;
    let head = jane.send_request(head).await.unwrap();
    assert_eq!(head.headers()["content-length"], "27");
    assert_eq!(text(head).await, "");
    let metrics = text(jane.send_request(get("/metrics")).await.unwrap()).await;
    let line = "apiserver_request_total{verb=\"HEAD\",group=\"route.openshift.io\",version=\"v1\",\
        resource=\"routes\",subresource=\"\",code=\"200\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn impersonation_needs_permission() {
    let world = start(|_| {}).await;
    let mut boss = world.as_user("boss").await;
    let mut request = route("a");
    request.headers_mut().insert("impersonate-user", "jane".parse().unwrap());
    assert_eq!(value(boss.send_request(request.clone()).await.unwrap()).await["user"], "jane");
    request.headers_mut().insert("impersonate-user", "nobody".parse().unwrap());
    assert_eq!(boss.send_request(request.clone()).await.unwrap().status(), 403);
    request.headers_mut().remove("impersonate-user");
    request.headers_mut().insert("impersonate-group", "system:masters".parse().unwrap());
    assert_eq!(boss.send_request(request).await.unwrap().status(), 500);
}

#[tokio::test]
async fn the_webhook_answers_one_client_only() {
    let world = start(|_| {}).await;
    let question = |namespace: &str, name: &str| {
        let review = json!({"spec": {"user": "asked-about", "resourceAttributes": {
            "group": "project.openshift.io", "resource": "projects", "verb": "get",
            "namespace": namespace, "name": name,
        }}});
        let post = Request::post("https://localhost/authorization/projects");
        post.body(Full::from(review.to_string())).unwrap()
    };
    let mut webhook = world.as_user("system:picoshift:authorization-webhook").await;
    for (namespace, name, allowed) in [("", "mine", true), ("", "other", false), ("mine", "mine", false)] {
        let answer = webhook.send_request(question(namespace, name)).await.unwrap();
        assert_eq!(value(answer).await["status"]["allowed"], allowed, "{namespace}/{name}");
    }
    let mut jane = world.as_user("jane").await;
    assert_eq!(jane.send_request(question("", "mine")).await.unwrap().status(), 403);
    let proxy = world.proxy.client("front-proxy-client", &[]);
    let mut claimed = question("", "mine");
    let name = "system:picoshift:authorization-webhook".parse().unwrap();
    claimed.headers_mut().insert("x-remote-user", name);
    assert_eq!(world.http2(Some(&proxy)).await.send_request(claimed).await.unwrap().status(), 403);
    assert_eq!(webhook.send_request(get("/authorization/projects")).await.unwrap().status(), 405);
}

mod audited;
mod load;
mod many;
mod reload;
mod verbosity;
