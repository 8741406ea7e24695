//! Who asks: basic credentials, or a token that a registry's token server gives for them.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::time::Instant;

use super::challenge::Challenge;
use super::client::Client;
use super::credentials::Credentials;
use super::error::Error;
use super::exchange::{Ask, ask};

/// Bytes of a token server's answer.
const MAX_ANSWER: usize = 256 << 10;
/// How long a token is good where its server says less, or nothing.
pub(super) const LEAST_TOKEN_TIME: Duration = Duration::from_secs(60);
/// How long one is kept, whatever its server says.
const MOST_TOKEN_TIME: Duration = Duration::from_secs(3600);
/// As Go's query encoding.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Default, Deserialize)]
#[serde(default)]
struct Given {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<f64>,
}

impl Given {
    fn time(&self) -> Duration {
        let time = self.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.unwrap_or_default().clamp(LEAST_TOKEN_TIME, MOST_TOKEN_TIME)
    }
}

/// What a request for a repository is sent with, given how the registry asked.
pub(super) struct Authorizer<'a> {
    pub(super) client: &'a Client,
    pub(super) credentials: Option<&'a Credentials>,
    /// Path of the repository that is to be read.
    pub(super) repository: &'a str,
    pub(super) insecure: bool,
    pub(super) deadline: Instant,
}

impl Authorizer<'_> {
    /// The header for `challenges`, and how long it is good; none where nothing is asked.
    pub(super) async fn header(
        &self,
        challenges: &[Challenge],
    ) -> Result<(Option<HeaderValue>, Duration), Error> {
        // A token is the better one, where a registry takes both.
        if let Some(bearer) = challenges.iter().find(|challenge| challenge.scheme == "bearer") {
            let (token, time) = self.token(bearer).await?;
            return Ok((secret(&format!("Bearer {token}")), time));
        }
        if challenges.iter().any(|challenge| challenge.scheme == "basic") {
            let credentials = self.usable().ok_or(Error::NoBasicCredentials)?;
            return Ok((basic(credentials), MOST_TOKEN_TIME));
        }
        Ok((None, MOST_TOKEN_TIME))
    }

    fn usable(&self) -> Option<&Credentials> {
        self.credentials.filter(|credentials| credentials.usable())
    }

    async fn token(&self, challenge: &Challenge) -> Result<(String, Duration), Error> {
        let realm = challenge.parameter("realm");
        let missing = || Error::Failed("no realm specified for token auth challenge".to_owned());
        let base: Uri = realm.parse().map_err(|_| missing())?;
        if base.authority().is_none() {
            return Err(missing());
        }
        let mut query = Vec::new();
        let credentials = self.usable();
        if let Some(credentials) = credentials {
            query.push(format!("account={}", utf8_percent_encode(&credentials.username, QUERY)));
        }
        let scope = format!("repository:{}:pull", self.repository);
        query.push(format!("scope={}", utf8_percent_encode(&scope, QUERY)));
        let service = challenge.parameter("service");
        if !service.is_empty() {
            query.push(format!("service={}", utf8_percent_encode(service, QUERY)));
        }
        let joint = if base.query().is_some() { '&' } else { '?' };
        let url: Uri = format!("{base}{joint}{}", query.join("&")).parse().map_err(|_| missing())?;
        let answer = ask(
            self.client,
            Ask {
                url,
                accept: "application/json",
                authorization: credentials.and_then(basic),
                insecure: self.insecure,
                limit: MAX_ANSWER,
                deadline: self.deadline,
            },
        )
        .await?;
        // The registry chooses the address, which may be inside: of an answer only errors that are a registry's show.
        let answer = answer.success().map_err(|error| match error {
            Error::UnexpectedBody { status, retry_after, .. } => {
                Error::UnexpectedStatus { status, retry_after }
            }
            other => other,
        })?;
        let given: Given = serde_json::from_slice(&answer.body).map_err(|error| {
            Error::Failed(format!("unable to decode token response: {}", answer.json_failure(&error)))
        })?;
        let time = given.time();
        let token = [given.access_token, given.token].into_iter().flatten().find(|token| !token.is_empty());
        let missing = "authorization server did not include a token in the response";
        token.map(|token| (token, time)).ok_or_else(|| Error::Failed(missing.to_owned()))
    }
}

fn basic(credentials: &Credentials) -> Option<HeaderValue> {
    let joined = BASE64_STANDARD.encode(format!("{}:{}", credentials.username, credentials.password));
    secret(&format!("Basic {joined}"))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
