//! Who a caller is in the end, impersonation included: what kube-apiserver says of the caller's own headers. It is never
//! guessed; where it cannot be learnt, the request takes the way through kube-apiserver.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use picoshift_machinery::media_type::{self, Encoding};
use picoshift_machinery::{Status, body};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::caller::Caller;
use crate::claims::{Claims, User};
use crate::headers;
use crate::metrics::Metrics;
use crate::relay::AnswerBody;
use crate::upstream::{Outgoing, Pool};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEW: &[u8] = br#"{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}"#;
/// How long an identity is believed.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Identities that are remembered.
const MOST: usize = 10_000;
/// Bytes of an answer that are read.
const MOST_BYTES: usize = 1 << 20;
/// Time for the question.
const PATIENCE: Duration = Duration::from_secs(10);

type Key = [u8; 32];
type Cell = Arc<OnceCell<Arc<Claims>>>;

/// What has been learnt of a caller.
pub enum Learnt {
    /// Who it is.
    User(Arc<Claims>),
    /// What kube-apiserver says to the caller: it would say the same to the request.
    Answer(Response<AnswerBody>),
    /// Nothing.
    Unknown,
}

/// Learns and remembers who callers are.
pub struct Identities {
    known: Mutex<HashMap<Key, Entry>>,
    metrics: Arc<Metrics>,
}

struct Entry {
    cell: Cell,
    until: Instant,
}

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewStatus {
    user_info: User,
}

impl Identities {
    /// Nobody is known.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { known: Mutex::default(), metrics }
    }

    /// Who `caller` with these headers is. `pool` is the one over which its requests go.
    pub async fn learn(&self, pool: &Pool, caller: &Caller, own: &HeaderMap) -> Learnt {
        let key = key(caller, own);
        let cell = self.cell(key);
        if let Some(claims) = cell.get() {
            self.metrics.identity_hits.inc();
            return Learnt::User(Arc::clone(claims));
        }
        match cell.get_or_try_init(|| self.ask(pool, own)).await {
            Ok(claims) => Learnt::User(Arc::clone(claims)),
            Err(other) => {
                let mut known = self.known.lock();
                if known.get(&key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, &cell) && !cell.initialized())
                {
                    known.remove(&key);
                }
                other
            }
        }
    }

    /// The place of an identity: known, asked for, or new.
    fn cell(&self, key: Key) -> Cell {
        let now = Instant::now();
        let mut known = self.known.lock();
        if let Some(entry) = known.get(&key)
            && now < entry.until
        {
            return Arc::clone(&entry.cell);
        }
        if known.len() >= MOST {
            known.retain(|_, entry| now < entry.until);
        }
        let cell = Cell::default();
        if known.len() < MOST {
            known.insert(key, Entry { cell: Arc::clone(&cell), until: now + REMEMBERED });
        }
        self.metrics.identities.set(i64::try_from(known.len()).unwrap_or(i64::MAX));
        cell
    }

    async fn ask(&self, pool: &Pool, own: &HeaderMap) -> Result<Arc<Claims>, Learnt> {
        self.metrics.identity_reviews.inc();
        let mut outgoing = Outgoing {
            method: Method::POST,
            target: PathAndQuery::from_static(REVIEWS),
            headers: question(own),
            body: None,
            ready: Some(Bytes::from_static(REVIEW)),
            expects_continue: false,
            patience: Some(PATIENCE),
            shares: false,
        };
        let answer = pool.send(&mut outgoing).await.map_err(|error| {
            tracing::debug!(%error, "an identity was not learnt");
            Learnt::Unknown
        })?;
        let (mut head, body) = answer.response.into_parts();
        let read = tokio::time::timeout(PATIENCE, Limited::new(body, MOST_BYTES).collect()).await;
        let Ok(Ok(body)) = read else { return Err(Learnt::Unknown) };
        let bytes = body.to_bytes();
        if head.status == StatusCode::CREATED {
            let review: Review = serde_json::from_slice(&bytes).map_err(|_| Learnt::Unknown)?;
            let claims = Claims::new(&review.status.user_info).map_err(|_| Learnt::Unknown)?;
            return Ok(Arc::new(claims));
        }
        // Who wants an error in another encoding gets it from kube-apiserver on the usual way.
        let accept = own.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let json = media_type::of_errors(accept).encoding == Encoding::Json;
        let meant = match head.status {
            StatusCode::UNAUTHORIZED | StatusCode::INTERNAL_SERVER_ERROR => true,
            StatusCode::FORBIDDEN => !is_about_reviews(&bytes),
            _ => false,
        };
        if !json || !meant {
            return Err(Learnt::Unknown);
        }
        headers::drop_hop_by_hop(&mut head.headers);
        Err(Learnt::Answer(Response::from_parts(head, AnswerBody::Own(body::full(bytes)))))
    }
}

