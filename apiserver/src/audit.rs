//! The audit log: who asked for what and what came of it, one JSON line per event, as `audit.k8s.io/v1` has it.
//!
//! A [`policy::Policy`] decides by the request what is recorded of it. A [`record::Record`] is one request's; it becomes
//! an event at each stage, the last of them when the request ends, however it ends. [`log::Log`] writes the lines.

use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use jiff::Timestamp;
use picoshift_machinery::UserInfo;
use picoshift_machinery::peer::Peer;
use picoshift_machinery::request_info::RequestInfo;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub mod event;
pub mod log;
pub mod policy;
pub mod record;
mod source;

use event::{Event, ObjectReference, Person};
use log::Log;
use policy::{Level, Policy};
pub use record::Record;

/// Longest user agent that is recorded.
const MAX_USER_AGENT: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabel {
    level: &'static str,
}

/// What is recorded of requests, and where.
pub struct Audit {
    policy: Policy,
    log: Arc<Log>,
    events: Counter,
    levels: Family<LevelLabel, Counter>,
}

/// A request as the audit log sees it, before anything is done about it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Its audit id.
    pub id: &'a str,
    /// When it came.
    pub received: Timestamp,
    /// Path and query, as sent.
    pub uri: &'a str,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The other end of the connection.
    pub peer: &'a Peer,
    /// What the path says.
    pub info: &'a RequestInfo,
    /// Who asks; `None` while nobody knows.
    pub user: Option<&'a UserInfo>,
    /// Whether it may last long: then the beginning of its answer is an event too.
    pub long: bool,
}

impl Audit {
    /// Records by `policy` into `log`; counts in `registry`.
    #[must_use]
    pub fn new(policy: Policy, log: Arc<Log>, registry: &mut Registry) -> Self {
        let audit = Self { policy, log, events: Counter::default(), levels: Family::default() };
        registry.register("apiserver_audit_event", "Audit events made", audit.events.clone());
        registry.register(
            "apiserver_audit_level",
            "Requests by the level of their audit",
            audit.levels.clone(),
        );
        registry.register("apiserver_audit_error", "Audit events that were lost", audit.log.lost());
        audit
    }

    /// Begins the record of a request, if the policy wants one.
    #[must_use]
    pub fn begin(&self, subject: Subject<'_>) -> Option<Arc<Record>> {
        let rule = self.policy.decide(subject.user, subject.info);
        self.levels.get_or_create(&LevelLabel { level: rule.level.word() }).inc();
        if rule.level == Level::None {
            return None;
        }
        let event = Event {
            level: rule.level,
            audit_id: subject.id.to_owned(),
            request_uri: subject.uri.to_owned(),
            verb: subject.info.verb.clone(),
            user: subject.user.map(Person::from).unwrap_or_default(),
            source_ips: source::addresses(subject.headers, subject.peer.address.ip()),
            user_agent: user_agent(subject.headers),
            object: subject.info.is_resource.then(|| ObjectReference::from(subject.info)),
            received: subject.received,
            ..Event::default()
        };
        let (log, events) = (Arc::clone(&self.log), self.events.clone());
        Some(Arc::new(Record::new(event, rule, subject.long, log, events)))
    }

    /// Records a request that nobody is known to have sent, and the refusal of it. `message` says why.
    pub fn refused(&self, subject: Subject<'_>, code: u16, message: &str) {
        if let Some(record) = self.begin(Subject { long: true, ..subject }) {
            record.refused(code, message);
        }
    }
}

fn user_agent(headers: &HeaderMap) -> String {
    let text = headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let text = text.unwrap_or_default();
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_USER_AGENT).last() {
        Some(end) if text.len() > MAX_USER_AGENT => format!("{}...TRUNCATED", &text[..end]),
        _ => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
