//! Plain HTTPS to a server, as one caller: exact requests, exact answers.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;

use crate::identity::Identity;
use crate::tls::{Endpoint, Protocol, connector};
use crate::watch::Watch;

/// How long an ordinary request may take before the test that made it fails.
const PATIENCE: Duration = Duration::from_secs(70);

/// Patch formats.
pub mod patch {
    /// RFC 6902.
    pub const JSON: &str = "application/json-patch+json";
    /// RFC 7386.
    pub const MERGE: &str = "application/merge-patch+json";
    /// Merged by the schema of the kind.
    pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
}

/// A client of one server as one caller.
#[derive(Debug, Clone)]
pub struct Http {
    url: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} is not JSON: {}", self.status, self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON when the status is in the 200s.
    ///
    /// # Errors
    /// Status and body of an answer that is not.
    pub fn ok(&self) -> anyhow::Result<Value> {
        if !self.status.is_success() {
            bail!("answered {}: {}", self.status, self.text());
        }
        self.json()
    }

    /// The body as JSON when the status is `code`.
    ///
    /// # Errors
    /// Status and body of any other answer.
    pub fn expect_code(&self, code: u16) -> anyhow::Result<Value> {
        if self.status.as_u16() != code {
            bail!("answered {} and not {code}: {}", self.status, self.text());
        }
        self.json()
    }
}

impl Http {
    /// A client of `endpoint` that presents `identity`, if any.
    ///
    /// # Errors
    /// When the TLS settings cannot be made.
    pub fn new(endpoint: &Endpoint, identity: Option<&Identity>, protocol: Protocol) -> anyhow::Result<Self> {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .http2_only(protocol == Protocol::Http2)
            .build(connector(endpoint, identity, protocol)?);
        Ok(Self { url: endpoint.url.clone(), client, headers: HeaderMap::new() })
    }

    /// The same with one more header on every request.
    ///
    /// # Errors
    /// When the header is malformed.
    pub fn with_header(mut self, name: &str, value: &str) -> anyhow::Result<Self> {
        self.headers.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        Ok(self)
    }

    /// A request to `path` with this caller's headers, JSON accepted.
    ///
    /// # Errors
    /// When `path` is malformed.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&'static str>,
        body: Bytes,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request =
            Request::builder().method(method).uri(format!("{}{path}", self.url)).body(Full::new(body))?;
        request.headers_mut().extend(self.headers.clone());
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        if let Some(content_type) = content_type {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        Ok(request)
    }

    /// Sends a request and gives the answer while its body still flows.
    ///
    /// # Errors
    /// When the server cannot be reached or takes too long to begin its answer.
    pub async fn stream(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        let line = format!("{} {}", request.method(), request.uri());
        let answer = tokio::time::timeout(PATIENCE, self.client.request(request));
        answer.await.with_context(|| format!("{line}: no answer"))?.with_context(|| line)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// As [`Http::stream`], and when the body breaks off.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        let (head, body) = self.stream(request).await?.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.context("body takes too long")??;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    /// GET.
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(self.request(Method::GET, path, None, Bytes::new())?).await
    }

    /// GET with another `Accept`.
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn get_as(&self, path: &str, accept: &str) -> anyhow::Result<Answer> {
        let mut request = self.request(Method::GET, path, None, Bytes::new())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_str(accept)?);
        self.send(request).await
    }

    /// POST of a JSON body.
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.with_body(Method::POST, path, "application/json", body).await
    }

    /// PUT of a JSON body.
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.with_body(Method::PUT, path, "application/json", body).await
    }

    /// PATCH in the format `content_type` (see [`patch`]).
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn patch(
        &self,
        path: &str,
        content_type: &'static str,
        body: &Value,
    ) -> anyhow::Result<Answer> {
        self.with_body(Method::PATCH, path, content_type, body).await
    }

    /// DELETE with options, `{}` for none.
    ///
    /// # Errors
    /// As [`Http::send`].
    pub async fn delete(&self, path: &str, options: &Value) -> anyhow::Result<Answer> {
        self.with_body(Method::DELETE, path, "application/json", options).await
    }

    /// Opens a watch at `path`, whose query has to ask for it.
    ///
    /// # Errors
    /// When the server cannot be reached or answers anything but 200.
    pub async fn watch(&self, path: &str) -> anyhow::Result<Watch> {
        let request = self.request(Method::GET, path, None, Bytes::new())?;
        let response = self.stream(request).await?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            bail!("watch {path} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(Watch::new(response.into_body()))
    }

    async fn with_body(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: &Value,
    ) -> anyhow::Result<Answer> {
        let body = Bytes::from(serde_json::to_vec(body)?);
        self.send(self.request(method, path, Some(content_type), body)?).await
    }
}
