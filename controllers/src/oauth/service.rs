//! The OAuth server in the process: its listener, and the watches that keep it up to date. It serves whether this process
//! leads or not.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use picoshift_machinery::body::Body;
use picoshift_machinery::bootstrap_user;
use picoshift_machinery::drain::Drain;
use picoshift_machinery::listener::{Limits, Listener, Service};
use picoshift_machinery::peer::Peer;
use picoshift_machinery::plain;
use picoshift_machinery::readiness::{Checks, Shown};
use picoshift_machinery::tls::{ServingCertificate, provider};
use rustls::ServerConfig;
use serde_json::Value;

use super::call::Call;
use super::directory::Directory;
use super::endpoints::Endpoints;
use super::reply;
use super::session::Keys;
use super::upkeep::{AUTHENTICATION, SESSION};
use crate::metrics::ControllerMetrics;
use crate::ready::Readiness;
use crate::watch::{Index, follow_some};

/// Its name in probes and counters.
pub const NAME: &str = "oauth-server";
/// Namespace of the files of providers.
const CONFIG: &str = "openshift-config";
const CERTIFICATE_PERIOD: Duration = Duration::from_secs(10);
const LIMITS: fn() -> Limits = || Limits {
    connections: 2000,
    headers: Duration::from_secs(30),
    header_lines: 100,
    write: Duration::from_secs(30),
    ..Limits::default()
};

/// Why the server did not come up.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// What answers connections.
struct Answers {
    endpoints: Endpoints,
}

impl Service for Answers {
    type Connection = SocketAddr;

    fn connected(&self, peer: Peer) -> SocketAddr {
        peer.address
    }

    async fn call(self: Arc<Self>, peer: Arc<SocketAddr>, request: Request<Incoming>) -> Response<Body> {
        match Call::read(request, peer.ip()).await {
            Ok(call) => {
                let answer = self.endpoints.answer(&call).await;
                // Paths only: queries hold codes.
                tracing::debug!(method = %call.method, path = call.path, code = answer.status().as_u16(), "answered");
                answer
            }
            Err(code) => {
                let text = code.canonical_reason().unwrap_or("Bad Request");
                let mut refused = reply::with_standard_headers(plain::plain_error(code, text));
                // What is left of the request is not read.
                refused
                    .headers_mut()
                    .insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
                refused
            }
        }
    }
}

/// A server that is bound and not yet serving.
pub struct OAuthService {
    listener: Listener,
    answers: Arc<Answers>,
    certificate: Arc<ServingCertificate>,
    directory: Arc<Directory>,
    client: Client,
    ready: Readiness,
    metrics: ControllerMetrics,
}

impl OAuthService {
    /// Binds; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub async fn bind(
        address: SocketAddr,
        certificate: Arc<ServingCertificate>,
        (endpoints, directory): (Endpoints, Arc<Directory>),
        client: Client,
        checks: &Checks,
        metrics: ControllerMetrics,
    ) -> Result<Self, ServiceError> {
        // No client certificate is asked for: browsers would ask their users.
        let mut tls = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as _);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = Listener::bind(address, Arc::new(tls), LIMITS())
            .await
            .map_err(|source| ServiceError::Bind { address, source })?;
        let ready = Readiness::new();
        let asked = ready.clone();
        checks.add(NAME, Shown::NotLive, move || asked.check());
        let answers = Arc::new(Answers { endpoints });
        Ok(Self { listener, answers, certificate, directory, client, ready, metrics })
    }

    /// The address that was bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `drain`.
    pub async fn serve(self, drain: Drain) {
        let Self { listener, answers, certificate, directory, client, ready, metrics } = self;
        let watches = Watches { client, directory: &directory, ready: &ready, metrics: &metrics };
        let stop = drain.clone();
        let up_to_date = async {
            tokio::select! {
                () = watches.follow() => {}
                () = certificate.keep_fresh(CERTIFICATE_PERIOD) => {}
                () = stop.wait() => {}
            }
        };
        tokio::join!(listener.serve(answers, drain), up_to_date);
    }
}

