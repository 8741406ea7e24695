//! One request: its parts as the endpoints need them, with limits on what is read.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use tokio::time::timeout;

use super::url::Values;

/// Bytes of a form.
const LONGEST_FORM: usize = 64 * 1024;
/// Bytes of a path and query: a login's `then` holds a whole one, escaped.
const LONGEST_TARGET: usize = 32 * 1024;
/// A form that takes longer is not waited for.
const FORM_WITHIN: Duration = Duration::from_secs(20);
const FORM: &str = "application/x-www-form-urlencoded";

/// A request.
pub struct Call {
    /// The method.
    pub method: Method,
    /// The path, as it was sent.
    pub path: String,
    /// The query, as it was sent.
    pub raw_query: String,
    /// The query's values.
    pub query: Values,
    /// The body's values.
    pub form: Values,
    /// Whether some of the values could not be read.
    pub is_malformed: bool,
    headers: HeaderMap,
    /// Where it comes from.
    pub address: IpAddr,
}

/// What `Authorization: Basic` says.
#[derive(PartialEq, Eq)]
pub struct Basic {
    /// Before the first colon.
    pub name: String,
    /// After it.
    pub password: String,
}

impl Call {
    /// Takes a request apart.
    ///
    /// # Errors
    /// The code to answer when it is too large or too slow.
    pub async fn read<B>(request: http::Request<B>, address: IpAddr) -> Result<Self, StatusCode>
    where
        B: http_body::Body + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B::Data: Send,
    {
        let (parts, body) = request.into_parts();
        let raw_query = parts.uri.query().unwrap_or_default().to_owned();
        if parts.uri.path().len() + raw_query.len() > LONGEST_TARGET {
            return Err(StatusCode::URI_TOO_LONG);
        }
        let media_type =
            parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let has_form = matches!(parts.method, Method::POST | Method::PUT | Method::PATCH)
            && media_type.eq_ignore_ascii_case(FORM);
        let text = if has_form {
            match timeout(FORM_WITHIN, Limited::new(body, LONGEST_FORM).collect()).await {
                Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
                Ok(Err(_)) => return Err(StatusCode::PAYLOAD_TOO_LARGE),
                Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
            }
        } else {
            String::new()
        };
        Ok(Self {
            query: Values::parse(&raw_query),
            form: Values::parse(&text),
            is_malformed: is_malformed(&raw_query) || is_malformed(&text),
            path: parts.uri.path().to_owned(),
            method: parts.method,
            headers: parts.headers,
            raw_query,
            address,
        })
    }

    /// A parameter: the body's value goes before the query's. Empty for none.
    #[must_use]
    pub fn value(&self, name: &str) -> &str {
        if self.form.has(name) { self.form.get(name) } else { self.query.get(name) }
    }

    /// Whether body or query has the parameter.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.form.has(name) || self.query.has(name)
    }

    /// A header that is text.
    #[must_use]
    pub fn header(&self, name: impl http::header::AsHeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The value of a cookie.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let headers = self.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs =
            headers.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(own, _)| *own == name).map(|(_, value)| value);
        values.next().filter(|value| !value.is_empty())
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> String {
        if self.raw_query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.raw_query)
        }
    }

    /// The name and password of the header; `None` without one, or when one of the two is empty.
    ///
    /// # Errors
    /// What is wrong with the header, in upstream's words.
    pub fn credentials(&self) -> Result<Option<Basic>, &'static str> {
        let Some(encoded) = self.header(AUTHORIZATION).strip_prefix("Basic ") else { return Ok(None) };
        let decoded =
            STANDARD.decode(encoded).map_err(|_| "no valid base64 data in basic auth scheme found")?;
        let Some(basic) = Basic::split(&decoded) else { return Err("invalid Authorization header") };
        Ok(Some(basic).filter(|basic| !basic.name.is_empty() && !basic.password.is_empty()))
    }

    /// The client's name and secret: parameters first, else the header.
    #[must_use]
    pub fn client_credentials(&self) -> Option<Basic> {
        if self.has("client_secret") && !self.value("client_id").is_empty() {
            let (name, password) =
                (self.value("client_id").to_owned(), self.value("client_secret").to_owned());
            return Some(Basic { name, password });
        }
        let encoded = self.header(AUTHORIZATION).strip_prefix("Basic ")?;
        Basic::split(&STANDARD.decode(encoded).ok()?)
    }

    /// Whether the client is a browser, or says that it takes HTML.
    #[must_use]
    pub fn prefers_html(&self) -> bool {
        let accepts = |media_type: &str| {
            let mut ranges = self.header(ACCEPT).split(',');
            ranges.any(|range| range.split(';').next().unwrap_or_default().trim() == media_type)
        };
        accepts("text/html")
            || (!accepts("application/json") && self.header(USER_AGENT).starts_with("Mozilla"))
    }
}

