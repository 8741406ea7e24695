//! A shim in this process, servers behind it, and raw clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picoshift_machinery::drain::Drain;
use picoshift_machinery::followed::Followed;
use picoshift_machinery::listener::{Limits, Listener};
use picoshift_machinery::tls::{ServingCertificate, TrustBundle, provider, server_config};
use picoshift_shim::args::{DirectGroups, ServiceName};
use picoshift_shim::direct::{ApiService, Direct};
use picoshift_shim::documents::Documents;
use picoshift_shim::effective::Identities;
use picoshift_shim::front::Front;
use picoshift_shim::metrics::Metrics;
use picoshift_shim::revocation::Revocations;
use picoshift_shim::tunnel::Tunnels;
use picoshift_shim::upstream::{Identity, Pool, Pools, Server};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::pki::{Authority, Pair};
use crate::upstream::{self, Upstream};

/// How long anything may take before its test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Everything that runs.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) clients: Authority,
    pub(crate) fronts: Authority,
    pub(crate) kube: Upstream,
    pub(crate) ours: Upstream,
    pub(crate) front: Arc<Front>,
    pub(crate) drain: Drain,
    pub(crate) folder: tempfile::TempDir,
    servers: Authority,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), true).await
    }

    /// `ours` says whether our API server can be reached.
    pub(crate) async fn with(limits: Limits, ours_runs: bool) -> Self {
        let (servers, clients, fronts) =
            (Authority::new("servers"), Authority::new("clients"), Authority::new("fronts"));
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (server_ca, client_ca) = (write("servers.crt", &servers.pem), write("clients.crt", &clients.pem));
        let own = servers.sign("server", &[]);
        let (kube, ours) = (upstream::start(&own, &fronts).await, upstream::start(&own, &fronts).await);
        let (certificate_file, key_file) =
            fronts.sign("front-proxy-client", &[]).write(folder.path(), "front");
        let identity =
            || Some(Identity { certificate_file: certificate_file.clone(), key_file: key_file.clone() });
        let metrics = Arc::new(Metrics::new());
        let server = |address: SocketAddr| Server {
            authority: address.to_string().parse().unwrap(),
            name: "127.0.0.1".to_owned(),
            ca_file: server_ca.clone(),
        };
        let ours_at = if ours_runs { ours.address } else { "127.0.0.1:1".parse().unwrap() };
        let pool = |address, identity, name| {
            Arc::new(Pool::new(server(address), identity, metrics.pool(name)).unwrap())
        };
        let pools = Pools {
            plain: pool(kube.address, None, "plain"),
            fronted: pool(kube.address, identity(), "fronted"),
            ours: Some(pool(ours_at, identity(), "ours")),
        };
        let service = ServiceName { namespace: "ns".to_owned(), name: "ours".to_owned() };
        let direct = Direct::new(DirectGroups::All, service);
        direct.apply(ApiService {
            name: "v1.route.openshift.io".to_owned(),
            group: "route.openshift.io".to_owned(),
            version: "v1".to_owned(),
            service: Some(("ns".to_owned(), "ours".to_owned())),
        });
        let read = client_ca.clone();
        let authorities = Followed::new("clients", vec![client_ca], move || {
            TrustBundle::from_pem(&std::fs::read(&read).unwrap_or_default())
        });
        let front = Arc::new(Front {
            pools,
            authorities: Arc::new(authorities.unwrap()),
            direct: Arc::new(direct),
            identities: Identities::new(Arc::clone(&metrics)),
            revocations: Revocations::default(),
            documents: Arc::new(Documents::new(true)),
            tunnels: Tunnels::new(),
            metrics,
            answer_timeout: PATIENCE,
            access_log: true,
            streams_end: CancellationToken::new(),
        });
        let (crt, key) = servers.sign("shim", &[]).write(folder.path(), "serving");
        let serving = ServingCertificate::load(crt, key).unwrap();
        let tls = server_config(serving).unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls, limits).await.unwrap();
        let (address, drain) = (listener.address(), Drain::new());
        tokio::spawn(listener.serve(Arc::clone(&front), drain.clone()));
        Self { address, clients, fronts, kube, ours, front, drain, folder, servers }
    }

    /// A client's connection.
    pub(crate) async fn connect(&self, identity: Option<&Pair>) -> Raw {
        Raw { stream: self.tls(identity, b"http/1.1").await, buffer: Vec::new() }
    }

    pub(crate) async fn tls(&self, identity: Option<&Pair>, protocol: &[u8]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.servers.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let (chain, key) = pair.der();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }

    /// One request without a certificate, and the whole answer.
    pub(crate) async fn ask(&self, request: &str) -> Answer {
        self.connect(None).await.ask(request).await
    }
}

/// A connection on which a test reads and writes bytes.
pub(crate) struct Raw {
    pub(crate) stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Whether what the server behind the shim read has this line.
    pub(crate) fn has(&self, line: &str) -> bool {
        self.body.lines().any(|own| own.eq_ignore_ascii_case(line))
    }
}

impl Raw {
    pub(crate) async fn ask(&mut self, request: &str) -> Answer {
        self.write(request).await;
        self.answer().await
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await.expect("nothing comes");
        read.is_ok_and(|n| n > 0)
    }

    /// What comes up to `end`, that included; all there is when the connection ends before.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.buffer.windows(end.len()).position(|part| part == end.as_bytes());
            if let Some(at) = found {
                let rest = self.buffer.split_off(at + end.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.buffer, rest)).into_owned();
            }
            if !self.more().await {
                return String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned();
            }
        }
    }

    /// An answer with a length, with chunks, or up to the end of the connection.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n").await;
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let lower = head.to_ascii_lowercase();
        let length =
            lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let body = match length {
            Some(length) => {
                while self.buffer.len() < length && self.more().await {}
                let rest = self.buffer.split_off(length.min(self.buffer.len()));
                String::from_utf8_lossy(&std::mem::replace(&mut self.buffer, rest)).into_owned()
            }
            None if lower.contains("transfer-encoding: chunked") => self.until("0\r\n\r\n").await,
            None => String::new(),
        };
        Answer { code, head, body }
    }

    /// Whether the connection has ended.
    pub(crate) async fn has_ended(&mut self) -> bool {
        while self.more().await {}
        true
    }
}