struct Watches<'a> {
    client: Client,
    directory: &'a Directory,
    ready: &'a Readiness,
    metrics: &'a ControllerMetrics,
}

impl Watches<'_> {
    async fn follow(&self) {
        let secrets = |namespace: &str| Api::<Secret>::namespaced(self.client.clone(), namespace);
        let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let all = watcher::Config::default();
        let gvk = GroupVersionKind::gvk("config.openshift.io", "v1", "OAuth");
        let configuration = ApiResource { plural: "oauths".to_owned(), ..ApiResource::from_gvk(&gvk) };
        let configuration = Api::<DynamicObject>::all_with(self.client.clone(), &configuration);
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let (d, r, m) = (self.directory, self.ready, self.metrics);
        let (files, admin, keys, cluster, born) = (Files(d), Admin(d), Sessions(d), Cluster(d), Born(d));
        tokio::join!(
            follow_some(configuration, named("cluster"), "oauths", &cluster, r, m),
            follow_some(secrets(CONFIG), all, "secrets of providers", &files, r, m),
            follow_some(
                secrets(bootstrap_user::SECRET_NAMESPACE),
                named(bootstrap_user::LOGIN_NAME),
                "kubeadmin",
                &admin,
                r,
                m
            ),
            follow_some(secrets(AUTHENTICATION), named(SESSION), "session keys", &keys, r, m),
            follow_some(namespaces, named(bootstrap_user::SECRET_NAMESPACE), "kube-system", &born, r, m),
        );
    }
}

struct Cluster<'a>(&'a Directory);

impl Index<DynamicObject> for Cluster<'_> {
    fn replace(&self, objects: Vec<DynamicObject>) {
        let spec = objects.into_iter().next().map_or(Value::Null, |object| object.data["spec"].clone());
        self.0.set_oauth(spec);
    }

    fn apply(&self, object: DynamicObject) {
        self.0.set_oauth(object.data["spec"].clone());
    }

    fn delete(&self, _object: DynamicObject) {
        self.0.set_oauth(Value::Null);
    }
}

struct Files<'a>(&'a Directory);

impl Index<Secret> for Files<'_> {
    fn replace(&self, secrets: Vec<Secret>) {
        self.0.set_files(&secrets);
    }

    fn apply(&self, secret: Secret) {
        self.0.set_file(&secret);
    }

    fn delete(&self, secret: Secret) {
        self.0.remove_file(&secret.name_any());
    }
}

struct Admin<'a>(&'a Directory);

impl Index<Secret> for Admin<'_> {
    fn replace(&self, secrets: Vec<Secret>) {
        self.0.set_kube_admin(secrets.into_iter().next());
    }

    fn apply(&self, secret: Secret) {
        self.0.set_kube_admin(Some(secret));
    }

    fn delete(&self, _secret: Secret) {
        self.0.set_kube_admin(None);
    }
}

struct Sessions<'a>(&'a Directory);

impl Sessions<'_> {
    fn read(&self, secret: Option<&Secret>) {
        let file = secret.and_then(|secret| secret.data.as_ref()?.get(SESSION));
        self.0.set_keys(file.and_then(|file| Keys::read(&file.0)));
    }
}

impl Index<Secret> for Sessions<'_> {
    fn replace(&self, secrets: Vec<Secret>) {
        self.read(secrets.first());
    }

    fn apply(&self, secret: Secret) {
        self.read(Some(&secret));
    }

    fn delete(&self, _secret: Secret) {
        self.read(None);
    }
}

struct Born<'a>(&'a Directory);

impl Index<Namespace> for Born<'_> {
    fn replace(&self, namespaces: Vec<Namespace>) {
        for namespace in namespaces {
            self.apply(namespace);
        }
    }

    fn apply(&self, namespace: Namespace) {
        if let Some(created) = namespace.creation_timestamp() {
            self.0.set_kube_system_created(created.0);
        }
    }

    fn delete(&self, _namespace: Namespace) {}
}
