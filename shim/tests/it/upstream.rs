//! A server behind the shim that reads and writes bytes itself. It answers what it has read, head and body, so that a test
//! sees what was forwarded; some paths do something else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use picoshift_machinery::tls::provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::pki::{Authority, Pair};

/// A running server.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
}

/// What it has seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) requests: AtomicUsize,
    pub(crate) reviews: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    /// A stream's client went away.
    pub(crate) left: Notify,
    /// Lets an answer that has begun go on.
    pub(crate) other_half: Notify,
    /// A path that ends connections does so once.
    broken: AtomicUsize,
}

/// Starts one whose certificate is `own` and that believes certificates of `clients`.
pub(crate) async fn start(own: &Pair, clients: &Authority) -> Upstream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.pem.as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .allow_unauthenticated()
        .build()
        .unwrap();
    let (chain, key) = own.der();
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Seen::default()));
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    seen.connections.fetch_add(1, Ordering::SeqCst);
                    let _ = serve(stream, &seen).await;
                }
            });
        }
    });
    Upstream { address, seen }
}

async fn serve(mut stream: TlsStream<TcpStream>, seen: &Seen) -> std::io::Result<()> {
    let fronted = stream.get_ref().1.peer_certificates().is_some();
    let mut buffer = Vec::new();
    while let Some(head) = head(&mut stream, &mut buffer).await? {
        seen.requests.fetch_add(1, Ordering::SeqCst);
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match target.split('?').next().unwrap_or_default() {
            "/stream/watch" => {
                let first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n";
                stream.write_all(first).await?;
                while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
                seen.left.notify_one();
                return Ok(());
            }
            "/half" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst ").await?;
                stream.flush().await?;
                seen.other_half.notified().await;
                stream.write_all(b"second").await?;
            }
            "/hang" => {
                while stream.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {}
                seen.left.notify_one();
                return Ok(());
            }
            "/tunnel" => return tunnel(stream, &head).await,
            "/unasked" => {
                stream
                    .write_all(
                        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
                    )
                    .await?;
                return Ok(());
            }
            "/broken" if seen.broken.fetch_add(1, Ordering::SeqCst) == 0 => return Ok(()),
            "/truncated" => {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n")
                    .await?;
                return Ok(());
            }
            "/trailers" => {
                let answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3\r\nabc\r\n0\r\nX-Sum: 3\r\n\r\n";
                stream.write_all(answer.as_bytes()).await?;
            }
            "/hop" => {
                let answer = "HTTP/1.1 200 OK\r\nConnection: X-Own\r\nX-Own: 1\r\nKeep-Alive: x\r\nX-Kept: 1\r\n\
                    Content-Length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).await?;
            }
            "/too-large" => {
                let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).await?;
                return Ok(());
            }
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                seen.reviews.fetch_add(1, Ordering::SeqCst);
                body(&mut stream, &mut buffer, &head).await?;
                stream.write_all(review(&head, fronted).as_bytes()).await?;
            }
            _ => {
                if head.to_ascii_lowercase().contains("expect: 100-continue") {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                let body = body(&mut stream, &mut buffer, &head).await?;
                let text = format!("fronted={fronted}\n{head}{}", String::from_utf8_lossy(&body));
                let length = if head.starts_with("HEAD ") { String::new() } else { text.clone() };
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Up: 1\r\n\r\n{length}", text.len());
                stream.write_all(answer.as_bytes()).await?;
            }
        }
        stream.flush().await?;
    }
    Ok(())
}

/// Who the caller is: the token's rest, whom it acts for, or what the front proxy says.
fn review(head: &str, fronted: bool) -> String {
    let value = |name: &str| {
        head.lines().find_map(|line| line.split_once(": ").filter(|(own, _)| own.eq_ignore_ascii_case(name)))
    };
    let token = value("authorization").map(|(_, value)| value.trim_start_matches("Bearer "));
    let claimed = value("x-remote-user").filter(|_| fronted).map(|(_, value)| value);
    let (code, body) = match (claimed.or(token), value("impersonate-user")) {
        (None | Some("bad"), _) => (401, r#"{"kind":"Status","code":401}"#.to_owned()),
        (Some("broken"), _) => (500, r#"{"kind":"Status","code":500}"#.to_owned()),
        (Some("unknown"), _) => (503, "{}".to_owned()),
        (Some("mute"), _) => {
            let status = r#"{"kind":"Status","code":403,"details":{"kind":"selfsubjectreviews"}}"#;
            (403, status.to_owned())
        }
        (Some("modest"), Some(_)) => {
            (403, r#"{"kind":"Status","code":403,"details":{"kind":"users"}}"#.to_owned())
        }
        (Some(_), Some((_, whom))) => (201, user(whom)),
        (Some(name), None) => (201, user(name)),
    };
    format!(
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn user(name: &str) -> String {
    format!(
        r#"{{"kind":"SelfSubjectReview","status":{{"userInfo":{{"username":"{name}","uid":"u-{name}","groups":["system:authenticated","g"],"extra":{{"scopes.authorization.openshift.io":["user:full"]}}}}}}}}"#
    )
}

/// Agrees, echoes until the client has ended its side, and then still says something.
async fn tunnel(mut stream: TlsStream<TcpStream>, head: &str) -> std::io::Result<()> {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
        X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
    stream.write_all(answer.as_bytes()).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut piece = [0; 1024];
    loop {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            stream.write_all(b"last words").await?;
            return stream.shutdown().await;
        }
        stream.write_all(&piece[..read]).await?;
        stream.flush().await?;
    }
}

async fn head(stream: &mut TlsStream<TcpStream>, buffer: &mut Vec<u8>) -> std::io::Result<Option<String>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = buffer.split_off(end + 4);
            let head = std::mem::replace(buffer, rest);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The body as it is on the wire.
async fn body(
    stream: &mut TlsStream<TcpStream>,
    buffer: &mut Vec<u8>,
    head: &str,
) -> std::io::Result<Vec<u8>> {
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let chunked = lower.contains("transfer-encoding: chunked");
    loop {
        let end = match length {
            Some(length) => (buffer.len() >= length).then_some(length),
            None if chunked => {
                let last = buffer.windows(5).position(|five| five == b"0\r\n\r\n").map(|at| at + 5);
                last.or_else(|| buffer.ends_with(b"\r\n\r\n").then_some(buffer.len()))
            }
            None => Some(0),
        };
        if let Some(end) = end {
            let rest = buffer.split_off(end);
            return Ok(std::mem::replace(buffer, rest));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(std::mem::take(buffer));
        }
    }
}
