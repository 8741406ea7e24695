//! Bearer tokens, reviewed by kube-apiserver and remembered for a moment. Tokens are kept and compared as hashes only
//! and never logged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dashmap::DashMap;
use k8s_openapi::api::authentication::v1::{TokenReview as Review, TokenReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use picoshift_machinery::UserInfo;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Identity, Method};
use crate::single_flight::SingleFlight;

/// How long an answer counts.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// Most answers that are kept.
const MAX_KEPT: usize = 10_000;
/// Longest token that is looked at.
const MAX_TOKEN: usize = 64 * 1024;
/// Time that kube-apiserver has.
const REVIEW_TIME: Duration = Duration::from_secs(10);
/// Reviews at a time.
const REVIEWS: usize = 64;

/// A token could not be reviewed. Says nothing about the token itself.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(pub String);

/// Knows whose a token is.
#[async_trait]
pub trait TokenReview: Send + Sync {
    /// The user of a token, `None` when the token is no good.
    ///
    /// # Errors
    /// [`TokenError`] when that could not be found out, or the reviewer says what is wrong with the token: such an
    /// answer is not remembered.
    async fn review(&self, token: &str) -> Result<Option<UserInfo>, TokenError>;
}

/// Reviews by kube-apiserver.
pub struct KubeTokenReview {
    reviews: Api<Review>,
    permits: Semaphore,
}

impl KubeTokenReview {
    /// Asks with `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { reviews: Api::all(client), permits: Semaphore::new(REVIEWS) }
    }
}

#[async_trait]
impl TokenReview for KubeTokenReview {
    async fn review(&self, token: &str) -> Result<Option<UserInfo>, TokenError> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
        let question = Review { spec, ..Review::default() };
        let ask = async {
            let _permit = self.permits.acquire().await;
            self.reviews.create(&PostParams::default(), &question).await
        };
        let answer = timeout(REVIEW_TIME, ask)
            .await
            .map_err(|_| TokenError("no answer to the TokenReview in time".to_owned()))?
            .map_err(|error| TokenError(error.to_string()))?;
        let status = answer.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return match status.error.filter(|error| !error.is_empty()) {
                Some(error) => Err(TokenError(error)),
                None => Ok(None),
            };
        }
        let user = status.user.unwrap_or_default();
        Ok(Some(UserInfo {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default().into_iter().collect::<BTreeMap<_, _>>(),
        }))
    }
}

type Key = [u8; 32];
type Answer = Result<Option<Arc<Identity>>, TokenError>;

struct Kept {
    identity: Option<Arc<Identity>>,
    until: Instant,
}

/// Identities of bearer tokens.
pub struct TokenAuthenticator {
    review: Arc<dyn TokenReview>,
    kept: Arc<DashMap<Key, Kept>>,
    flights: SingleFlight<Key, Answer>,
}

impl TokenAuthenticator {
    /// Asks `review` about tokens that are not remembered.
    #[must_use]
    pub fn new(review: Arc<dyn TokenReview>) -> Self {
        Self { review, kept: Arc::default(), flights: SingleFlight::default() }
    }

    /// The identity of a token; `None` when it is no good.
    ///
    /// # Errors
    /// [`TokenError`]; not remembered.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Arc<Identity>>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let key: Key = Sha256::digest(token.as_bytes()).into();
        if let Some(kept) = self.kept.get(&key)
            && Instant::now() < kept.until
        {
            return Ok(kept.identity.clone());
        }
        let (review, kept, token) = (Arc::clone(&self.review), Arc::clone(&self.kept), token.to_owned());
        let answer = self.flights.run(key, || async move {
            let user = review.review(&token).await?;
            let identity = user.map(|user| Identity::authenticated(user, Method::BearerToken));
            make_room(&kept);
            kept.insert(key, Kept { identity: identity.clone(), until: Instant::now() + KEPT_FOR });
            Ok(identity)
        });
        answer.await.unwrap_or_else(|| Err(TokenError("the review of a token failed".to_owned())))
    }
}

fn make_room(kept: &DashMap<Key, Kept>) {
    if kept.len() >= MAX_KEPT {
        let now = Instant::now();
        kept.retain(|_, answer| now < answer.until);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
    }
}
