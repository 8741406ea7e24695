//! Requests that a sloppy proxy would pass on as something else.

use std::sync::atomic::Ordering;

use picoshift_machinery::listener::Limits;

use crate::stage::Stage;

#[tokio::test]
async fn requests_without_a_single_meaning_are_refused_and_their_connection_ends() {
    let stage = Stage::new().await;
    let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";
    let length = hidden.len();
    for head in [
        "Content-Length: 4\r\nContent-Length: 4\r\n".to_owned(),
        format!("Content-Length: 0\r\nContent-Length: {length}\r\n"),
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Transfer-Encoding:\r\n chunked\r\n".to_owned(),
        "Content-Length: 4, 4\r\n".to_owned(),
        "Content-Length: +4\r\n".to_owned(),
        "Content-Length: 0x4\r\n".to_owned(),
        "X-Folded: a\r\n b\r\n".to_owned(),
        "Host: other\r\n".to_owned(),
        "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n".to_owned(),
        "X: a\rb\r\n".to_owned(),
        "X\0: a\r\n".to_owned(),
        " X: a\r\n".to_owned(),
        "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n".to_owned(),
    ] {
        let mut raw = stage.connect(None).await;
        raw.write(&format!("POST /api HTTP/1.1\r\nHost: h\r\n{head}\r\n0\r\n\r\n{hidden}")).await;
        let answer = raw.answer().await;
        assert_eq!(answer.code, 400, "{head:?} {answer:?}");
        let rest = raw.until("HTTP/1.1 2").await;
        assert!(!rest.contains("HTTP/1.1 2"), "{head:?} was followed by {rest}");
    }
    assert_eq!(stage.kube.seen.requests.load(Ordering::SeqCst), 0, "nothing was passed on");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_ends_the_request() {
    let stage = Stage::new().await;
    for body in ["zz\r\nabc\r\n", "-1\r\n", "5\r\nabcdefgh\r\n0\r\n\r\n", "ffffffffffffffffff\r\n"] {
        let mut raw = stage.connect(None).await;
        let request = format!("POST /api HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        raw.write(&request).await;
        assert_eq!(raw.answer().await.code, 400, "{body:?}");
    }
}

#[tokio::test]
async fn strange_targets_and_methods_are_refused() {
    let stage = Stage::new().await;
    for (line, code) in [
        ("CONNECT h:443 HTTP/1.1", 405),
        ("OPTIONS * HTTP/1.1", 400),
        ("GET h:443 HTTP/1.1", 400),
        ("GET /a b HTTP/1.1", 400),
        ("GET  /a HTTP/1.1", 400),
        ("GET /a HTTP/3.0", 400),
    ] {
        let answer = stage.ask(&format!("{line}\r\nHost: h\r\n\r\n")).await;
        assert_eq!(answer.code, code, "{line} {answer:?}");
    }
    assert_eq!(stage.ask("GET /api HTTP/1.1\r\n\r\n").await.code, 400, "no host");
    assert_eq!(stage.ask("GET /api HTTP/1.1\r\nHost: a/b\r\n\r\n").await.code, 400);
    assert_eq!(stage.kube.seen.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused_and_slow_ones_given_up() {
    let limits = Limits { headers: std::time::Duration::from_millis(300), ..Limits::default() };
    let stage = Stage::with(limits, true).await;
    let large = "x".repeat(300 * 1024);
    let answer = stage.ask(&format!("GET /api HTTP/1.1\r\nHost: h\r\nX: {large}\r\n\r\n")).await;
    assert_eq!(answer.code, 431, "{answer:?}");
    let many = "X: y\r\n".repeat(1100);
    assert_eq!(stage.ask(&format!("GET /api HTTP/1.1\r\nHost: h\r\n{many}\r\n")).await.code, 431);
    let groups = "Impersonate-Group: g\r\n".repeat(500);
    assert_eq!(stage.ask(&format!("GET /api HTTP/1.1\r\nHost: h\r\n{groups}\r\n")).await.code, 200);
    let mut slow = stage.connect(None).await;
    slow.write("GET /api HTTP/1.1\r\nHost: h\r\nX-Slow").await;
    assert!(slow.has_ended().await);
}
