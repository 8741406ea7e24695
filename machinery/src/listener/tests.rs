//! Tests of the listener over real TLS.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1 as client1, http2 as client2};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use super::*;
use crate::tls::{ServingCertificate, provider, server_config};

/// Answers how many headers came and on which connection; `/slow` waits to be let go, `/body` says how long its body
/// is, `/watch` never ends.
struct Echo {
    connections: AtomicUsize,
    slow_started: Notify,
    let_go: Semaphore,
}

impl Service for Echo {
    type Connection = (usize, bool);

    fn connected(&self, peer: Peer) -> (usize, bool) {
        (self.connections.fetch_add(1, Ordering::SeqCst), peer.certificate.is_some())
    }

    async fn call(self: Arc<Self>, state: Arc<(usize, bool)>, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/slow" => {
                self.slow_started.notify_one();
                drop(self.let_go.acquire().await);
            }
            "/body" => {
                let length = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
                return Response::new(crate::body::full(length.to_string()));
            }
            "/watch" => {
                return Response::new(crate::body::stream(futures::stream::repeat(Bytes::from(vec![
                    b'.';
                    65_536
                ]))));
            }
            _ => {}
        }
        let text = format!("{} {} {}", state.0, state.1, request.headers().len());
        Response::new(crate::body::full(text))
    }
}

struct Running {
    address: SocketAddr,
    authority: CertificateDer<'static>,
    echo: Arc<Echo>,
    drain: Drain,
    done: tokio::task::JoinHandle<()>,
}

async fn start(limits: Limits) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key"), made.signing_key.serialize_pem()).unwrap();
    let serving = ServingCertificate::load(folder.path().join("crt"), folder.path().join("key")).unwrap();
    let tls = server_config(serving).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls, limits).await.unwrap();
    let echo =
        Echo { connections: AtomicUsize::new(0), slow_started: Notify::new(), let_go: Semaphore::new(0) };
    let (address, echo, drain) = (listener.address(), Arc::new(echo), Drain::new());
    let done = tokio::spawn(listener.serve(Arc::clone(&echo), drain.clone()));
    Running { address, authority: made.cert.der().clone(), echo, drain, done }
}

type ClientStream = TokioIo<tokio_rustls::client::TlsStream<TcpStream>>;

impl Running {
    async fn connect(&self, protocol: &str, with_certificate: bool) -> ClientStream {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = if with_certificate {
            let own = rcgen::generate_simple_self_signed(["nobody".to_owned()]).unwrap();
            let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![own.cert.der().clone()], key).unwrap()
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
        TokioIo::new(stream)
    }

    async fn http1(&self, with_certificate: bool) -> client1::SendRequest<Empty<bytes::Bytes>> {
        let (sender, connection) =
            client1::handshake(self.connect("http/1.1", with_certificate).await).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn http2(&self, with_certificate: bool) -> client2::SendRequest<Empty<bytes::Bytes>> {
        let stream = self.connect("h2", with_certificate).await;
        let (sender, connection) = client2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

fn get(path: &str, groups: usize) -> Request<Empty<bytes::Bytes>> {
    let mut request = Request::get(format!("https://localhost{path}"));
    for n in 0..groups {
        request = request.header("X-Remote-Group", format!("group-{n}"));
    }
    request.body(Empty::new()).unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn both_protocols_take_hundreds_of_header_lines_and_any_certificate() {
    let running = start(Limits::default()).await;
    let mut first = running.http1(false).await;
    assert_eq!(text(first.send_request(get("/", 300)).await.unwrap()).await, "0 false 300");
    assert_eq!(text(first.send_request(get("/", 0)).await.unwrap()).await, "0 false 0");
    let mut second = running.http2(true).await;
    assert_eq!(text(second.send_request(get("/", 300)).await.unwrap()).await, "1 true 300");
}

#[tokio::test]
async fn draining_lets_requests_finish_and_takes_no_more() {
    let running = start(Limits::default()).await;
    let (mut first, mut second) = (running.http1(false).await, running.http2(false).await);
    let slow = tokio::spawn(async move { text(first.send_request(get("/slow", 0)).await.unwrap()).await });
    running.echo.slow_started.notified().await;
    let slow2 = second.send_request(get("/slow", 0));
    let slow2 = tokio::spawn(async move { text(slow2.await.unwrap()).await });
    running.echo.slow_started.notified().await;

    running.drain.start();
    tokio::task::yield_now().await;
    while TcpStream::connect(running.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!running.done.is_finished());
    running.echo.let_go.add_permits(2);
    assert_eq!(slow.await.unwrap(), "0 false 0");
    assert_eq!(slow2.await.unwrap(), "1 false 0");
    running.done.await.unwrap();
}

#[tokio::test]
async fn draining_cuts_what_does_not_finish() {
    let running = start(Limits { drain: Duration::from_millis(50), ..Limits::default() }).await;
    let mut sender = running.http1(false).await;
    let slow = tokio::spawn(async move { sender.send_request(get("/slow", 0)).await });
    running.echo.slow_started.notified().await;
    running.drain.start();
    running.done.await.unwrap();
    assert!(slow.await.unwrap().is_err());
}

#[tokio::test]
async fn silent_clients_are_cut_off_at_the_handshake_and_before_the_headers() {
    let limits = Limits {
        handshake: Duration::from_millis(50),
        headers: Duration::from_millis(50),
        ..Limits::default()
    };
    let running = start(limits).await;
    let mut silent = TcpStream::connect(running.address).await.unwrap();
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap(), 0);
    let mut idle = running.connect("http/1.1", false).await.into_inner();
    let ended = idle.read(&mut [0; 16]).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn connections_above_the_cap_wait_for_a_free_place() {
    let running = start(Limits { connections: 1, ..Limits::default() }).await;
    let mut first = running.http1(false).await;
    text(first.send_request(get("/", 0)).await.unwrap()).await;
    let second = tokio::time::timeout(Duration::from_millis(100), running.http1(false)).await;
    assert!(second.is_err(), "no place while the first is there");
    drop(first);
    let mut third = running.http1(false).await;
    text(third.send_request(get("/", 0)).await.unwrap()).await;
}

#[tokio::test]
async fn silent_and_idle_connections_end_and_busy_ones_do_not() {
    let running = start(Limits { idle: Duration::from_millis(50), ..Limits::default() }).await;
    // A client that says nothing after the handshake.
    let mut silent = running.connect("h2", false).await.into_inner();
    let mut rest = Vec::new();
    let _ = timeout(Duration::from_secs(10), silent.read_to_end(&mut rest)).await.expect("it is ended");

    let stream = running.connect("h2", false).await;
    let (mut sender, connection) = client2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let slow = Request::get("https://localhost/slow").body(Empty::<Bytes>::new()).unwrap();
    let slow = tokio::spawn(sender.send_request(slow));
    running.echo.slow_started.notified().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.echo.let_go.add_permits(1);
    assert_eq!(slow.await.unwrap().unwrap().status(), 200, "a request that goes on is not cut");
    let ended = timeout(Duration::from_secs(10), connection).await.expect("then it is idle and ended");
    assert!(ended.unwrap().is_ok());
}

mod attacks;
