//! A request that is let through, as it is sent on: without claims of its own, without what concerns the client's connection only,
//! and with what it asks of the way: a tunnel, a stream for as long as it likes, a share of a connection.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use http::header::{AUTHORIZATION, EXPECT, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use hyper::body::{Body as _, Incoming};
use hyper::upgrade::OnUpgrade;
use percent_encoding::percent_decode_str;
use picoshift_machinery::listener::Place;

use crate::caller::{Caller, Connection};
use crate::revocation::Use;
use crate::upstream::Outgoing;
use crate::{credentials, headers};

/// Subresources that stream something else than events.
const STREAMS: [&[u8]; 5] = [b"log", b"exec", b"attach", b"portforward", b"proxy"];

/// A request that is understood.
pub(crate) struct Understood {
    pub(crate) outgoing: Outgoing,
    pub(crate) caller: Caller,
    pub(crate) using: Option<Use>,
    /// It may last for ever.
    pub(crate) lasting: bool,
    pub(crate) tunnel: Option<(OnUpgrade, Option<Place>)>,
}

/// Makes a request what is sent on.
pub(crate) fn prepare(
    connection: &Connection,
    mut head: Parts,
    body: Incoming,
    caller: Caller,
    using: Option<Use>,
    patience: Duration,
) -> Understood {
    let tunnel = if head.headers.contains_key(UPGRADE) && credentials::asks_for_upgrade(&head.headers) {
        let place = head.extensions.remove::<Place>();
        head.extensions.remove::<OnUpgrade>().map(|client| (client, place))
    } else {
        None
    };
    let expects_continue =
        head.headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    headers::forward(&mut head.headers, &head.uri, connection.peer.address.ip(), tunnel.is_some());
    if let Caller::Vouched(vouched) = &caller {
        // kube-apiserver would not look at it, as it looks at certificates first.
        head.headers.remove(AUTHORIZATION);
        vouched.claims.add_to(&mut head.headers);
    }
    let target = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let lasting = tunnel.is_some() || may_last(&head.method, &target);
    let shares = tunnel.is_none() && body.is_end_stream() && is_watch(&head.method, &target);
    let outgoing = Outgoing {
        shares,
        method: head.method,
        target,
        headers: head.headers,
        body: (!body.is_end_stream()).then_some(body),
        ready: None,
        expects_continue,
        patience: (!lasting).then_some(patience),
    };
    Understood { outgoing, caller, using, lasting, tunnel }
}

/// Whether a request may go on for as long as it likes: watches, logs, whatever runs behind a proxy. It may say so too often, and
/// never too seldom, however the request is escaped: what lasts ends with its token.
fn may_last(method: &Method, target: &PathAndQuery) -> bool {
    let begins = |pair: &str| Cow::from(percent_decode_str(pair)).starts_with(b"watch");
    let watches = *method == Method::GET && target.query().is_some_and(|query| query.split('&').any(begins));
    watches || has_segment(target, &[b"watch"]) || has_segment(target, &STREAMS)
}

/// Whether a request is a watch of API objects, by its plainest spelling.
fn is_watch(method: &Method, target: &PathAndQuery) -> bool {
    let asked = |pair: &str| matches!(pair, "watch=true" | "watch=1");
    let watches = *method == Method::GET && target.query().is_some_and(|query| query.split('&').any(asked));
    watches && !has_segment(target, &STREAMS)
}

fn has_segment(target: &PathAndQuery, wanted: &[&[u8]]) -> bool {
    let path = Cow::from(percent_decode_str(target.path()));
    path.split(|byte| *byte == b'/').any(|segment| wanted.contains(&segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_may_last() {
        let lasts = |target: &str| may_last(&Method::GET, &target.parse().unwrap());
        for target in [
            "/api/v1/pods?watch=true",
            "/api/v1/pods?limit=1&watch=1",
            "/api/v1/watch/pods",
            "/api/v1/pods?%77atch=true",
            "/api/v1/w%61tch/pods",
            "/api/v1/namespaces/a/pods/b/log?follow=true",
            "/api/v1/namespaces/a/pods/b/exec?command=sh",
            "/api/v1/nodes/a/proxy/metrics",
        ] {
            assert!(lasts(target), "{target}");
        }
        assert!(!lasts("/api/v1/pods?labelSelector=watch") && !lasts("/apis/a/v1/b"));
    }

    #[test]
    fn only_watches_of_objects_share_connections() {
        let shares = |target: &str| is_watch(&Method::GET, &target.parse().unwrap());
        for target in ["/api/v1/pods?watch=true", "/api/v1/pods?limit=1&watch=1&x=y"] {
            assert!(shares(target), "{target}");
        }
        for target in [
            "/api/v1/pods",
            "/api/v1/pods?watch=false",
            "/api/v1/pods?awatch=1",
            "/api/v1/namespaces/a/pods/b/log?follow=1&watch=1",
            "/api/v1/nodes/a/%70roxy/x?watch=1",
        ] {
            assert!(!shares(target), "{target}");
        }
        assert!(!is_watch(&Method::POST, &"/api/v1/pods?watch=1".parse().unwrap()));
    }
}
