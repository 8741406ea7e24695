//! The OAuth server as its clients see it: programs with a password, browsers with cookies, and those who exchange codes.

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Method, header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ControlPlane;
use crate::http::{Answer, Http};
use crate::objects::unique;
use crate::tls::{Endpoint, Protocol};

const METADATA: &str = "/api/v1/namespaces/openshift-config-managed/configmaps/oauth-openshift";
const FORM: &str = "application/x-www-form-urlencoded";
const CHALLENGING: &str = "openshift-challenging-client";

/// A client of the OAuth server that keeps cookies.
#[derive(Debug, Clone)]
pub struct OAuth {
    /// The server's URL.
    pub issuer: String,
    http: Http,
    cookies: Vec<(String, String)>,
}

/// A verifier, and the challenge that goes with it.
#[must_use]
pub fn pkce() -> (String, String) {
    let verifier = unique("verifier-that-is-long-enough-for-rfc-7636-by-far");
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    (verifier, challenge)
}

/// The name of the object of a token.
#[must_use]
pub fn object_name(token: &str) -> String {
    let secret = token.trim_start_matches("sha256~");
    format!("sha256~{}", URL_SAFE_NO_PAD.encode(Sha256::digest(secret)))
}

/// Pairs as a form or a query.
#[must_use]
pub fn form(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        let bytes = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        });
        bytes.collect::<String>()
    };
    pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// Where an answer leads; empty for nowhere.
#[must_use]
pub fn location(answer: &Answer) -> &str {
    answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What a redirect tells its client under a name; empty for nothing.
#[must_use]
pub fn told<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let (_, told) = location(answer).split_once(['?', '#']).unwrap_or_default();
    told.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

/// The value of a hidden field of a page.
#[must_use]
pub fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let value = page.split_once(&start).and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
    value.replace("&#38;", "&").replace("&amp;", "&")
}

impl OAuth {
    /// A client of the control plane's server, once that is there.
    ///
    /// # Errors
    /// When nobody says where it is within a minute.
    pub async fn open(plane: &ControlPlane) -> anyhow::Result<Self> {
        let admin = plane.admin()?;
        let look = || async {
            let answer = admin.api.get(METADATA).await?;
            if answer.status != 200 {
                return Ok(Err(answer.text()));
            }
            let text = answer.json()?["data"]["oauthMetadata"].as_str().unwrap_or_default().to_owned();
            let metadata: Value = serde_json::from_str(&text)?;
            let issuer = metadata["issuer"].as_str().context("no issuer")?.to_owned();
            let oauth = Self::at(plane, &issuer)?;
            Ok(match oauth.http.get("/healthz").await {
                Ok(answer) if answer.status == 200 => Ok(oauth),
                other => Err(format!("{other:?}")),
            })
        };
        crate::eventually::eventually("the OAuth server is there", 60, look).await
    }

    /// A client of the server at `issuer`.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn at(plane: &ControlPlane, issuer: &str) -> anyhow::Result<Self> {
        let endpoint =
            Endpoint { url: issuer.to_owned(), ca: plane.stage.kube.ca.clone(), server_name: None };
        let http = Http::new(&endpoint, None, Protocol::Http1)?;
        Ok(Self { issuer: issuer.to_owned(), http, cookies: Vec::new() })
    }

    /// The same browser at another address.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn elsewhere(&self, plane: &ControlPlane, issuer: &str) -> anyhow::Result<Self> {
        Ok(Self { cookies: self.cookies.clone(), ..Self::at(plane, issuer)? })
    }

    /// Sends a request as this browser, and keeps the cookies of the answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> anyhow::Result<Answer> {
        let content = (!body.is_empty()).then_some(FORM);
        let mut request = self.http.request(method, path, content, Bytes::from(body.to_owned()))?;
        for (name, value) in more {
            request.headers_mut().append(http::HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.headers_mut().insert(header::COOKIE, cookies.join("; ").parse()?);
        let answer = self.http.send(request).await?;
        for cookie in answer.headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str()?;
            ensure!(cookie.ends_with("; Path=/; HttpOnly; Secure"), "{cookie}");
            let (name, value) =
                cookie.split(';').next().and_then(|pair| pair.split_once('=')).context("no cookie")?;
            self.cookies.retain(|(own, _)| own != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        Ok(answer)
    }

    /// GET.
    ///
    /// # Errors
    /// As [`OAuth::send`].
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, &[], "").await
    }

    /// POST of a form.
    ///
    /// # Errors
    /// As [`OAuth::send`].
    pub async fn post(&mut self, path: &str, pairs: &[(&str, &str)]) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, &[], &form(pairs)).await
    }

    /// Asks to be authorized with name and password in the header, as `oc` does.
    ///
    /// # Errors
    /// As [`OAuth::send`].
    pub async fn challenge(&mut self, query: &str, name: &str, password: &str) -> anyhow::Result<Answer> {
        let basic = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
        let headers = [("x-csrf-token", "1"), ("authorization", basic.as_str())];
        self.send(Method::GET, &format!("/oauth/authorize?{query}"), &headers, "").await
    }

    /// A token of somebody, by the requests of `oc login`.
    ///
    /// # Errors
    /// When there is none.
    pub async fn token(&mut self, name: &str, password: &str) -> anyhow::Result<String> {
        let (verifier, challenge) = pkce();
        let redirect = format!("{}/oauth/token/implicit", self.issuer);
        let query = form(&[
            ("client_id", CHALLENGING),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("redirect_uri", &redirect),
            ("response_type", "code"),
        ]);
        let answer = self.challenge(&query, name, password).await?;
        let code = told(&answer, "code").to_owned();
        ensure!(answer.status == 302 && code.starts_with("sha256~"), "{}: {}", answer.status, answer.text());
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("code_verifier", &verifier),
            ("redirect_uri", &redirect),
        ];
        let basic = format!("Basic {}", STANDARD.encode(format!("{CHALLENGING}:")));
        let answer = self
            .send(Method::POST, "/oauth/token", &[("authorization", basic.as_str())], &form(&pairs))
            .await?;
        let told = answer.expect_code(200)?;
        Ok(told["access_token"].as_str().context("no token")?.to_owned())
    }

    /// Logs in at the page that `path` leads to; answers where that leads.
    ///
    /// # Errors
    /// When there is no page.
    pub async fn log_in(&mut self, path: &str, name: &str, password: &str) -> anyhow::Result<Answer> {
        let mut page = self.get(path).await?;
        let mut at = path.to_owned();
        while page.status == 302 {
            at = location(&page).to_owned();
            ensure!(at.starts_with('/'), "{path} leads to {at}");
            page = self.get(&at).await?;
        }
        let text = page.text();
        ensure!(text.contains("id=\"inputUsername\""), "{at} is no login page: {text}");
        let (then, csrf) = (field(&text, "then"), field(&text, "csrf"));
        let place = at.split('?').next().unwrap_or_default().to_owned();
        self.post(&place, &[("then", &then), ("csrf", &csrf), ("username", name), ("password", password)])
            .await
    }
}
