//! What a request is when it arrives, and what an answer is.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::stage::Stage;

#[tokio::test]
async fn targets_arrive_byte_for_byte() {
    let stage = Stage::new().await;
    for target in [
        "/",
        "//api//v1",
        "/api/./../v1",
        "/a%2Fb%2f%7E~",
        "/api?",
        "/api?a=b&a=c;d&%zz=+",
        "/%",
        "/%zz",
        "/a:b@c,d'e(f)",
        "/api/v1/namespaces/x/services/https:y:1/proxy/?q=%20",
    ] {
        let answer = stage.ask(&format!("GET {target} HTTP/1.1\r\nHost: h:1\r\n\r\n")).await;
        assert!(answer.has(&format!("GET {target} HTTP/1.1")), "{target} → {}", answer.body);
        assert!(answer.has("host: h:1"), "{}", answer.body);
    }
    let absolute = "GET http://other:2//x?y HTTP/1.1\r\nHost: h\r\n\r\n";
    let answer = stage.ask(absolute).await;
    assert!(answer.has("GET //x?y HTTP/1.1") && answer.has("host: other:2"), "{}", answer.body);
}

#[tokio::test]
async fn headers_of_one_connection_stay_on_it() {
    let stage = Stage::new().await;
    let answer = stage
        .ask(
            "GET /api HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\nKeep-Alive: 1\r\n\
            TE: trailers, deflate\r\nX-Forwarded-For: 9.9.9.9\r\nX-Twice: 1\r\nX-Twice: 2\r\n\r\n",
        )
        .await;
    assert!(!answer.body.contains("x-own") && !answer.body.contains("keep-alive"), "{}", answer.body);
    for line in ["te: trailers", "x-forwarded-for: 9.9.9.9, 127.0.0.1", "x-twice: 1", "x-twice: 2"] {
        assert!(answer.has(line), "{line} in {}", answer.body);
    }
    let answer = stage.ask("GET /hop HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let lower = answer.head.to_ascii_lowercase();
    assert!(
        lower.contains("x-kept: 1") && !lower.contains("x-own") && !lower.contains("keep-alive"),
        "{lower}"
    );
}

#[tokio::test]
async fn bodies_and_trailers_pass_in_both_framings() {
    let stage = Stage::new().await;
    let mut raw = stage.connect(None).await;
    let answer = raw.ask("POST /api HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").await;
    assert!(answer.has("content-length: 5") && answer.body.ends_with("\r\n\r\nhello"), "{}", answer.body);
    let chunked = "PUT /api HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
        5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 6\r\n\r\n";
    let answer = raw.ask(chunked).await;
    assert!(answer.has("transfer-encoding: chunked"), "{}", answer.body);
    assert!(
        answer.body.contains("hello") && answer.body.to_ascii_lowercase().contains("x-sum: 6"),
        "{}",
        answer.body
    );
    let large = "y".repeat(3 << 20);
    let answer = raw
        .ask(&format!("POST /api HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{large}", large.len()))
        .await;
    assert!(answer.body.ends_with(&large));
    let mut raw = stage.connect(None).await;
    raw.write("GET /trailers HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n").await;
    let all = raw.until("x-sum: 3\r\n\r\n").await;
    assert!(all.contains("3\r\nabc\r\n0\r\nx-sum: 3"), "{all}");
}

#[tokio::test]
async fn a_head_request_has_a_length_and_no_body() {
    let stage = Stage::new().await;
    let mut raw = stage.connect(None).await;
    raw.write("HEAD /api HTTP/1.1\r\nHost: h\r\n\r\nGET /api HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let head = raw.until("\r\n\r\n").await;
    assert!(
        head.starts_with("HTTP/1.1 200") && head.to_ascii_lowercase().contains("content-length: "),
        "{head}"
    );
    assert!(raw.until("\r\n\r\n").await.starts_with("HTTP/1.1 200"), "the next answer begins at once");
}

#[tokio::test]
async fn who_waits_for_the_word_sends_no_body_in_vain() {
    let stage = Stage::new().await;
    let head = |path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    };
    let mut raw = stage.connect(None).await;
    raw.write(&head("/api")).await;
    assert_eq!(raw.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    let answer = raw.ask("hello").await;
    assert!(answer.body.ends_with("\r\n\r\nhello"), "{}", answer.body);
    let mut raw = stage.connect(None).await;
    raw.write(&head("/too-large")).await;
    assert!(raw.until("\r\n\r\n").await.starts_with("HTTP/1.1 413"), "and no 100 before it");
}

#[tokio::test]
async fn http2_becomes_http1() {
    let stage = Stage::new().await;
    let stream = TokioIo::new(stage.tls(None, b"h2").await);
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("https://named:1//x?y=z")
        .header("x-remote-user", "root")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(Full::new(Bytes::from("hello")))
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    for line in ["POST //x?y=z HTTP/1.1", "host: named:1", "cookie: a=1; b=2", "content-length: 5"] {
        assert!(text.lines().any(|own| own == line), "{line} in {text}");
    }
    assert!(text.ends_with("hello") && !text.contains("root"), "{text}");
}

#[tokio::test]
async fn what_may_be_repeated_is_repeated_once() {
    let stage = Stage::new().await;
    assert_eq!(stage.ask("GET /broken HTTP/1.1\r\nHost: h\r\n\r\n").await.code, 200);
    let stage = Stage::new().await;
    let answer = stage.ask("DELETE /broken HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(answer.code, 503, "{answer:?}");
    assert!(answer.body.contains("error trying to reach service"), "{}", answer.body);
    assert!(!answer.head.to_ascii_lowercase().contains("retry-after"), "it may have been done");
    assert_eq!(stage.kube.seen.requests.load(Ordering::SeqCst), 1);
    let answer = stage.ask("GET /unasked HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(answer.code, 503, "a tunnel that nobody asked for");
}

#[tokio::test]
async fn the_documents_are_served_to_everybody() {
    let stage = Stage::new().await;
    let path = "GET /.well-known/oauth-authorization-server HTTP/1.1\r\nHost: h\r\n\r\n";
    assert!(stage.ask(path).await.has("fronted=false"), "kube-apiserver says 404");
    stage.front.documents.set_oauth_metadata(Some("{\"issuer\":\"i\"}".to_owned()));
    assert_eq!(stage.ask(path).await.body, "{\"issuer\":\"i\"}");
}
