//! Remembers what another authorizer said: allow and deny for ten seconds, as openshift-apiserver does.
//!
//! A get of many names must not cost a review each. So the first question leaves the name out: who may do it to all
//! names may do it to this one. Only a no to that is followed by the question about the name. Two kinds are asked as
//! they are: projects (their name is their namespace) and users with token scopes (whose scopes may name objects).

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dashmap::DashMap;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::user_info::MASTERS;
use picoshift_machinery::{Status, UserInfo};

use super::{Attributes, Authorizer, Decision, Scopes, is_project};
use crate::authn::{Identity, user_hash};
use crate::server::metrics::Metrics;
use crate::single_flight::SingleFlight;

/// How long an answer counts.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Most answers that are kept.
const MAX_KEPT: usize = 50_000;

/// Longest question that is kept, in bytes of what the client chooses. Longer ones (paths above all, which anybody may
/// make up) are asked each time, so that memory holds no more than the number of answers allows.
const MAX_QUESTION: usize = 1024;

/// A question by reference: a hit copies nothing.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
struct Asked<'a> {
    verb: &'a str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
    path: &'a str,
}

impl<'a> From<&'a Attributes> for Asked<'a> {
    fn from(a: &'a Attributes) -> Self {
        Self {
            verb: &a.verb,
            group: &a.group,
            version: &a.version,
            resource: &a.resource,
            subresource: &a.subresource,
            namespace: &a.namespace,
            name: &a.name,
            path: &a.path,
        }
    }
}

impl<'a> From<&'a RequestInfo> for Asked<'a> {
    fn from(info: &'a RequestInfo) -> Self {
        let own = is_project(&info.group, &info.resource) && !info.name.is_empty();
        Self {
            verb: &info.verb,
            group: &info.group,
            version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: if own { &info.name } else { &info.namespace },
            name: &info.name,
            path: if info.is_resource { "" } else { &info.path },
        }
    }
}

impl Asked<'_> {
    fn to_attributes(self) -> Attributes {
        Attributes {
            verb: self.verb.to_owned(),
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            path: self.path.to_owned(),
        }
    }

    /// Bytes of what the client chooses.
    fn size(self) -> usize {
        let Self { verb, group, version, resource, subresource, namespace, name, path } = self;
        [verb, group, version, resource, subresource, namespace, name, path]
            .iter()
            .map(|text| text.len())
            .sum()
    }

    /// Paths that probes ask without any permission.
    fn is_open(self) -> bool {
        self.resource.is_empty()
            && (matches!(self.path, "/healthz" | "/livez" | "/readyz") || self.path.starts_with("/healthz/"))
    }
}

/// A question that is kept, and the user who asked it.
#[derive(Clone, PartialEq, Eq)]
struct Question {
    user: Arc<UserInfo>,
    user_hash: u64,
    attributes: Attributes,
}

impl Hash for Question {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.user_hash, &self.attributes).hash(state);
    }
}

struct Kept {
    question: Question,
    decision: Decision,
    until: Instant,
}

/// Answers by hash of the question; the question itself is compared on every hit.
#[derive(Default)]
struct Answers {
    hasher: RandomState,
    kept: DashMap<u64, Kept>,
}

impl Answers {
    fn key(&self, user_hash: u64, asked: Asked<'_>) -> u64 {
        self.hasher.hash_one((user_hash, asked))
    }

    fn find(&self, user: &UserInfo, user_hash: u64, asked: Asked<'_>) -> Option<Decision> {
        let kept = self.kept.get(&self.key(user_hash, asked))?;
        let question = &kept.question;
        let same_user = std::ptr::eq(&*question.user, user) || *question.user == *user;
        let hit = same_user && Asked::from(&question.attributes) == asked && Instant::now() < kept.until;
        hit.then(|| kept.decision.clone())
    }

    fn keep(&self, question: Question, decision: Decision, ttl: Duration) {
        if Asked::from(&question.attributes).size() > MAX_QUESTION {
            return;
        }
        let now = Instant::now();
        if self.kept.len() >= MAX_KEPT {
            self.kept.retain(|_, answer| now < answer.until);
            if self.kept.len() >= MAX_KEPT {
                self.kept.clear();
            }
        }
        let key = self.key(question.user_hash, Asked::from(&question.attributes));
        self.kept.insert(key, Kept { question, decision, until: now + ttl });
    }
}

