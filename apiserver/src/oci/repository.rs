//! One repository of a registry, for as long as one import lasts: what it answered once is not asked again.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderValue, StatusCode, Uri};
use rand::RngExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep};

use super::challenge::Challenge;
use super::client::Client;
use super::credentials::Credentials;
use super::error::Error;
use super::exchange::{Answer, Ask, ask, resolve};
use super::manifest::{ACCEPT, Manifest};
use super::token::{Authorizer, LEAST_TOKEN_TIME};

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Host of the registry, with its port if it has one.
    pub registry: String,
    /// Path of the repository there.
    pub path: String,
    /// Whether plain HTTP and unverified certificates will do.
    pub insecure: bool,
}

/// A document of a registry.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The bytes.
    pub bytes: Bytes,
    /// The media type that came with them.
    pub content_type: String,
    /// Their digest, `sha256:…`.
    pub digest: String,
    /// Whether another host gave them than the registry that was asked.
    pub elsewhere: bool,
}

impl Fetched {
    /// The document as a manifest.
    ///
    /// # Errors
    /// As [`Manifest::parse`]; nothing of content from elsewhere is told.
    pub fn parse(&self) -> Result<Manifest, Error> {
        let parsed = Manifest::parse(&self.content_type, &self.bytes);
        parsed.map_err(|error| if self.elsewhere { Error::unexpected_content() } else { error })
    }
}

/// A registry that answered.
struct Endpoint {
    /// `https://host` or `http://host`.
    base: String,
    challenges: Vec<Challenge>,
}

/// The header that says who asks, or why there is none.
struct Kept {
    given: Result<Option<HeaderValue>, Error>,
    until: Instant,
}

/// See the module.
pub struct Repository {
    client: Arc<Client>,
    location: Location,
    credentials: Option<Credentials>,
    deadline: Instant,
    endpoint: OnceCell<Result<Endpoint, Error>>,
    authorization: Mutex<Option<Kept>>,
}

impl Repository {
    /// A repository that is asked in the name of `credentials`, until `deadline`. Nothing is sent yet.
    #[must_use]
    pub fn new(
        client: Arc<Client>,
        location: Location,
        credentials: Option<Credentials>,
        deadline: Instant,
    ) -> Self {
        Self {
            client,
            location,
            credentials,
            deadline,
            endpoint: OnceCell::new(),
            authorization: Mutex::new(None),
        }
    }

    /// The manifest of a tag or digest; one that is asked for by its digest has that digest.
    ///
    /// # Errors
    /// The registry's, or what is wrong with its answer.
    pub async fn manifest(&self, tag_or_digest: &str) -> Result<Fetched, Error> {
        let limit = self.client.limits.manifest;
        let fetched = self.fetch(&format!("manifests/{tag_or_digest}"), ACCEPT, limit).await?;
        if tag_or_digest.contains(':') && tag_or_digest != fetched.digest {
            return Err(Error::Failed(format!(
                "content integrity error: the manifest retrieved with digest {tag_or_digest} does not match the \
                 digest calculated from the content {}",
                fetched.digest
            )));
        }
        Ok(fetched)
    }

    /// A configuration, by its digest.
    ///
    /// # Errors
    /// As [`Self::manifest`].
    pub async fn config(&self, digest: &str) -> Result<Fetched, Error> {
        let valid = digest
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if !valid {
            return Err(Error::Failed("invalid checksum digest format".to_owned()));
        }
        let fetched = self.fetch(&format!("blobs/{digest}"), "*/*", self.client.limits.config).await?;
        if fetched.digest != digest {
            return Err(Error::Failed(format!(
                "content integrity error: the blob retrieved with digest {digest} does not match the digest \
                 calculated from the content {}",
                fetched.digest
            )));
        }
        Ok(fetched)
    }

