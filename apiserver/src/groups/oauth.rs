//! `oauth.openshift.io/v1`: clients, access tokens and authorization codes, what users granted to clients, and the tokens
//! that a user sees as her own.
//!
//! In: requests. Out: four stored resources; a token is stored under a hash, never as itself, and goes when it expires.
//!
//! Behaviour: `oauth-apiserver/pkg/oauth` and `…/pkg/tokenvalidation`.

mod clients;
mod expiry;
mod go_json;
mod lifetime;
mod own_tokens;
mod printing;
mod redirect_uri;
mod resources;
mod service_account_client;
mod strategies;
#[cfg(test)]
mod tests;
mod validation;

use std::sync::Arc;

pub use clients::{FindRoute, ServiceAccounts};
pub use resources::{ACCESS_TOKENS, AUTHORIZE_TOKENS, CLIENT_AUTHORIZATIONS, CLIENTS, USER_TOKENS};
use tokio::task::JoinSet;

use self::clients::Clients;
use self::expiry::{Expiring, Expiry};
use crate::admission::Admission;
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
}

/// The group, running.
pub struct OAuth {
    /// Its resources.
    pub storages: Vec<Arc<dyn Storage>>,
    /// What takes tokens away as they end, until this is dropped.
    pub tasks: JoinSet<()>,
}

/// Loads the group's resources from the store; tokens that have expired meanwhile go before anybody sees them.
///
/// # Errors
/// The store's.
pub async fn start(ingredients: Ingredients) -> Result<OAuth, StoreError> {
    let Ingredients { engine, admission, accounts, find_route } = ingredients;
    let registry =
        |strategy: Arc<dyn Strategy>| Registry::start(Arc::clone(&engine), strategy, Arc::clone(&admission));
    let stored = registry(Arc::new(strategies::OAuthClients)).await?;
    let clients = Arc::new(Clients { stored: Arc::clone(&stored), accounts, find_route });

    let expiry = Arc::new(Expiry::default());
    let strategy = strategies::AccessTokens { clients: Arc::clone(&clients), expiry: Arc::clone(&expiry) };
    let access_tokens = Arc::new(Expiring { registry: registry(Arc::new(strategy)).await?, expiry });

    let expiry = Arc::new(Expiry::default());
    let strategy = strategies::AuthorizeTokens { clients: Arc::clone(&clients), expiry: Arc::clone(&expiry) };
    let authorize_tokens = Arc::new(Expiring { registry: registry(Arc::new(strategy)).await?, expiry });

    let authorizations = registry(Arc::new(strategies::ClientAuthorizations(clients))).await?;

    let mut tasks = JoinSet::new();
    for tokens in [&access_tokens, &authorize_tokens] {
        tokens.purge().await;
        tasks.spawn(Arc::clone(tokens).run());
    }
    let own = own_tokens::OwnTokens(Arc::clone(&access_tokens));
    let storages: Vec<Arc<dyn Storage>> =
        vec![stored, access_tokens, authorize_tokens, authorizations, Arc::new(own)];
    Ok(OAuth { storages, tasks })
}
