//! Which scopes a client may have tokens for. A client is an `OAuthClient`, or a service account that says by annotations
//! where it may be sent back to.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::field_error::quote;
use picoshift_machinery::names::path_segment;
use picoshift_machinery::scope::restriction::{self, Restriction};
use picoshift_machinery::{Object, Status};

use super::resources::CLIENTS;
use super::service_account_client;
use super::validation::service_account;
use crate::registry::Registry;

/// Reads service accounts.
#[async_trait]
pub trait ServiceAccounts: Send + Sync {
    /// A service account.
    ///
    /// # Errors
    /// 404 in kube-apiserver's words where it is not there.
    async fn service_account(&self, namespace: &str, name: &str) -> Result<Object, Status>;
}

/// Finds a Route by namespace and name.
pub type FindRoute = Box<dyn Fn(&str, &str) -> Option<Object> + Send + Sync>;

/// All clients there are.
pub(super) struct Clients {
    pub(super) stored: Arc<Registry>,
    pub(super) accounts: Arc<dyn ServiceAccounts>,
    pub(super) find_route: FindRoute,
}

impl Clients {
    /// Whether there is such a client and it may ask for these scopes.
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn check(&self, client: &str, scopes: &[&str]) -> Result<(), String> {
        let restrictions = match service_account(client) {
            Some((namespace, name)) => {
                let account = self.accounts.service_account(namespace, name).await;
                let account = account.map_err(|status| status.message)?;
                let route = |route: &str| (self.find_route)(namespace, route);
                service_account_client::restrictions(client, namespace, &account, &route)?
            }
            None => self.stored_restrictions(client)?,
        };
        restriction::validate(client, &restrictions, scopes)
    }

    fn stored_restrictions(&self, client: &str) -> Result<Vec<Restriction>, String> {
        // The real server asks itself by way of a client, which looks at names first.
        if client.is_empty() {
            return Err("resource name may not be empty".to_owned());
        }
        let why = path_segment(client);
        if !why.is_empty() {
            return Err(format!("invalid resource name {}: [{}]", quote(client), why.join(" ")));
        }
        let Some(item) = self.stored.find("", client) else {
            return Err(Status::not_found(CLIENTS.gvk.group, CLIENTS.plural, client).message);
        };
        let object = item.object().map_err(|error| error.to_string())?;
        match object.0.get("scopeRestrictions") {
            None => Ok(Vec::new()),
            Some(list) => serde_json::from_value(list.clone()).map_err(|error| error.to_string()),
        }
    }
}
