//! One question to a registry: sent, its redirects followed, its answer read within limits of time and size.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, RETRY_AFTER, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::challenge::Challenge;
use super::client::Client;
use super::dial;
use super::error::{Error, Refusal};
use super::manifest::json_error;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;
/// Bytes of an error's body that are read.
const ERROR_BODY: usize = 16 << 10;
/// Bytes of an error's body that are shown.
const SHOWN_BODY: usize = 1 << 10;
const AGENT: &str = concat!("picoshift-apiserver/", env!("CARGO_PKG_VERSION"));
const AWAITING: &str = "Client.Timeout exceeded while awaiting headers";
const READING: &str = "Client.Timeout or context cancellation while reading body";

/// A question.
pub(super) struct Ask<'a> {
    pub(super) url: Uri,
    pub(super) accept: &'a str,
    pub(super) authorization: Option<HeaderValue>,
    /// Whether plain HTTP and any certificate will do.
    pub(super) insecure: bool,
    /// Bytes that the body of a success may have.
    pub(super) limit: usize,
    /// When everything must be over, not only this question.
    pub(super) deadline: Instant,
}

/// An answer, read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether another host answered than the one that was asked. It may be anything that this server can reach and
    /// the caller cannot, so nothing of what it said is told.
    pub(super) elsewhere: bool,
}

/// Asks. Any code is an answer.
pub(super) async fn ask(client: &Client, ask: Ask<'_>) -> Result<Answer, Error> {
    // The query of a request for a token has the user of a pull secret in it.
    let mut shown = without_query(&ask.url);
    let host = ask.url.authority().cloned();
    // Waiting for others is not the registry's time.
    let room = timeout_at(ask.deadline, client.place(host.as_ref().map_or("", Authority::as_str))).await;
    let Ok(Some(_place)) = room else { return Err(Error::Timeout(AWAITING).of("Get", shown)) };
    let end = ask.deadline.min(Instant::now() + client.limits.request);
    let limit = ask.limit;
    let answered = timeout_at(end, follow(client, ask, &mut shown)).await;
    let (response, elsewhere) =
        answered.unwrap_or(Err(Error::Timeout(AWAITING))).map_err(|error| error.of("Get", &shown))?;
    let (parts, body) = response.into_parts();
    let limit = if parts.status.is_success() { limit } else { ERROR_BODY };
    let read = timeout_at(end, read(body, limit, parts.status)).await;
    let body = read.unwrap_or(Err(Error::Timeout(READING)))?;
    Ok(Answer { status: parts.status, headers: parts.headers, body, elsewhere })
}

/// Sends, as often as redirected; answers also whether another host was asked. `shown` is left at what was asked last,
/// without what is secret in it.
async fn follow(
    client: &Client,
    ask: Ask<'_>,
    shown: &mut String,
) -> Result<(Response<Incoming>, bool), Error> {
    let (mut url, mut authorization, mut elsewhere) = (ask.url, ask.authorization, false);
    for _ in 0..=MAX_REDIRECTS {
        check(&url, ask.insecure)?;
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = url.clone();
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Ok(accept) = HeaderValue::from_str(ask.accept) {
            headers.insert(ACCEPT, accept);
        }
        if let Some(authorization) = &authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let sent = client.connections(ask.insecure).request(request).await;
        let response = sent.map_err(|error| dial::cause(&error))?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok((response, elsewhere));
        }
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let Some(location) = location else {
            let code = response.status().as_u16();
            return Err(Error::Failed(format!("{code} response missing Location header")));
        };
        let next = resolve(&url, location)
            .ok_or_else(|| Error::Failed("the registry's redirect cannot be followed".to_owned()))?;
        if (next.scheme(), next.authority()) != (url.scheme(), url.authority()) {
            authorization = None;
        }
        elsewhere |= next.authority() != url.authority();
        // A redirect to a store of blobs is signed: its query is as good as a password.
        *shown = without_query(&next);
        url = next;
    }
    Err(Error::Failed(format!("stopped after {MAX_REDIRECTS} redirects")))
}

/// Whether a registry may lead there.
fn check(url: &Uri, insecure: bool) -> Result<(), Error> {
    let user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match url.scheme_str() {
        _ if user => Err(Error::Failed("a user in an address is not accepted".to_owned())),
        Some("https") => Ok(()),
        Some("http") if insecure => Ok(()),
        Some("http") => Err(Error::Failed("plain HTTP requires the insecure flag".to_owned())),
        other => Err(Error::Failed(format!("unsupported protocol scheme \"{}\"", other.unwrap_or_default()))),
    }
}

/// The address that a location means, seen from `base`.
pub(crate) fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme()?;
    if location.starts_with("//") {
        return format!("{scheme}:{location}").parse().ok();
    }
    let path = location.split('?').next().unwrap_or_default();
    if path.split_once(':').is_some_and(|(before, _)| !before.is_empty() && !before.contains('/')) {
        return location
            .parse::<Uri>()
            .ok()
            .filter(|url| url.scheme().is_some() && url.authority().is_some());
    }
    let whole = if location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{}{location}", base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{location}")
    };
    at(scheme, base.authority()?, &whole)
}

fn at(scheme: &Scheme, authority: &Authority, path: &str) -> Option<Uri> {
    let path: PathAndQuery = path.parse().ok()?;
    Uri::builder().scheme(scheme.clone()).authority(authority.clone()).path_and_query(path).build().ok()
}

