//! The same bytes to kube-apiserver and to the shim: what one of them refuses is not let through by the other, and what
//! is let through means the same.

use std::time::Duration;

use anyhow::Context as _;
use picoshift_tests::ControlPlane;
use picoshift_tests::shim::Shim;
use picoshift_tests::tls::{Endpoint, client_config};
use rustls_pki_types::ServerName;
use serde_json::Value;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long an answer may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(endpoint: &Endpoint) -> anyhow::Result<TlsStream<TcpStream>> {
    let address = endpoint.url.strip_prefix("https://").context("no https")?;
    let mut config = client_config(endpoint, None)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let tcp = TcpStream::connect(address).await?;
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("127.0.0.1")?, tcp).await?)
}

/// The codes of all answers to `bytes`, and the message of the first.
async fn codes(endpoint: &Endpoint, bytes: &str) -> anyhow::Result<(Vec<u16>, String)> {
    let mut stream = connect(endpoint).await?;
    stream.write_all(bytes.as_bytes()).await?;
    stream.flush().await?;
    let mut all = Vec::new();
    // Every request ends with one that asks for the end of the connection.
    let read = timeout(PATIENCE, stream.read_to_end(&mut all)).await;
    read.with_context(|| format!("no end of the answers to {bytes:?}"))?.ok();
    let text = String::from_utf8_lossy(&all).into_owned();
    let lines = text.split("HTTP/1.1 ").skip(1);
    let codes = lines.filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    let body = text.split("\r\n\r\n").nth(1).unwrap_or_default();
    let message = serde_json::from_str::<Value>(body.lines().next().unwrap_or_default())
        .ok()
        .and_then(|value| Some(value["message"].as_str()?.to_owned()))
        .unwrap_or_default();
    Ok((codes, message))
}

const LAST: &str = "GET /version HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn what_kube_apiserver_refuses_is_not_let_through() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let shim = Shim::start(&plane, &[]).await?;
    for head in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: -4\r\n",
        "Content-Length: 4 4\r\n",
        "Content-Length: 4,4\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length:\r\n",
        "Host: other\r\n",
        "X-Bad\r\n",
        "X Bad: a\r\n",
        " X-Bad: a\r\n",
        ": a\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        "X\u{e9}: a\r\n",
    ] {
        let bytes = format!("POST /version HTTP/1.1\r\nHost: h\r\n{head}\r\n0\r\n\r\n{LAST}");
        let (kube, _) = codes(&shim.kube, &bytes).await?;
        let (ours, _) = codes(&shim.endpoint, &bytes).await?;
        let refused = |codes: &[u16]| codes.is_empty() || codes.iter().all(|code| *code >= 400);
        assert!(!refused(&kube) || refused(&ours), "{head:?}: {kube:?} there, {ours:?} here");
        assert!(ours.len() <= kube.len().max(1), "{head:?}: {kube:?} there, {ours:?} here");
    }
    for line in [
        "GET /version HTTP/1.1 x",
        "GET  /version HTTP/1.1",
        "GET /version",
        "GET /version HTTP/2.0",
        "G\u{e9}T /version HTTP/1.1",
        "GET version HTTP/1.1",
        "GET /ver\u{7f}sion HTTP/1.1",
        "/version",
        "",
    ] {
        let bytes = format!("{line}\r\nHost: h\r\nConnection: close\r\n\r\n");
        let (kube, _) = codes(&shim.kube, &bytes).await?;
        let (ours, _) = codes(&shim.endpoint, &bytes).await?;
        let passed = |codes: &[u16]| codes.contains(&200);
        assert!(passed(&kube) || !passed(&ours), "{line:?}: {kube:?} there, {ours:?} here");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_let_through_means_the_same() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let shim = Shim::start(&plane, &[]).await?;
    for target in [
        "/version",
        "//version",
        "/api/v1/namespaces/a%2Fb/pods/c",
        "/api/v1/namespaces/a/pods/..%2f..%2fsecrets",
        "/api/v1/namespaces/a/../b/pods",
        "/api/v1//pods",
        "/api/v1/pods?watch=0&fieldSelector=metadata.name%3Dx&fieldSelector=y",
        "/apis/route.openshift.io/v1/namespaces//routes",
        "/apis/route.openshift.io/v1/namespaces/a/routes/b%2Fc",
        "/apis/route%2eopenshift.io/v1/routes",
        "/apis/route.openshift.io/v1/../../../api/v1/secrets",
        "/api/v1/pods;a=b",
        "/healthz",
        "/readyz/ping",
        "/nothing%20here",
        "http://elsewhere/version",
        "/%zz",
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let (kube, ours) = (codes(&shim.kube, &bytes).await?, codes(&shim.endpoint, &bytes).await?);
        assert_eq!(kube, ours, "{target}");
    }
    for method in ["HEAD", "OPTIONS", "PATCH", "TRACE", "PROPFIND"] {
        let bytes = format!("{method} /version HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let (kube, ours) = (codes(&shim.kube, &bytes).await?, codes(&shim.endpoint, &bytes).await?);
        assert_eq!(kube, ours, "{method}");
    }
    Ok(())
}