/// Whether a refusal is about the question itself. What cannot be read is taken for one.
fn is_about_reviews(body: &[u8]) -> bool {
    let Ok(status) = serde_json::from_slice::<Status>(body) else { return true };
    status.details.is_none_or(|details| details.kind == "selfsubjectreviews")
}

/// The headers of the question: all that says who the caller is, and nothing else of the request.
fn question(own: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in own {
        let says_who = *name == AUTHORIZATION || headers::is_impersonation(name) || headers::is_claim(name);
        if says_who || *name == USER_AGENT || *name == HOST || name.as_str() == "x-forwarded-for" {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

/// What tells callers apart: the credential, and every header of impersonation with its values, in their order.
fn key(caller: &Caller, own: &HeaderMap) -> Key {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    match caller {
        Caller::Vouched(vouched) => {
            part(b"certificate");
            part(&vouched.fingerprint);
        }
        Caller::Own => part(b"own"),
        Caller::Doubtful => part(b"doubtful"),
    }
    let says_who = |name: &HeaderName| *name == AUTHORIZATION || headers::is_impersonation(name);
    for (name, value) in own.iter().filter(|(name, _)| says_who(name)) {
        part(name.as_str().as_bytes());
        part(value.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn whoever_differs_in_anything_is_another() {
        let token = ("authorization", "Bearer t");
        let callers = [
            map(&[]),
            map(&[token]),
            map(&[("authorization", "Bearer u")]),
            map(&[token, ("impersonate-user", "a")]),
            map(&[token, ("impersonate-user", "b")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-group", "g")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-group", "g"), ("impersonate-group", "h")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-group", "h"), ("impersonate-group", "g")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-uid", "g")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-extra-x", "g")]),
            map(&[token, ("impersonate-user", "a"), ("impersonate-extra-xg", "")]),
        ];
        let keys: std::collections::HashSet<Key> =
            callers.iter().map(|headers| key(&Caller::Own, headers)).collect();
        assert_eq!(keys.len(), callers.len());
        let mut same = map(&[token, ("accept", "x"), ("user-agent", "y")]);
        assert_eq!(key(&Caller::Own, &same), key(&Caller::Own, &map(&[token])));
        same.insert("cookie", HeaderValue::from_static("z"));
        assert_eq!(question(&same).len(), 4, "no cookie, our own accept and content type");
    }

    #[test]
    fn only_a_refusal_of_the_question_says_nothing() {
        let status = |kind: &str| {
            let status = Status::forbidden("g", kind, "n", "why");
            is_about_reviews(&serde_json::to_vec(&status.to_value()).unwrap())
        };
        assert!(status("selfsubjectreviews"));
        assert!(!status("users"));
        assert!(is_about_reviews(b"no JSON"));
    }

    proptest! {
        #[test]
        fn names_and_values_do_not_run_into_each_other(one in "[a-c]{0,3}", other in "[a-c]{0,3}") {
            let headers = |a: &str, b: &str| map(&[("impersonate-group", a), ("impersonate-group", b)]);
            let same = key(&Caller::Own, &headers(&one, &other)) == key(&Caller::Own, &headers(&other, &one));
            prop_assert_eq!(same, one == other);
        }
    }
}
