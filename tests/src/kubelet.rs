//! A kubelet that runs nothing: kube-apiserver asks it for logs, exec, attach and port-forward, and it answers with what it
//! was asked, and with what comes in.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::{Actor, ControlPlane};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The kubelet and its Node; the server ends with this value.
#[derive(Debug)]
pub struct Kubelet {
    /// Name of the Node.
    pub node: String,
    task: JoinHandle<()>,
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelet {
    /// Starts one and registers its Node.
    ///
    /// # Errors
    /// When it cannot be started or registered.
    pub async fn start(plane: &ControlPlane, node: &str) -> anyhow::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(tls(plane)?));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream));
            }
        });
        let kubelet = Self { node: node.to_owned(), task };
        let admin = plane.admin()?;
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}});
        admin.api.post("/api/v1/nodes", &object).await?.expect_code(201)?;
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }});
        let path = format!("/api/v1/nodes/{node}/status");
        admin.api.patch(&path, crate::http::patch::MERGE, &status).await?.expect_code(200)?;
        Ok(kubelet)
    }

    /// A Pod that is bound to the Node; its path.
    ///
    /// # Errors
    /// When it cannot be created.
    pub async fn pod(&self, admin: &Actor, namespace: &str) -> anyhow::Result<String> {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        crate::eventually::eventually("the account", 30, || async {
            let answer = admin.api.get(&accounts).await?;
            Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
        })
        .await?;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "streams"},
            "spec": {"nodeName": self.node, "automountServiceAccountToken": false,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "none.invalid/none"}]},
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        admin.api.post(&path, &pod).await?.expect_code(201)?;
        Ok(format!("{path}/streams"))
    }
}

fn tls(plane: &ControlPlane) -> anyhow::Result<ServerConfig> {
    let pki = plane.home.state().join("pki");
    let key = KeyPair::from_pem(&std::fs::read_to_string(pki.join("cluster-ca.key"))?)?;
    let issuer = Issuer::from_ca_cert_pem(&std::fs::read_to_string(pki.join("cluster-ca.crt"))?, key)?;
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress("127.0.0.1".parse()?)];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let chain: Vec<CertificateDer<'static>> = vec![params.signed_by(&key, &issuer)?.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| anyhow::anyhow!("{why}"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    builder.with_no_client_auth().with_single_cert(chain, key).context("certificate of the kubelet")
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let answer = service_fn(|request| async move { Ok::<_, Infallible>(answer(request)) });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).with_upgrades().await;
}

fn answer(mut request: Request<Incoming>) -> Response<Body> {
    let line = format!("{} {}\n", request.method(), request.uri());
    if request.headers().contains_key(UPGRADE) {
        return tunnel(&mut request, line);
    }
    // Logs that never end: a line at once, and one each 50 ms.
    let lines = futures::stream::unfold(0_u64, move |number| {
        let first = line.clone();
        async move {
            if number > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Some((Bytes::from(format!("line {number}\n")), number + 1));
            }
            Some((Bytes::from(first), 1))
        }
    });
    Response::new(StreamBody::new(lines.map(|line| Ok(Frame::data(line)))).boxed_unsync())
}

/// Says what was asked for, echoes until the other side has ended, and then says a last word.
fn tunnel(request: &mut Request<Incoming>, line: String) -> Response<Body> {
    let client = hyper::upgrade::on(&mut *request);
    tokio::spawn(async move {
        let Ok(client) = client.await else { return };
        let mut client = TokioIo::new(client);
        let mut piece = [0; 4096];
        if client.write_all(line.as_bytes()).await.is_err() {
            return;
        }
        while let Ok(read @ 1..) = client.read(&mut piece).await {
            if client.write_all(&piece[..read]).await.is_err() || client.flush().await.is_err() {
                return;
            }
        }
        let _ = client.write_all(b"last words").await;
        let _ = client.shutdown().await;
    });
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = request.headers().get(UPGRADE) {
        headers.insert(UPGRADE, protocol.clone());
    }
    headers.insert("x-stream-protocol-version", HeaderValue::from_static("v4.channel.k8s.io"));
    if let Some(asked) = request.headers().get("sec-websocket-protocol") {
        headers.insert("x-asked-for", asked.clone());
    }
    response
}
