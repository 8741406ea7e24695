//! Attempts to log in: throttled, asked of the providers, mapped to a user, counted.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::api::Api;
use super::directory::Provider;
use super::mapping::{self, MappingError};
use super::metrics::{Means, OAuthMetrics, Outcome};
use super::provider::{Found, Hashing, ProviderError};
use super::session::User;
use super::throttle::Throttle;

/// Why nobody can say whether the password is right.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Too many failed for now.
    #[error("too many failed logins; try again in {} seconds", .0.as_secs().max(1))]
    Throttled(Duration),
    /// The password is right, and there is no user for it.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Several did.
    #[error("[{0}]")]
    Several(String),
}

impl LoginError {
    /// The word for it in the address of the login page.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Mapping(MappingError::Claimed { .. }) => "mapping_claim_error",
            Self::Mapping(MappingError::Lookup { .. }) => "mapping_lookup_error",
            Self::Mapping(_) | Self::Provider(_) | Self::Several(_) | Self::Throttled(_) => {
                "authentication_error"
            }
        }
    }
}

/// Where attempts are made.
pub struct Logins {
    /// Who stores users.
    pub api: Arc<dyn Api>,
    /// Who counts failures.
    pub throttle: Throttle,
    /// Where passwords are hashed.
    pub hashing: Hashing,
    /// What is counted.
    pub metrics: OAuthMetrics,
}

impl Logins {
    /// The user whose name and password these are to the first of the providers that knows; `None` if none does.
    ///
    /// # Errors
    /// [`LoginError`].
    pub async fn attempt(
        &self,
        providers: &[Arc<Provider>],
        (name, password): (&str, &str),
        address: IpAddr,
        means: Means,
    ) -> Result<Option<User>, LoginError> {
        let attempt = match self.throttle.begin(name, address).await {
            Ok(attempt) => attempt,
            Err(wait) => {
                self.metrics.throttled.inc();
                return Err(LoginError::Throttled(wait));
            }
        };
        let result = self.ask(providers, name, password).await;
        self.metrics.count(
            means,
            match &result {
                Ok(Some(_)) => Outcome::Success,
                Ok(None) => Outcome::Failure,
                Err(_) => Outcome::Error,
            },
        );
        match &result {
            // The guess was right, or was not even looked at.
            Ok(Some(_)) | Err(LoginError::Mapping(_) | LoginError::Provider(ProviderError::Busy)) => {
                attempt.forgive();
            }
            Ok(None) | Err(_) => drop(attempt),
        }
        result
    }

    async fn ask(
        &self,
        providers: &[Arc<Provider>],
        name: &str,
        password: &str,
    ) -> Result<Option<User>, LoginError> {
        let mut errors = Vec::new();
        for provider in providers {
            match self.ask_one(provider, name, password).await {
                Ok(Some(user)) => return Ok(Some(user)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(provider = provider.passwords.name(), %error, "cannot authenticate");
                    errors.push(error);
                }
            }
        }
        match errors.len() {
            0 => Ok(None),
            1 => errors.pop().map_or(Ok(None), Err),
            _ => {
                let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                texts.dedup();
                Err(LoginError::Several(texts.join(", ")))
            }
        }
    }

    async fn ask_one(
        &self,
        provider: &Provider,
        name: &str,
        password: &str,
    ) -> Result<Option<User>, LoginError> {
        match provider.passwords.authenticate(name, password, &self.hashing).await? {
            None => Ok(None),
            Some(Found::User(user)) => Ok(Some(user)),
            Some(Found::Identity(identity)) => {
                Ok(Some(mapping::user_of(self.api.as_ref(), &identity, provider.mapping).await?))
            }
        }
    }
}
