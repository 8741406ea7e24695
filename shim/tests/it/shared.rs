//! Watches that share connections, with a server behind them that speaks HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use picoshift_machinery::tls::provider;
use picoshift_shim::metrics::Metrics;
use picoshift_shim::upstream::{Answer, Outgoing, Pool, SendError, Server};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::pki::Authority;
use crate::stage::PATIENCE;

const EVENT: &[u8] = &[b'e'; 200];
const EVENTS_OF_A_FLOOD: usize = 2_000;

/// A server behind the shim, and the pool that reaches it.
struct Behind {
    pool: Arc<Pool>,
    authority: Authority,
    address: SocketAddr,
    seen: Arc<Seen>,
    running: AbortHandle,
    _folder: tempfile::TempDir,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: parking_lot::Mutex<Vec<(String, HeaderMap)>>,
}

impl Behind {
    async fn new() -> Self {
        let (authority, folder) = (Authority::new("servers"), tempfile::tempdir().unwrap());
        let (seen, ca_file) = (Arc::new(Seen::default()), folder.path().join("ca.crt"));
        std::fs::write(&ca_file, &authority.pem).unwrap();
        let (address, running) = serve("127.0.0.1:0".parse().unwrap(), &authority, &seen).await;
        let server =
            Server { authority: address.to_string().parse().unwrap(), name: "127.0.0.1".to_owned(), ca_file };
        let pool = Arc::new(Pool::new(server, None, Metrics::new().pool("plain")).unwrap());
        Self { pool, authority, address, seen, running, _folder: folder }
    }

    async fn watch(&self, target: &str) -> Result<Answer, SendError> {
        timeout(PATIENCE, self.pool.send(&mut outgoing(target))).await.expect("it begins")
    }

    fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

fn outgoing(target: &str) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("api.example:6443"));
    headers.insert("authorization", HeaderValue::from_static("Bearer t"));
    Outgoing {
        method: Method::GET,
        target: target.parse().unwrap(),
        headers,
        body: None,
        ready: None,
        expects_continue: false,
        patience: None,
        shares: true,
    }
}

async fn serve(address: SocketAddr, authority: &Authority, seen: &Arc<Seen>) -> (SocketAddr, AbortHandle) {
    let (chain, key) = authority.sign("server", &[]).der();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(address).await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::clone(seen));
    let running = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                seen.connections.fetch_add(1, Ordering::SeqCst);
                seen.open.fetch_add(1, Ordering::SeqCst);
                let service = service_fn(|request| answer(request, Arc::clone(&seen)));
                let serving = auto::Builder::new(TokioExecutor::new());
                let _ = serving.serve_connection(TokioIo::new(stream), service).await;
                seen.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (address, running.abort_handle())
}

/// `/flood` sends more than anybody holds, anything else one event, and then nothing for as long as the client likes.
async fn answer(
    request: Request<Incoming>,
    seen: Arc<Seen>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let events = if request.uri().path() == "/flood" { EVENTS_OF_A_FLOOD } else { 1 };
    seen.requests.lock().push((request.uri().to_string(), request.headers().clone()));
    let (sender, mut events_to_come) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    tokio::spawn(async move {
        for _ in 0..events {
            if sender.send(Ok(Frame::data(Bytes::from_static(EVENT)))).await.is_err() {
                return;
            }
        }
        sender.closed().await;
    });
    Ok(Response::new(StreamBody::new(futures::stream::poll_fn(move |cx| events_to_come.poll_recv(cx)))))
}

async fn event(answer: &mut Answer) -> Option<Bytes> {
    let frame = timeout(PATIENCE, answer.response.body_mut().frame()).await.expect("it comes")?;
    frame.ok()?.into_data().ok()
}

async fn eventually(what: impl Fn() -> bool) {
    let seen = async {
        while !what() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, seen).await.expect("it becomes so");
}

#[tokio::test]
async fn sixty_four_watches_share_a_connection() {
    let behind = Behind::new().await;
    let begun = (0..200).map(|number| {
        let target = format!("/api//v1/pods?watch=1&n={number}");
        let pool = Arc::clone(&behind.pool);
        async move { pool.send(&mut outgoing(&target)).await.unwrap() }
    });
    let mut watches = timeout(PATIENCE, futures::future::join_all(begun)).await.expect("all begin");
    for watch in &mut watches {
        assert_eq!(event(watch).await.unwrap(), EVENT);
    }
    assert_eq!(behind.connections(), 4);
    let (uri, headers) = behind.seen.requests.lock()[0].clone();
    assert!(uri.starts_with("https://api.example:6443/api//v1/pods?watch=1&n="), "{uri}");
    assert_eq!(headers.get("authorization").unwrap(), "Bearer t");
    assert!(!headers.contains_key("host"), "it is the authority");
    // Whatever is no watch has a connection of its own.
    let mut other = outgoing("/api");
    other.shares = false;
    let other = behind.pool.send(&mut other).await.unwrap();
    assert!(other.seat.is_none() && behind.connections() == 5);
    // Those that end make room, and a connection without any is closed, the last one excepted.
    drop(watches);
    eventually(|| behind.seen.open.load(Ordering::SeqCst) == 2).await;
    let again = behind.watch("/api?watch=1").await.unwrap();
    assert!(again.seat.is_some() && behind.connections() == 5);
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_nobody() {
    let behind = Behind::new().await;
    let mut unread = Vec::new();
    for _ in 0..63 {
        unread.push(behind.watch("/flood?watch=1").await.unwrap());
    }
    // Until all that may wait for them does.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let mut last = behind.watch("/flood?watch=1").await.unwrap();
    let mut read = 0;
    while read < EVENTS_OF_A_FLOOD * EVENT.len() {
        read += event(&mut last).await.unwrap().len();
    }
    assert_eq!(behind.connections(), 1);
}

#[tokio::test]
async fn a_server_that_was_away_is_found_again() {
    let behind = Behind::new().await;
    let mut watch = behind.watch("/api?watch=1").await.unwrap();
    event(&mut watch).await.unwrap();
    behind.running.abort();
    assert!(event(&mut watch).await.is_none(), "its streams end");
    let away = (0..100).map(|_| behind.watch("/api?watch=1"));
    for answer in futures::future::join_all(away).await {
        assert!(matches!(answer, Err(SendError::Unreachable(_))), "{answer:?}");
    }
    let (_, running) = serve(behind.address, &behind.authority, &behind.seen).await;
    let mut watch = behind.watch("/api?watch=1").await.unwrap();
    assert_eq!(event(&mut watch).await.unwrap(), EVENT);
    running.abort();
}

#[tokio::test]
async fn a_host_that_is_no_authority_goes_over_a_connection_of_its_own() {
    let behind = Behind::new().await;
    let mut odd = outgoing("/api?watch=1");
    odd.headers.insert("host", HeaderValue::from_static("a b"));
    let answer = behind.pool.send(&mut odd).await.unwrap();
    assert!(answer.seat.is_none());
}