/// An authorizer with a memory.
///
/// What token scopes prevent is denied first and remembered by nobody, also to members of `system:masters`.
pub struct CachedAuthorizer {
    upstream: Arc<dyn Authorizer>,
    scopes: Scopes,
    answers: Arc<Answers>,
    flights: SingleFlight<Question, Result<Decision, Status>>,
    ttl: Duration,
    metrics: Arc<Metrics>,
}

impl CachedAuthorizer {
    /// Remembers the answers of `upstream`, and denies what `scopes` prevent.
    #[must_use]
    pub fn new(upstream: Arc<dyn Authorizer>, scopes: Scopes, metrics: Arc<Metrics>) -> Self {
        let answers = Arc::default();
        Self { upstream, scopes, answers, flights: SingleFlight::default(), ttl: KEPT_FOR, metrics }
    }

    /// What token scopes prevent.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Another time to remember.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Whether `identity` may make a request.
    ///
    /// # Errors
    /// A 500 when no decision could be had.
    pub async fn authorize_request(
        &self,
        identity: &Identity,
        info: &RequestInfo,
    ) -> Result<Decision, Status> {
        self.decide(&identity.user, || Arc::clone(&identity.user), identity.hash, Asked::from(info)).await
    }

    /// A decision that no earlier answer is good enough for; it is remembered for others.
    ///
    /// # Errors
    /// A 500 when no decision could be had.
    pub async fn authorize_afresh(
        &self,
        user: Arc<UserInfo>,
        attributes: Attributes,
    ) -> Result<Decision, Status> {
        if let Some(reason) = self.scopes.prevent(user.scopes(), &attributes)? {
            return Ok(Decision::Deny { reason });
        }
        let user_hash = user_hash(&user);
        self.ask(Question { user, user_hash, attributes }).await
    }

    async fn decide(
        &self,
        user: &UserInfo,
        shared: impl Fn() -> Arc<UserInfo> + Send + Sync,
        hash: u64,
        asked: Asked<'_>,
    ) -> Result<Decision, Status> {
        if asked.is_open() {
            return Ok(Decision::Allow);
        }
        if !user.scopes().is_empty()
            && let Some(reason) = self.scopes.prevent(user.scopes(), &asked.to_attributes())?
        {
            return Ok(Decision::Deny { reason });
        }
        if user.in_group(MASTERS) {
            return Ok(Decision::Allow);
        }
        let named = !asked.name.is_empty();
        if named && user.scopes().is_empty() && !is_project(asked.group, asked.resource) {
            let whole = Asked { name: "", ..asked };
            if self.remembered(user, &shared, hash, whole).await? == Decision::Allow {
                return Ok(Decision::Allow);
            }
        }
        self.remembered(user, &shared, hash, asked).await
    }

    async fn remembered(
        &self,
        user: &UserInfo,
        shared: &(impl Fn() -> Arc<UserInfo> + Send + Sync),
        user_hash: u64,
        asked: Asked<'_>,
    ) -> Result<Decision, Status> {
        if let Some(decision) = self.answers.find(user, user_hash, asked) {
            self.metrics.access_cache_hits.inc();
            return Ok(decision);
        }
        self.ask(Question { user: shared(), user_hash, attributes: asked.to_attributes() }).await
    }

    async fn ask(&self, question: Question) -> Result<Decision, Status> {
        let (upstream, answers, ttl) = (Arc::clone(&self.upstream), Arc::clone(&self.answers), self.ttl);
        let metrics = Arc::clone(&self.metrics);
        let asked = question.clone();
        let answer = self.flights.run(question, || async move {
            metrics.access_reviews.inc();
            let decision = upstream.authorize(&asked.user, &asked.attributes).await?;
            answers.keep(asked, decision.clone(), ttl);
            Ok(decision)
        });
        answer.await.unwrap_or_else(|| Err(Status::internal("the access review failed")))
    }
}

#[async_trait]
impl Authorizer for CachedAuthorizer {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status> {
        self.decide(user, || Arc::new(user.clone()), user_hash(user), Asked::from(attributes)).await
    }
}

#[cfg(test)]
mod tests;
