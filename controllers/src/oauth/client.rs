//! OAuth clients: OAuthClient objects, and service accounts with annotations.

use http::Method;
use picoshift_machinery::scope::restriction::{self, Restriction};
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::api::{Api, ApiError, oauth_object};

pub mod service_account;
#[cfg(test)]
mod tests;

/// Longest client secret that is looked at: a token of a service account is the longest of them.
const LONGEST_SECRET: usize = 16 * 1024;

/// What is done when a user has not granted what the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantMethod {
    /// It is granted.
    Auto,
    /// The user is asked.
    Prompt,
    /// It is refused.
    Deny,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its `client_id`.
    pub name: String,
    /// Where its users may be sent.
    pub redirect_uris: Vec<String>,
    /// Whether it is answered with challenges for passwords instead of pages.
    pub challenges: bool,
    /// What is done without a grant.
    pub grant: GrantMethod,
    /// Seconds that its tokens live, if not the usual ones; 0 for ever.
    pub max_age: Option<i64>,
    /// Seconds that its tokens may be unused, if not the usual ones; 0 for any time.
    pub inactivity: Option<i64>,
    restrictions: Vec<Restriction>,
    secrets: Secrets,
}

#[derive(Clone)]
enum Secrets {
    /// Any of these; none for a client that keeps no secret.
    Stored(Vec<String>),
    /// A token of this service account.
    ServiceAccount,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// Why a client is not there.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No name was given.
    #[error("resource name may not be empty")]
    Nameless,
    /// A service account that says nowhere where its users may be sent.
    #[error("{0}")]
    NoRedirects(String),
    /// The object is not what it should be.
    #[error("an OAuthClient cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It could not be asked for.
    #[error(transparent)]
    Api(#[from] ApiError),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stored {
    secret: Option<String>,
    additional_secrets: Option<Vec<String>>,
    #[serde(rename = "redirectURIs")]
    redirect_uris: Option<Vec<String>>,
    respond_with_challenges: bool,
    grant_method: String,
    access_token_max_age_seconds: Option<i64>,
    access_token_inactivity_timeout_seconds: Option<i64>,
    scope_restrictions: Option<Vec<Restriction>>,
}

impl Client {
    /// The client called `id`; `None` for none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn find(api: &dyn Api, id: &str) -> Result<Option<Self>, ClientError> {
        if id.is_empty() {
            return Err(ClientError::Nameless);
        }
        if let Some((namespace, name)) = service_account::split(id) {
            return service_account::find(api, id, namespace, name).await;
        }
        // A name that no object can have; the server would complain instead of finding nothing.
        if id.contains('/') || id == "." || id == ".." || id.len() > 512 {
            return Ok(None);
        }
        let Some(object) = api.find(&oauth_object("oauthclients", id)).await? else { return Ok(None) };
        Self::read(id, object).map(Some)
    }

    fn read(id: &str, object: Value) -> Result<Self, ClientError> {
        let stored = Stored::deserialize(object)?;
        let mut secrets = stored.additional_secrets.unwrap_or_default();
        secrets.extend(stored.secret);
        secrets.retain(|secret| !secret.is_empty());
        Ok(Self {
            name: id.to_owned(),
            redirect_uris: stored.redirect_uris.unwrap_or_default(),
            challenges: stored.respond_with_challenges,
            grant: match stored.grant_method.as_str() {
                "auto" => GrantMethod::Auto,
                "prompt" => GrantMethod::Prompt,
                _ => GrantMethod::Deny,
            },
            max_age: stored.access_token_max_age_seconds,
            inactivity: stored.access_token_inactivity_timeout_seconds,
            restrictions: stored.scope_restrictions.unwrap_or_default(),
            secrets: Secrets::Stored(secrets),
        })
    }

    /// Whether it may ask for these scopes.
    ///
    /// # Errors
    /// Why not, for a person.
    pub fn may_ask_for(&self, scopes: &[String]) -> Result<(), String> {
        restriction::validate(&self.name, &self.restrictions, scopes)
    }

    /// Whether `secret` is the client's. A client without any keeps none, so only the empty one is. All are compared, each
    /// in a time that tells nothing.
    pub async fn has_secret(&self, api: &dyn Api, secret: &str) -> bool {
        if secret.len() > LONGEST_SECRET {
            return false;
        }
        let fits = match &self.secrets {
            Secrets::Stored(stored) if stored.is_empty() => secret.is_empty(),
            Secrets::Stored(stored) => stored
                .iter()
                .fold(false, |found, own| found | bool::from(own.as_bytes().ct_eq(secret.as_bytes()))),
            Secrets::ServiceAccount => false,
        };
        fits || (service_account::split(&self.name).is_some() && is_token_of(api, secret, &self.name).await)
    }
}

/// Asks whether `token` is a token of the service account `name`, for whatever audience it was made.
async fn is_token_of(api: &dyn Api, token: &str, name: &str) -> bool {
    let Some(audiences) = service_account::audiences(token) else { return false };
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences},
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    match api.send(Method::POST, path, Some(&review)).await {
        Ok(answer) => {
            let status = &answer["status"];
            status["authenticated"] == true && status["user"]["username"] == name
        }
        Err(error) => {
            tracing::warn!(client = name, %error, "cannot review the token of a service account");
            false
        }
    }
}
