//! What is learned about a request on its way, for the log, the counters and the audit.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, Uri};
use jiff::Timestamp;
use picoshift_machinery::body::Body;
use picoshift_machinery::peer::Peer;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Status, UserInfo};

use super::metrics::Target;
use super::response_headers::audit_id;
use crate::audit::{Audit, Record, Subject};
use crate::authz::Decision;

/// A request, as far as it has come.
pub(super) struct Seen {
    pub(super) audit_id: HeaderValue,
    received: Timestamp,
    pub(super) target: Target,
    pub(super) watch: bool,
    /// Whether it may last longer than other requests: a watch, or an import that waits for registries.
    pub(super) long: bool,
    /// How long it may wait for its turn.
    pub(super) patience: Duration,
    pub(super) user: Option<Arc<UserInfo>>,
    pub(super) record: Option<Arc<Record>>,
}

impl Seen {
    /// A request that has just come.
    pub(super) fn new(headers: &HeaderMap) -> Self {
        Self {
            audit_id: audit_id(headers),
            received: Timestamp::now(),
            target: Target::default(),
            watch: false,
            long: false,
            patience: Duration::ZERO,
            user: None,
            record: None,
        }
    }

    fn subject<'a>(
        &'a self,
        (headers, uri): (&'a HeaderMap, &'a Uri),
        peer: &'a Peer,
        info: &'a RequestInfo,
        user: Option<&'a UserInfo>,
    ) -> Subject<'a> {
        Subject {
            id: self.audit_id.to_str().unwrap_or_default(),
            received: self.received,
            uri: request_line(uri),
            headers,
            peer,
            info,
            user,
            long: self.long,
        }
    }

    /// Who asks is known: the request's record begins.
    pub(super) fn begin(
        &mut self,
        audit: Option<&Audit>,
        request: (&HeaderMap, &Uri),
        peer: &Peer,
        info: &RequestInfo,
        user: &UserInfo,
    ) {
        let Some(audit) = audit else { return };
        self.record = audit.begin(self.subject(request, peer, info, Some(user)));
        if let Some(record) = &self.record {
            record.received();
        }
    }

    /// The request is refused before anybody knows who asks.
    pub(super) fn refused(
        &self,
        audit: Option<&Audit>,
        request: (&HeaderMap, &Uri),
        peer: &Peer,
        info: &RequestInfo,
        (code, message): (u16, &str),
    ) {
        if let Some(audit) = audit {
            audit.refused(self.subject(request, peer, info, None), code, message);
        }
    }

    /// What the authorizer said.
    pub(super) fn decided(&self, decision: &Result<Decision, Status>) {
        let Some(record) = &self.record else { return };
        let (word, reason) = match decision {
            Ok(Decision::Allow) => (Some("allow"), ""),
            Ok(Decision::Deny { reason }) => (Some("forbid"), reason.as_str()),
            Err(_) => (None, "internal error"),
        };
        if let Some(word) = word {
            record.annotate("authorization.k8s.io/decision", word);
        }
        record.annotate("authorization.k8s.io/reason", reason);
    }

    /// The answer is ready to be sent.
    pub(super) fn responded(&self, response: &mut Response<Body>) {
        let status = response.extensions_mut().remove::<Arc<Status>>();
        if let Some(record) = &self.record {
            record.responded(response.status().as_u16(), status.as_deref());
        }
    }

    /// The handler panicked.
    pub(super) fn panicked(&self, panic: &(dyn Any + Send)) {
        if let Some(record) = &self.record {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            record.panicked(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown"));
        }
    }
}

/// Path and query, as the client sent them.
pub(super) fn request_line(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |line| line.as_str())
}
