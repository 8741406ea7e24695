//! Streams pass through the shim and kube-apiserver to a kubelet, and back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::BodyExt as _;
use picoshift_tests::ControlPlane;
use picoshift_tests::identity::Identity;
use picoshift_tests::kubelet::Kubelet;
use picoshift_tests::login;
use picoshift_tests::oauth::object_name;
use picoshift_tests::objects::unique;
use picoshift_tests::shim::Shim;
use picoshift_tests::tls::{Protocol, client_config};
use rustls_pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::new_namespace;

/// How long anything may take before its test fails.
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(shim: &Shim, identity: Option<&Identity>) -> anyhow::Result<TlsStream<TcpStream>> {
    let address = shim.endpoint.url.strip_prefix("https://").context("no https")?;
    let config = client_config(&shim.endpoint, identity)?;
    let tcp = TcpStream::connect(address).await?;
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("127.0.0.1")?, tcp).await?)
}

/// What comes up to `end`, that included.
async fn until(stream: &mut TlsStream<TcpStream>, end: &str) -> anyhow::Result<String> {
    let mut all = Vec::new();
    while !all.ends_with(end.as_bytes()) {
        let read = timeout(PATIENCE, stream.read_u8()).await;
        let read = read.with_context(|| format!("no {end:?} in {:?}", String::from_utf8_lossy(&all)))?;
        all.push(read.with_context(|| format!("ended: {:?}", String::from_utf8_lossy(&all)))?);
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// The headers of a WebSocket that carries a token.
fn websocket(token: &str) -> String {
    let token = URL_SAFE_NO_PAD.encode(token);
    format!(
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.{token}"
    )
}

#[tokio::test]
async fn exec_attach_port_forward_and_logs_reach_the_kubelet() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let kubelet = Kubelet::start(&plane, &unique("node")).await?;
    let namespace = new_namespace(&admin, "streams").await?;
    let pod = kubelet.pod(&admin, &namespace).await?;
    let master = plane.sign("master", Some("system:masters"))?;

    // SPDY with a certificate, and a WebSocket with a token among its protocols.
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.api.post(&format!("{accounts}/token"), &request).await?.expect_code(201)?;
    let token = answer["status"]["token"].as_str().unwrap_or_default();
    let binding = json!({"metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]});
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&bindings, &binding).await?.expect_code(201)?;
    let spdy = "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io".to_owned();
    let websocket = websocket(token);
    for (method, path, how, identity) in [
        ("POST", "exec?command=cat&stdin=true&stdout=true", &spdy, Some(&master)),
        ("POST", "attach?stdin=true&stdout=true", &spdy, Some(&master)),
        ("POST", "portforward?ports=80", &spdy, Some(&master)),
        ("GET", "exec?command=cat&stdin=true&stdout=true", &websocket, None),
    ] {
        let mut stream = connect(&shim, identity).await?;
        let head = format!(
            "{method} {pod}/{path} HTTP/1.1\r\nHost: h\r\nX-Remote-User: root\r\nConnection: Upgrade\r\n{how}\r\n\
             Content-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let answer = until(&mut stream, "\r\n\r\n").await?;
        ensure!(answer.starts_with("HTTP/1.1 101"), "{path}: {answer}");
        ensure!(!answer.contains(&URL_SAFE_NO_PAD.encode(token)), "the token comes back: {answer}");
        let asked = until(&mut stream, "\n").await?;
        ensure!(asked.contains(&format!("/{namespace}/streams")), "{asked}");
        stream.write_all(b"to and fro|").await?;
        assert_eq!(until(&mut stream, "|").await?, "to and fro|");
        stream.shutdown().await?;
        // kube-apiserver ends a tunnel when one side does; the last words may be lost, the end may not.
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.context("the tunnel stays")?;
        drop(end);
    }

    let http = shim.client(Some(&master), Protocol::Http2)?;
    let follow = format!("{pod}/log?follow=true");
    let request = http.request(http::Method::GET, &follow, None, bytes::Bytes::new())?;
    let mut body = http.stream(request).await?.into_body();
    let mut seen = String::new();
    while !seen.contains("line 3\n") {
        let frame = timeout(PATIENCE, body.frame()).await.context("no line")?.context("the log ended")??;
        seen.push_str(&String::from_utf8_lossy(frame.data_ref().map_or(&[][..], |data| data)));
    }
    admin.api.delete(&format!("/api/v1/nodes/{}", kubelet.node), &json!({})).await?;
    Ok(())
}

#[tokio::test]
async fn a_hundred_watches_and_more_on_one_connection_starve_nobody() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let namespace = new_namespace(&admin, "watches").await?;
    let master = plane.sign("master", Some("system:masters"))?;
    let http = shim.client(Some(&master), Protocol::Http2)?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut watches = Vec::new();
    for _ in 0..120 {
        watches.push(http.watch(&format!("{path}?watch=true")).await?);
    }
    let map = json!({"metadata": {"name": "news"}});
    http.post(&path, &map).await?.expect_code(201)?;
    for watch in &mut watches {
        watch.until(30, |event| event.kind == "ADDED" && event.name() == "news").await?;
    }
    // They end with their client: no request stays behind us.
    drop((watches, http));
    picoshift_tests::eventually::eventually("the end of the watches", 30, || async {
        let text = shim.status.get("/metrics").await?.text();
        let running = picoshift_tests::metrics::sum(&text, "picoshift_shim_upstream_requests_running", &[]);
        Ok(if running < 0.5 { Ok(()) } else { Err(format!("{running} run")) })
    })
    .await
}

#[tokio::test]
async fn a_websocket_lives_as_long_as_its_oauth_token() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let kubelet = Kubelet::start(&plane, &unique("node")).await?;
    let namespace = new_namespace(&admin, "websocket").await?;
    let pod = kubelet.pod(&admin, &namespace).await?;
    let binding = json!({"metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "user1"}]});
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&bindings, &binding).await?.expect_code(201)?;
    let token = login::token(&plane, "user1", "user1").await?;
    let head = format!(
        "GET {pod}/exec?command=cat&stdin=true&stdout=true HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n{}\r\n\r\n",
        websocket(&token)
    );
    let mut stream = connect(&shim, None).await?;
    stream.write_all(head.as_bytes()).await?;
    let answer = until(&mut stream, "\r\n\r\n").await?;
    ensure!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    until(&mut stream, "\n").await?;
    stream.write_all(b"to and fro|").await?;
    assert_eq!(until(&mut stream, "|").await?, "to and fro|");
    let object = format!("/apis/oauth.openshift.io/v1/oauthaccesstokens/{}", object_name(&token));
    admin.api.delete(&object, &json!({})).await?.expect_code(200)?;
    let end = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.context("the tunnel stays")?;
    drop(end);
    let mut again = connect(&shim, None).await?;
    again.write_all(head.as_bytes()).await?;
    let refused = until(&mut again, "\r\n\r\n").await?;
    ensure!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    admin.api.delete(&format!("/api/v1/nodes/{}", kubelet.node), &json!({})).await?;
    Ok(())
}
