//! `oauth.openshift.io/v1`: clients, access tokens and authorization codes, what users granted to clients, and the tokens
//! that a user sees as her own.
//!
//! In: requests. Out: four stored resources; a token is stored under a hash, never as itself, and goes when it expires.
//!
//! Behaviour: `oauth-apiserver/pkg/oauth` and `…/pkg/tokenvalidation`.

mod activity;
mod clients;
mod expiry;
mod go_json;
mod lifetime;
mod own_tokens;
mod printing;
mod redirect_uri;
mod resources;
mod reviews;
mod service_account_client;
mod strategies;
#[cfg(test)]
mod tests;
mod tokens;
mod validation;

use std::sync::Arc;

pub use clients::{FindRoute, ServiceAccounts};
pub use resources::{
    ACCESS_TOKENS, AUTHORIZE_TOKENS, CLIENT_AUTHORIZATIONS, CLIENTS, TOKEN_REVIEWS, USER_TOKENS,
};
pub use tokens::BootstrapSecret;
use tokio::task::JoinSet;

use self::activity::Activity;
use self::clients::Clients;
use self::expiry::{Expiring, Expiry};
use self::tokens::Tokens;
use crate::admission::Admission;
use crate::authn::memberships::Memberships;
use crate::authn::token_review::TokenReview;
use crate::registry::{Registry, Strategy};
use crate::rest::Storage;
use crate::store::{Engine, StoreError};

/// The API group.
pub const GROUP: &str = "oauth.openshift.io";

/// What the group is made from.
pub struct Ingredients {
    /// The store.
    pub engine: Arc<dyn Engine>,
    /// What all writes are asked about.
    pub admission: Arc<Admission>,
    /// Service accounts, which are clients too.
    pub accounts: Arc<dyn ServiceAccounts>,
    /// Routes, by which service accounts say where they are.
    pub find_route: FindRoute,
    /// The users that are stored.
    pub users: Arc<Registry>,
    /// Who is in which group.
    pub memberships: Arc<Memberships>,
    /// The bootstrap administrator.
    pub bootstrap: Arc<dyn BootstrapSecret>,
    /// How tokens are reviewed.
    pub config: Config,
}

/// How tokens are reviewed.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The audiences that tokens are for.
    pub audiences: Vec<String>,
    /// Seconds after which a token times out that nobody uses, for clients that say none; 0 for never.
    pub inactivity_seconds: i64,
}

/// The group, running.
pub struct OAuth {
    /// Its resources.
    pub storages: Vec<Arc<dyn Storage>>,
    /// Whose a token is.
    pub tokens: Arc<dyn TokenReview>,
    /// What takes tokens away as they end, and notes their uses, until this is dropped.
    pub tasks: JoinSet<()>,
}

/// Loads the group's resources from the store; tokens that have expired meanwhile go before anybody sees them.
///
/// # Errors
/// The store's.
pub async fn start(ingredients: Ingredients) -> Result<OAuth, StoreError> {
    let Ingredients { engine, admission, accounts, find_route, users, memberships, bootstrap, config } =
        ingredients;
    let registry =
        |strategy: Arc<dyn Strategy>| Registry::start(Arc::clone(&engine), strategy, Arc::clone(&admission));
    let stored = registry(Arc::new(strategies::OAuthClients)).await?;
    let clients = Arc::new(Clients { stored: Arc::clone(&stored), accounts, find_route });

    let tokens = async |resource, rules| {
        let expiry = Arc::new(Expiry::default());
        let (clients, of_strategy) = (Arc::clone(&clients), Arc::clone(&expiry));
        let strategy = strategies::StoredTokens { resource, rules, clients, expiry: of_strategy };
        Ok::<_, StoreError>(Arc::new(Expiring { registry: registry(Arc::new(strategy)).await?, expiry }))
    };
    let access_tokens = tokens(&resources::ACCESS_TOKENS, strategies::ACCESS).await?;
    let authorize_tokens = tokens(&resources::AUTHORIZE_TOKENS, strategies::AUTHORIZE).await?;

    let authorizations = registry(Arc::new(strategies::ClientAuthorizations(clients))).await?;

    let mut tasks = JoinSet::new();
    for tokens in [&access_tokens, &authorize_tokens] {
        tokens.purge().await;
        tasks.spawn(Arc::clone(tokens).run());
    }
    let registry = Arc::clone(&access_tokens.registry);
    let activity = Activity::new(registry, Arc::clone(&stored), config.inactivity_seconds);
    tasks.spawn(Arc::clone(&activity).run());
    let tokens = Arc::new(Tokens {
        stored: Arc::clone(&access_tokens),
        users,
        memberships,
        bootstrap,
        activity,
        audiences: config.audiences,
    });
    let own = own_tokens::OwnTokens(Arc::clone(&access_tokens));
    let reviews = reviews::TokenReviews(Arc::clone(&tokens));
    let storages: Vec<Arc<dyn Storage>> =
        vec![stored, access_tokens, authorize_tokens, authorizations, Arc::new(own), Arc::new(reviews)];
    Ok(OAuth { storages, tokens, tasks })
}
