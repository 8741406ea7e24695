//! Streams: they flow, they end when either side does, and nothing waits for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::stage::{PATIENCE, Stage};

const UPGRADE: &str = "POST /tunnel?stdin=true HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
    X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\
    Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dA, v4.channel.k8s.io\r\n\
    Content-Length: 0\r\n\r\n";

#[tokio::test]
async fn a_tunnel_passes_bytes_both_ways_and_each_end_alone() {
    let stage = Stage::new().await;
    let mut raw = stage.connect(None).await;
    // What follows the request at once is the tunnel's.
    raw.write(&format!("{UPGRADE}early ")).await;
    let head = raw.until("\r\n\r\n").await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    for line in ["connection: upgrade", "upgrade: spdy/3.1", "x-stream-protocol-version: v4.channel.k8s.io"] {
        assert!(head.contains(line), "{line} in {head}");
    }
    let forwarded = raw.until("\r\n\r\n").await;
    for line in [
        "connection: Upgrade",
        "upgrade: SPDY/3.1",
        "x-stream-protocol-version: v4.channel.k8s.io",
        "x-stream-protocol-version: v3.channel.k8s.io",
        "sec-websocket-protocol: base64url.bearer.authorization.k8s.io.dA, v4.channel.k8s.io",
    ] {
        assert!(forwarded.lines().any(|own| own.eq_ignore_ascii_case(line)), "{line} in {forwarded}");
    }
    raw.write("hello").await;
    assert_eq!(raw.until("hello").await, "early hello");
    raw.stream.shutdown().await.unwrap();
    assert_eq!(raw.until("last words").await, "last words", "our end is not the server's");
    assert!(raw.has_ended().await);
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_answer() {
    let stage = Stage::new().await;
    let mut raw = stage.connect(None).await;
    let answer = raw.ask(&UPGRADE.replace("/tunnel", "/api")).await;
    assert_eq!(answer.code, 200);
    let next = raw.ask("GET /next HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(next.has("GET /next HTTP/1.1"), "the connection is still one of HTTP");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_behind_us() {
    let stage = Stage::new().await;
    for (number, path) in ["/stream/watch?watch=1", "/hang"].into_iter().enumerate() {
        let mut raw = stage.connect(None).await;
        raw.write(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        while stage.kube.seen.requests.load(Ordering::SeqCst) <= number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(raw);
        timeout(PATIENCE, stage.kube.seen.left.notified()).await.expect("the server sees it");
    }
}

#[tokio::test]
async fn hundreds_of_watches_on_one_connection_hold_up_nothing() {
    let stage = Stage::new().await;
    let stream = TokioIo::new(stage.tls(None, b"h2").await);
    let (client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let get = |path: &str| Request::get(format!("https://h{path}")).body(Empty::<Bytes>::new()).unwrap();
    let mut watches = Vec::new();
    for _ in 0..250 {
        let answer = client.clone().send_request(get("/stream/watch?watch=true"));
        let mut body = timeout(PATIENCE, answer).await.expect("it begins").unwrap().into_body();
        let first = timeout(PATIENCE, body.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "event");
        watches.push(body);
    }
    let answer = timeout(PATIENCE, client.clone().send_request(get("/api"))).await.expect("in between");
    assert_eq!(answer.unwrap().status(), 200);
    assert!(stage.kube.seen.connections.load(Ordering::SeqCst) > 250, "each has a connection of its own");
    drop(watches);
    // What the client resets is reset behind us.
    timeout(PATIENCE, stage.kube.seen.left.notified()).await.expect("the server sees it");
}

#[tokio::test]
async fn a_truncated_answer_does_not_look_whole() {
    let stage = Stage::new().await;
    let mut raw = stage.connect(None).await;
    raw.write("GET /truncated HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let all = raw.until("0\r\n\r\n").await;
    assert!(all.contains("event\r\n") && !all.ends_with("0\r\n\r\n"), "{all}");
}

#[tokio::test]
async fn a_drain_ends_streams_and_lets_the_rest_finish() {
    let stage = Stage::new().await;
    let mut watch = stage.connect(None).await;
    watch.write("GET /stream/watch?watch=1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    watch.until("event\r\n").await;
    let mut post = stage.connect(None).await;
    post.write("POST /api HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel").await;
    while stage.kube.seen.requests.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let front = Arc::clone(&stage.front);
    let drain = stage.drain.clone();
    tokio::spawn(async move { front.end_streams(drain).await });
    stage.drain.start();
    assert!(watch.has_ended().await);
    assert!(post.ask("lo").await.body.ends_with("hello"));
}