impl Basic {
    fn split(decoded: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(decoded);
        let (name, password) = text.split_once(':')?;
        Some(Self { name: name.to_owned(), password: password.to_owned() })
    }
}

/// Whether Go would complain about a part of it.
fn is_malformed(query: &str) -> bool {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).count();
    picoshift_machinery::query::pairs(Some(query)).count() != pairs
}

#[cfg(test)]
pub(super) mod tests {
    use http_body_util::Full;
    use proptest::prelude::*;

    use super::*;

    /// A call with headers and a form.
    pub(crate) async fn call(method: &str, target: &str, headers: &[(&str, &str)], form: &str) -> Call {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !form.is_empty() {
            request = request.header(CONTENT_TYPE, FORM);
        }
        let request = request.body(Full::new(bytes::Bytes::from(form.to_owned()))).unwrap();
        Call::read(request, IpAddr::from([127, 0, 0, 1])).await.unwrap()
    }

    #[tokio::test]
    async fn the_body_goes_before_the_query() {
        let call = call("POST", "/x?a=query&b=query", &[], "a=form").await;
        assert_eq!((call.value("a"), call.value("b"), call.value("c")), ("form", "query", ""));
        assert_eq!(call.target(), "/x?a=query&b=query");
    }

    #[tokio::test]
    async fn credentials_and_cookies_are_read() {
        let header = format!("Basic {}", STANDARD.encode("alice:pass:word"));
        let call1 = call(
            "GET",
            "/",
            &[("authorization", &header), ("cookie", "a=1; csrf=x=y"), ("cookie", "ssn=2")],
            "",
        )
        .await;
        let basic = call1.credentials().ok().flatten().unwrap();
        assert_eq!((basic.name.as_str(), basic.password.as_str()), ("alice", "pass:word"));
        assert_eq!(
            (call1.cookie("csrf"), call1.cookie("ssn"), call1.cookie("b")),
            (Some("x=y"), Some("2"), None)
        );
        for (header, wrong) in
            [("Basic !", true), ("Basic YQ==", true), ("Basic YTo=", false), ("Bearer x", false)]
        {
            let call = call("GET", "/", &[("authorization", header)], "").await;
            assert_eq!(call.credentials().is_err(), wrong, "{header}");
            assert!(call.credentials().ok().flatten().is_none());
        }
    }

    #[tokio::test]
    async fn browsers_are_told_from_programs() {
        for (accept, agent, html) in [
            ("text/html,application/xhtml+xml", "", true),
            ("application/json", "Mozilla/5.0", false),
            ("*/*", "Mozilla/5.0", true),
            ("*/*", "curl/8", false),
        ] {
            let call = call("GET", "/", &[("accept", accept), ("user-agent", agent)], "").await;
            assert_eq!(call.prefers_html(), html, "{accept} {agent}");
        }
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let request = |form: String| {
            http::Request::post("/login")
                .header(CONTENT_TYPE, FORM)
                .body(Full::new(bytes::Bytes::from(form)))
                .unwrap()
        };
        let large = Call::read(request("x".repeat(LONGEST_FORM + 1)), address).await;
        assert_eq!(large.err(), Some(StatusCode::PAYLOAD_TOO_LARGE));
        let long = http::Request::get(format!("/?{}", "x".repeat(LONGEST_TARGET)))
            .body(Full::<bytes::Bytes>::default());
        assert_eq!(Call::read(long.unwrap(), address).await.err(), Some(StatusCode::URI_TOO_LONG));
        assert!(Call::read(request("a=%zz".to_owned()), address).await.unwrap().is_malformed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_that_never_ends_is_not_waited_for() {
        let pieces = futures::stream::pending::<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>();
        let request = http::Request::post("/login")
            .header(CONTENT_TYPE, FORM)
            .body(http_body_util::StreamBody::new(pieces))
            .unwrap();
        let read = Call::read(request, IpAddr::from([127, 0, 0, 1])).await;
        assert_eq!(read.err(), Some(StatusCode::REQUEST_TIMEOUT));
    }

    proptest! {
        #[test]
        fn no_parameters_break_the_reader(text in "\\PC{0,60}") {
            let values = Values::parse(&text);
            prop_assert!(values.encode().is_ascii());
            let _ = is_malformed(&text);
        }
    }
}
