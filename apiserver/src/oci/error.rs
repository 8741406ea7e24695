//! Why a registry did not give what was asked for, in the words of Go's registry client: they reach users.

use std::time::Duration;

use http::StatusCode;
use picoshift_machinery::field_error::quote;

/// An error code of the distribution specification, with its word and text.
const CODES: [(&str, &str); 20] = [
    ("UNKNOWN", "unknown error"),
    ("UNSUPPORTED", "The operation is unsupported."),
    ("UNAUTHORIZED", "authentication required"),
    ("DENIED", "requested access to the resource is denied"),
    ("UNAVAILABLE", "service unavailable"),
    ("TOOMANYREQUESTS", "too many requests"),
    ("DIGEST_INVALID", "provided digest did not match uploaded content"),
    ("SIZE_INVALID", "provided length did not match content length"),
    ("RANGE_INVALID", "invalid content range"),
    ("NAME_INVALID", "invalid repository name"),
    ("TAG_INVALID", "manifest tag did not match URI"),
    ("NAME_UNKNOWN", "repository name not known to registry"),
    ("MANIFEST_UNKNOWN", "manifest unknown"),
    ("MANIFEST_INVALID", "manifest invalid"),
    ("MANIFEST_UNVERIFIED", "manifest failed signature verification"),
    ("MANIFEST_BLOB_UNKNOWN", "blob unknown to registry"),
    ("BLOB_UNKNOWN", "blob unknown to registry"),
    ("BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry"),
    ("BLOB_UPLOAD_INVALID", "blob upload invalid"),
    ("PAGINATION_NUMBER_INVALID", "invalid number of results requested"),
];

/// One error that a registry named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its word, for example `MANIFEST_UNKNOWN`.
    pub code: &'static str,
    /// Its text.
    pub message: String,
}

impl Refusal {
    /// A refusal; a code that is not specified counts as `UNKNOWN`, a missing text is the code's.
    #[must_use]
    pub fn new(code: &str, message: &str) -> Self {
        let (code, usual) = CODES.into_iter().find(|(known, _)| *known == code).unwrap_or(CODES[0]);
        let message = if message.is_empty() { usual } else { message };
        Self { code, message: message.to_owned() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.replace('_', " ").to_lowercase(), self.message)
    }
}

/// See the module.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A request got no answer.
    #[error("{method} {}: {why}", quote(url))]
    Request {
        /// `Get`.
        method: &'static str,
        /// What was asked, without anything secret.
        url: String,
        /// What happened.
        why: Box<Error>,
    },
    /// The registry named errors.
    #[error("{}", texts(refusals))]
    Refused {
        /// The code of the answer.
        status: StatusCode,
        /// The errors, at least one.
        refusals: Vec<Refusal>,
        /// How long the registry wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A code that the specification does not have.
    #[error("received unexpected HTTP status: {status}")]
    UnexpectedStatus {
        /// The code of the answer.
        status: StatusCode,
        /// How long the registry wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A refusal whose body says nothing that can be read.
    #[error("error parsing HTTP {} response body: {why}: {}", status.as_u16(), quote(body))]
    UnexpectedBody {
        /// The code of the answer.
        status: StatusCode,
        /// What is wrong with the body.
        why: String,
        /// The body, or the begin of it.
        body: String,
        /// How long the registry wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// What answers is no registry.
    #[error("endpoint {} does not support v2 API (got {status})", quote(registry))]
    NotV2 {
        /// Its address.
        registry: String,
        /// What it answered.
        status: StatusCode,
    },
    /// The registry wants a user and a password, and there are none for it.
    #[error("no basic auth credentials")]
    NoBasicCredentials,
    /// The time is over.
    #[error("context deadline exceeded ({0})")]
    Timeout(&'static str),
    /// The connection broke in a way that may not happen again.
    #[error("{0}")]
    Broken(String),
    /// There is no connection, or what came is not what it should be.
    #[error("{0}")]
    Failed(String),
}

fn texts(refusals: &[Refusal]) -> String {
    match refusals {
        [] => "<nil>".to_owned(),
        [one] => one.to_string(),
        many => many.iter().fold("errors:\n".to_owned(), |text, one| format!("{text}{one}\n")),
    }
}

impl Error {
    /// Whether the registry, not something before it, named the error `code`.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused { refusals, .. } if refusals.iter().any(|refusal| refusal.code == code))
    }

    /// For content that nothing may be told of.
    pub(super) fn unexpected_content() -> Self {
        Self::Failed("the content is not what it should be".to_owned())
    }

    /// The error as what became of a request.
    pub(super) fn of(self, method: &'static str, url: impl Into<String>) -> Self {
        Self::Request { method, url: url.into(), why: Box::new(self) }
    }

    /// For an error that may go away by itself: how long the registry wants to be left alone, zero where it does not
    /// say.
    pub(super) fn temporary(&self) -> Option<Duration> {
        let (status, retry_after) = match self {
            Self::Request { why, .. } => return why.temporary(),
            Self::Broken(_) => return Some(Duration::ZERO),
            Self::Refused { status, retry_after, .. }
            | Self::UnexpectedStatus { status, retry_after }
            | Self::UnexpectedBody { status, retry_after, .. } => (*status, *retry_after),
            Self::NotV2 { status, .. } => (*status, None),
            Self::NoBasicCredentials | Self::Timeout(_) | Self::Failed(_) => return None,
        };
        let passing = status == StatusCode::TOO_MANY_REQUESTS
            || matches!(status.as_u16(), 500 | 502 | 503 | 504)
            || self.is("UNAVAILABLE")
            || self.is("TOOMANYREQUESTS");
        passing.then(|| retry_after.unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_gos() {
        let refused = |refusals: &[Refusal]| Error::Refused {
            status: StatusCode::UNAUTHORIZED,
            refusals: refusals.to_vec(),
            retry_after: None,
        };
        let one = Refusal::new("MANIFEST_UNKNOWN", "");
        assert_eq!(refused(std::slice::from_ref(&one)).to_string(), "manifest unknown: manifest unknown");
        let two = [Refusal::new("WHATEVER", "so"), one];
        assert_eq!(refused(&two).to_string(), "errors:\nunknown: so\nmanifest unknown: manifest unknown\n");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let error = Error::UnexpectedStatus { status, retry_after: None };
        assert_eq!(error.to_string(), "received unexpected HTTP status: 500 Internal Server Error");
        assert_eq!(
            Error::Broken("EOF".into()).of("Get", "https://h/v2/").to_string(),
            r#"Get "https://h/v2/": EOF"#
        );
        let no = Error::NotV2 { registry: "https://h".into(), status: StatusCode::NOT_FOUND };
        assert_eq!(no.to_string(), r#"endpoint "https://h" does not support v2 API (got 404 Not Found)"#);
    }
}
