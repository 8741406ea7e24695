//! The `default` router's entry in `status.ingress`: decided from a route and the claims, kept as [`Facts`], and
//! added to what is stored when a route is read (`openshift/router/pkg/router/controller/{host_admitter,status}`).
//!
//! The entry comes first, entries of other routers follow as they were written. An entry that a client writes in the
//! name of the `default` router is dropped: ours is the only one.

use picoshift_machinery::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::claims::{Claim, Transport, Verdict};
use super::host;
use super::view::{Tls, View};
use crate::registry::strategy::Stored;
use crate::store::{Key, Revision};

/// Name of the router whose entry is computed.
pub(super) const ROUTER: &str = "default";

/// What the entry is made from, beside the route's wildcard policy. The texts of a rejection are kept as they were
/// decided, so that a later version with other texts does not change what a revision shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The ingress domain.
    pub(super) domain: String,
    /// The host that is served or refused; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) host: String,
    /// Why the route is not admitted; `None` where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rejection: Option<Rejection>,
}

/// Reason and message of `Admitted=False`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rejection {
    pub(super) reason: String,
    pub(super) message: String,
}

impl Rejection {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

/// What a route asks of the router, before other routes are looked at.
pub(super) struct Request {
    /// The host; empty for none.
    pub(super) host: String,
    /// The claim to the host, or why there is none.
    pub(super) claim: Result<Claim, Rejection>,
}

/// Reads what a route asks for. `created` is the revision of its creation.
pub(super) fn request(object: &Object, key: &Key, created: Revision, domain: &str) -> Request {
    let view = View(object);
    let host = host::effective(view, domain);
    let claim = match refusal(view, &host) {
        Some(rejection) => Err(rejection),
        None => Ok(Claim {
            age: (seconds(object.creation_timestamp()), created),
            key: Key::clone(key),
            path: view.path().into(),
            transport: match view.tls().map(Tls::termination) {
                None => Transport::Plain,
                Some("passthrough") => Transport::Passthrough,
                Some(_) => Transport::Terminated,
            },
        }),
    };
    Request { host, claim }
}

fn refusal(view: View<'_>, host: &str) -> Option<Rejection> {
    match view.wildcard_policy() {
        "None" => {}
        "Subdomain" => {
            return Some(Rejection::new("RouteNotAdmitted", "wildcard routes are not allowed"));
        }
        other => {
            return Some(Rejection::new("RouteNotAdmitted", format!("unknown wildcard policy {other}")));
        }
    }
    if host.is_empty() {
        return Some(Rejection::new("NoHostValue", "no host value was defined for the route"));
    }
    let errors: Vec<String> = host::router_errors(host).iter().map(ToString::to_string).collect();
    if errors.is_empty() {
        return None;
    }
    Some(Rejection::new("InvalidHost", format!("host name validation errors: {}", errors.join(", "))))
}

/// A time in seconds; one that cannot be read is younger than all.
fn seconds(timestamp: &str) -> i64 {
    timestamp.parse::<jiff::Timestamp>().map_or(i64::MAX, jiff::Timestamp::as_second)
}

/// Why a verdict rejects the route `name` at `host`; `None` where it does not.
pub(super) fn rejection(verdict: &Verdict, host: &str, name: &str) -> Option<Rejection> {
    let message = match verdict {
        Verdict::Holds => return None,
        Verdict::Taken(holder) => {
            let holder = holder.rsplit('/').next().unwrap_or("");
            format!("route {holder} already exposes {host} and is older")
        }
        Verdict::Elsewhere => {
            format!("a route in another namespace holds {host} and is older than {name}")
        }
    };
    Some(Rejection::new("HostAlreadyClaimed", message))
}

/// The stored route with the router's entry.
pub(super) fn present(stored: &Stored) -> Object {
    let mut object = stored.object.clone();
    let Ok(facts) = Facts::deserialize(&stored.computed.facts) else { return object };
    let entry = entry(&facts, View(&object).wildcard_policy(), &stored.computed.since);
    match object.object_mut("status").entry("ingress").or_insert_with(|| json!([])) {
        Value::Array(list) => list.insert(0, entry),
        other => *other = json!([entry]),
    }
    object
}

fn entry(facts: &Facts, wildcard_policy: &str, since: &str) -> Value {
    let mut condition = Map::new();
    condition.insert("type".to_owned(), json!("Admitted"));
    condition.insert("status".to_owned(), json!(if facts.rejection.is_none() { "True" } else { "False" }));
    if let Some(Rejection { reason, message }) = &facts.rejection {
        condition.insert("reason".to_owned(), json!(reason));
        condition.insert("message".to_owned(), json!(message));
    }
    condition.insert("lastTransitionTime".to_owned(), json!(since));
    let mut entry = Map::new();
    if !facts.host.is_empty() {
        entry.insert("host".to_owned(), json!(facts.host));
    }
    entry.insert("routerName".to_owned(), json!(ROUTER));
    entry.insert("conditions".to_owned(), json!([condition]));
    entry.insert("wildcardPolicy".to_owned(), json!(wildcard_policy));
    entry.insert("routerCanonicalHostname".to_owned(), json!(format!("router-default.{}", facts.domain)));
    Value::Object(entry)
}

/// Removes entries in the name of the `default` router.
pub(super) fn strip(object: &mut Object) {
    let Some(Value::Object(status)) = object.0.get_mut("status") else { return };
    let Some(Value::Array(list)) = status.get_mut("ingress") else { return };
    list.retain(|entry| entry.get("routerName").and_then(Value::as_str) != Some(ROUTER));
    if list.is_empty() {
        status.remove("ingress");
    }
}
