//! Sends what a step says, as whoever it says, to the kube-apiserver of a kubeconfig.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube::config::Kubeconfig;
use picoshift_tests::control_plane::cluster_and_admin;
use picoshift_tests::http::{Answer, Http};
use picoshift_tests::tls::Protocol;
use picoshift_tests::watch::Watch;
use tokio::time::Instant;

use crate::planted::{Fault, Feed, Planted};

/// How long a step is asked again that has to succeed.
const PATIENCE: Duration = Duration::from_secs(45);
const PAUSE: Duration = Duration::from_millis(200);

/// A request with every word filled in.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) user: String,
    pub(crate) groups: Vec<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// What a call came to.
pub(crate) enum Outcome {
    /// A whole answer.
    Answer(Answer),
    /// An open watch, and the head of its answer.
    Watch(Feed, Answer),
}

/// A kube-apiserver, called as its administrator, as anybody she impersonates, or as nobody.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    admin: Http,
    nobody: Http,
    /// The fault that its answers get.
    planted: Option<Planted>,
}

impl Caller {
    /// A caller of the server that `kubeconfig` names.
    ///
    /// # Errors
    /// When the file cannot be read or names no server.
    pub(crate) fn new(kubeconfig: &Path) -> anyhow::Result<Self> {
        let config = Kubeconfig::read_from(kubeconfig).context("kubeconfig")?;
        let (server, admin) = cluster_and_admin(&config)?;
        Ok(Self {
            admin: Http::new(&server, Some(&admin), Protocol::Any)?,
            nobody: Http::new(&server, None, Protocol::Any)?,
            planted: None,
        })
    }

    /// The same, but what it is answered has a fault.
    pub(crate) fn planting(&self, fault: Fault) -> Self {
        Self { planted: Some(Planted::new(fault)), ..self.clone() }
    }

    /// The same without a fault.
    pub(crate) fn sound(&self) -> Self {
        Self { planted: None, ..self.clone() }
    }

    /// The administrator's client.
    pub(crate) fn admin(&self) -> &Http {
        &self.admin
    }

    /// Sends a call.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) async fn send(&self, call: &Call, watch: bool) -> anyhow::Result<Outcome> {
        let http = if call.user == "nobody" { &self.nobody } else { &self.admin };
        let request = match &self.planted {
            None => request(http, call)?,
            Some(planted) => request(http, &planted.mistake(call.clone()))?,
        };
        let response = http.stream(request).await?;
        let (head, body) = response.into_parts();
        let mut answer = Answer { status: head.status, headers: head.headers, body: Bytes::new() };
        if watch && answer.status.is_success() {
            return Ok(Outcome::Watch(Feed::new(Watch::new(body), self.planted.as_ref()), answer));
        }
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.context("body takes too long")??;
        answer.body = body.to_bytes();
        if let Some(planted) = &self.planted {
            planted.plant(&call.method, &mut answer);
        }
        Ok(Outcome::Answer(answer))
    }

    /// Sends a call until its answer is `wanted`, or for a while.
    ///
    /// # Errors
    /// As [`Caller::send`].
    pub(crate) async fn send_until(
        &self,
        call: &Call,
        wanted: impl Fn(&Answer) -> bool,
    ) -> anyhow::Result<Answer> {
        let end = Instant::now() + PATIENCE;
        loop {
            let Outcome::Answer(answer) = self.send(call, false).await? else { unreachable_watch()? };
            if wanted(&answer) || Instant::now() > end {
                return Ok(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn request(http: &Http, call: &Call) -> anyhow::Result<Request<Full<Bytes>>> {
    let body = call.body.clone().unwrap_or_default();
    let mut request = http.request(call.method.clone(), &call.path, None, body.into())?;
    let headers = request.headers_mut();
    headers.remove(ACCEPT);
    if call.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in &call.headers {
        let (name, value) = (HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        if value.is_empty() {
            headers.remove(name);
        } else {
            headers.insert(name, value);
        }
    }
    if !matches!(call.user.as_str(), "admin" | "nobody") {
        headers.insert("impersonate-user", HeaderValue::from_str(&call.user)?);
        for group in &call.groups {
            headers.append("impersonate-group", HeaderValue::from_str(group)?);
        }
    }
    Ok(request)
}

fn unreachable_watch<T>() -> anyhow::Result<T> {
    anyhow::bail!("an answer that was no watch became one")
}