fn without_query(url: &Uri) -> String {
    let text = url.to_string();
    let text = text.split('?').next().unwrap_or_default();
    // Whatever stands before an @ is a name and a password.
    match (text.split_once("://"), url.authority()) {
        (Some((scheme, rest)), Some(authority)) if authority.as_str().contains('@') => {
            let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
            format!("{scheme}://{rest}")
        }
        _ => text.to_owned(),
    }
}

async fn read(body: Incoming, limit: usize, status: StatusCode) -> Result<Bytes, Error> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        // A long error is still an error; a long manifest is none.
        Err(error) if error.is::<LengthLimitError>() && !status.is_success() => Ok(Bytes::new()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Error::Failed(format!("the registry's answer is longer than {limit} bytes")))
        }
        Err(error) => {
            let early = error.downcast_ref::<hyper::Error>().is_some_and(|error| {
                error.is_incomplete_message() || error.is_body_write_aborted() || error.source().is_some()
            });
            Err(if early { Error::Broken("unexpected EOF".to_owned()) } else { dial::cause(&*error) })
        }
    }
}

impl Answer {
    /// The answer, when it is a success; else what the registry says is wrong.
    pub(super) fn success(self) -> Result<Self, Error> {
        if self.status.is_success() { Ok(self) } else { Err(self.failure()) }
    }

    fn failure(self) -> Error {
        let (status, retry_after) = (self.status, retry_after(&self.headers));
        if !status.is_client_error() || self.elsewhere {
            return Error::UnexpectedStatus { status, retry_after };
        }
        let mut refusals = Vec::new();
        for challenge in Challenge::of(&self.headers).iter().filter(|challenge| challenge.scheme == "bearer")
        {
            let code = match challenge.parameter("error") {
                "invalid_token" => "UNAUTHORIZED",
                "insufficient_scope" => "DENIED",
                _ => continue,
            };
            refusals.push(Refusal::new(code, challenge.parameter("error_description")));
            break;
        }
        match self.named() {
            Ok(named) => refusals.extend(named),
            Err(_) if status == StatusCode::UNAUTHORIZED || !refusals.is_empty() => {
                if refusals.is_empty() {
                    refusals.push(Refusal::new("UNAUTHORIZED", ""));
                }
            }
            Err(why) => {
                let body = String::from_utf8_lossy(&self.body).chars().take(SHOWN_BODY).collect();
                return Error::UnexpectedBody { status, why, body, retry_after };
            }
        }
        Error::Refused { status, refusals, retry_after }
    }

    /// What is wrong with a body that is not the JSON that it should be.
    pub(super) fn json_failure(&self, error: &serde_json::Error) -> Error {
        if self.elsewhere {
            return Error::unexpected_content();
        }
        Error::Failed(json_error(&self.body, error))
    }

    /// The errors that the body names.
    fn named(&self) -> Result<Vec<Refusal>, String> {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Body {
            details: Option<serde_json::Value>,
            errors: Option<Vec<One>>,
        }
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct One {
            code: Option<String>,
            message: Option<String>,
        }
        let body: Body =
            serde_json::from_slice(&self.body).map_err(|error| json_error(&self.body, &error))?;
        if let Some(details) =
            body.details.as_ref().and_then(serde_json::Value::as_str).filter(|d| !d.is_empty())
        {
            let code = match self.status.as_u16() {
                401 => "UNAUTHORIZED",
                403 => "DENIED",
                429 => "TOOMANYREQUESTS",
                _ => "UNKNOWN",
            };
            return Ok(vec![Refusal::new(code, details)]);
        }
        let errors = body.errors.unwrap_or_default();
        if errors.is_empty() {
            return Err("no error details found in HTTP response body".to_owned());
        }
        Ok(errors
            .iter()
            .map(|one| {
                Refusal::new(
                    one.code.as_deref().unwrap_or_default(),
                    one.message.as_deref().unwrap_or_default(),
                )
            })
            .collect())
    }
}

/// `Retry-After`: seconds, or a time.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let seconds = time.as_second() - jiff::Timestamp::now().as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_seen_from_where_they_were_given() {
        let base: Uri = "https://r.io:5000/v2/a/manifests/1?x=1".parse().unwrap();
        for (location, expected) in [
            ("https://cdn.io/b?sig=1", "https://cdn.io/b?sig=1"),
            ("//cdn.io/b", "https://cdn.io/b"),
            ("/b?c=d:e", "https://r.io:5000/b?c=d:e"),
            ("2#part", "https://r.io:5000/v2/a/manifests/2"),
            ("?n=2", "https://r.io:5000/v2/a/manifests/1?n=2"),
            ("file:///etc/passwd", ""),
            ("mailto:a@b", ""),
            ("javascript:x", ""),
        ] {
            let resolved = resolve(&base, location).map_or(String::new(), |url| url.to_string());
            assert_eq!(resolved, expected, "{location}");
        }
        let secret: Uri = "https://user:pass@cdn.io/b?sig=1".parse().unwrap();
        assert_eq!(without_query(&secret), "https://cdn.io/b");
        assert!(check(&secret, true).is_err());
        assert!(check(&"http://a/".parse().unwrap(), false).is_err());
        assert!(check(&"http://a/".parse().unwrap(), true).is_ok());
        assert!(check(&"ftp://a/".parse().unwrap(), true).is_err());
    }
}