    /// All tags, in the registry's order.
    ///
    /// # Errors
    /// As [`Self::manifest`].
    pub async fn tags(&self) -> Result<Vec<String>, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let limit = self.client.limits.tags;
        let base = self.endpoint().await?.base.clone();
        let mut url = self.url(&base, "tags/list")?;
        let (mut tags, mut bytes) = (Vec::new(), 0);
        for _ in 0..self.client.limits.tag_pages {
            let answer = self.asked(&url, "application/json", limit).await?;
            bytes += answer.body.len();
            if bytes > self.client.limits.all_tags {
                break;
            }
            let page: Page =
                serde_json::from_slice(&answer.body).map_err(|error| answer.json_failure(&error))?;
            tags.extend(page.tags.unwrap_or_default());
            let link = answer.headers.get(LINK).and_then(|link| link.to_str().ok());
            let Some(link) = link.filter(|link| !link.is_empty()) else { return Ok(tags) };
            let target = link.split(';').next().unwrap_or_default().trim().trim_matches(['<', '>']);
            // The next page is the same registry's: the token is not for another one.
            let next = resolve(&url, target).filter(|next| next.authority() == url.authority());
            url =
                next.ok_or_else(|| Error::Failed("the link to the next tags leads elsewhere".to_owned()))?;
        }
        Err(Error::Failed("the registry has too many tags".to_owned()))
    }

    async fn fetch(&self, what: &str, accept: &str, limit: usize) -> Result<Fetched, Error> {
        let base = self.endpoint().await?.base.clone();
        let url = self.url(&base, what)?;
        let answer = self.asked(&url, accept, limit).await?;
        let content_type = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let (digest, elsewhere) = (digest(&answer.body), answer.elsewhere);
        Ok(Fetched { content_type, digest, elsewhere, bytes: answer.body })
    }

    fn url(&self, base: &str, what: &str) -> Result<Uri, Error> {
        let text = format!("{base}/v2/{}/{what}", self.location.path);
        text.parse().map_err(|_| Error::Failed(format!("invalid address {text}")))
    }

    /// A question with the credentials, asked again while its failure may pass.
    async fn asked(&self, url: &Uri, accept: &str, limit: usize) -> Result<Answer, Error> {
        let authorization = self.authorization().await.map_err(|error| match error {
            Error::NoBasicCredentials => error,
            other => other.of("Get", url.to_string()),
        })?;
        let ask = || async { self.ask(url.clone(), accept, authorization.clone(), limit).await?.success() };
        self.retried(ask).await
    }

    async fn retried<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let limits = &self.client.limits;
        let mut tried = 0;
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let backoff = limits.backoff.saturating_mul(1 << tried.min(8));
            let wait = error.temporary().filter(|_| tried < limits.retries).map(|asked| asked.max(backoff));
            let wait = wait.filter(|wait| *wait <= limits.longest_wait);
            // Not all at once again.
            let wait = wait.map(|wait| wait.mul_f64(rand::rng().random_range(1.0..1.25)));
            match wait.filter(|wait| Instant::now() + *wait < self.deadline) {
                Some(wait) => sleep(wait).await,
                None => return Err(error),
            }
            tried += 1;
        }
    }

    async fn ask(
        &self,
        url: Uri,
        accept: &str,
        authorization: Option<HeaderValue>,
        limit: usize,
    ) -> Result<Answer, Error> {
        let (insecure, deadline) = (self.location.insecure, self.deadline);
        ask(&self.client, Ask { url, accept, authorization, insecure, limit, deadline }).await
    }

    /// The header that says who asks, kept while it is good.
    async fn authorization(&self) -> Result<Option<HeaderValue>, Error> {
        let endpoint = self.endpoint().await?;
        let mut kept = self.authorization.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| Instant::now() < kept.until) {
            return kept.given.clone();
        }
        let authorizer = Authorizer {
            client: &self.client,
            credentials: self.credentials.as_ref(),
            repository: &self.location.path,
            insecure: self.location.insecure,
            deadline: self.deadline,
        };
        let given = self.retried(|| authorizer.header(&endpoint.challenges)).await;
        let (given, time) = match given {
            Ok((header, time)) => (Ok(header), time),
            Err(error) => (Err(error), LEAST_TOKEN_TIME),
        };
        *kept = Some(Kept { given: given.clone(), until: Instant::now() + time });
        given
    }

    /// The registry itself: whether it is one, by which protocol, and how it wants to know who asks.
    async fn endpoint(&self) -> Result<&Endpoint, Error> {
        let found = self.endpoint.get_or_init(|| async {
            match self.retried(|| self.ping("https")).await {
                Err(error @ Error::Request { .. }) if self.location.insecure => {
                    tracing::debug!(registry = self.location.registry, %error, "trying plain HTTP");
                    self.retried(|| self.ping("http")).await
                }
                found => found,
            }
        });
        found.await.as_ref().map_err(Clone::clone)
    }

    async fn ping(&self, scheme: &str) -> Result<Endpoint, Error> {
        let base = format!("{scheme}://{}", self.location.registry);
        let url: Uri = format!("{base}/v2/")
            .parse()
            .map_err(|_| Error::Failed(format!("invalid registry {}", self.location.registry)))?;
        let answer = self.ask(url, "*/*", None, self.client.limits.config).await?;
        let status = answer.status;
        let named = answer.headers.contains_key("docker-distribution-api-version");
        if !named
            && !status.is_success()
            && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        {
            return Err(Error::NotV2 { registry: base, status });
        }
        Ok(Endpoint { base, challenges: Challenge::of(&answer.headers) })
    }
}

/// The digest of content.
pub(super) fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
