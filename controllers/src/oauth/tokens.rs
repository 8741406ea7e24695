//! Codes and access tokens: made with a random name, kept under its hash.

use jiff::Timestamp;
use picoshift_machinery::oauth_token::{self, object_name};
use serde_json::{Value, json};

use super::api::{Api, ApiError, oauth, oauth_object};
use super::client::Client;
use super::session::User;

const CODES: &str = "oauthauthorizetokens";
const ACCESS: &str = "oauthaccesstokens";

/// Why a token is not made or not given.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// There is no randomness to make it of.
    #[error("no randomness: {0}")]
    Random(#[from] rand::rngs::SysError),
    /// kube-apiserver would not have it.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// What a user has granted to a client, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub user: User,
    /// The client's name.
    pub client: String,
    /// What, one scope each.
    pub scopes: Vec<String>,
    /// Where the client is told.
    pub redirect_uri: String,
}

/// What a code is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Empty for none.
    pub text: String,
    /// `plain` or `S256`.
    pub method: String,
}

/// A stored code or access token.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What it stands for.
    pub grant: Grant,
    /// The code's challenge.
    pub challenge: Challenge,
    /// When it was made.
    created: Timestamp,
    /// Seconds that it lives; 0 for ever.
    expires_in: i64,
    object: Value,
}

impl Stored {
    fn read(object: Value) -> Option<Self> {
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let created = object["metadata"]["creationTimestamp"].as_str()?.parse().ok()?;
        let user = User { name: text("userName"), uid: text("userUID") };
        if user.name.is_empty() || user.uid.is_empty() {
            return None;
        }
        let scopes = object["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let scopes = scopes.map(ToOwned::to_owned).collect();
        Some(Self {
            grant: Grant { user, client: text("clientName"), scopes, redirect_uri: text("redirectURI") },
            challenge: Challenge { text: text("codeChallenge"), method: text("codeChallengeMethod") },
            created,
            expires_in: object["expiresIn"].as_i64().unwrap_or_default(),
            object,
        })
    }

    /// Seconds that are left; `None` when it is over.
    #[must_use]
    pub fn left(&self, now: Timestamp, may_be_endless: bool) -> Option<i64> {
        let left = self.created.as_second().saturating_add(self.expires_in).saturating_sub(now.as_second());
        (left >= 0 || (may_be_endless && self.expires_in == 0)).then_some(left)
    }

    /// Whether it was granted to kube:admin.
    #[must_use]
    pub fn is_of(&self, user: &str) -> bool {
        self.grant.user.name == user
    }
}

fn object(kind: &str, token: &str, grant: &Grant, expires_in: i64) -> Value {
    json!({
        "apiVersion": "oauth.openshift.io/v1", "kind": kind,
        "metadata": {"name": object_name(token)},
        "clientName": grant.client, "expiresIn": expires_in, "scopes": grant.scopes,
        "redirectURI": grant.redirect_uri, "userName": grant.user.name, "userUID": grant.user.uid,
    })
}

/// Makes a code.
///
/// # Errors
/// [`TokenError`].
pub async fn make_code(
    api: &dyn Api,
    grant: &Grant,
    state: &str,
    challenge: &Challenge,
    seconds: i64,
) -> Result<String, TokenError> {
    let code = oauth_token::generate()?;
    let mut object = object("OAuthAuthorizeToken", &code, grant, seconds);
    let further =
        [("state", state), ("codeChallenge", &challenge.text), ("codeChallengeMethod", &challenge.method)];
    for (name, value) in further.into_iter().filter(|(_, value)| !value.is_empty()) {
        object[name] = value.into();
    }
    api.create(&oauth(CODES), &object).await?;
    Ok(code)
}

/// The code, if there is one.
///
/// # Errors
/// [`ApiError`].
pub async fn find_code(api: &dyn Api, code: &str) -> Result<Option<Stored>, ApiError> {
    find(api, CODES, code).await
}

/// Uses a code up; of several who try, one is told `true`.
///
/// # Errors
/// [`ApiError`].
pub async fn use_up(api: &dyn Api, code: &Stored) -> Result<bool, ApiError> {
    let name = code.object["metadata"]["name"].as_str().unwrap_or_default();
    api.delete_read(&oauth_object(CODES, name), &code.object).await
}

/// Makes an access token; `code` is what it was given for.
///
/// # Errors
/// [`TokenError`].
pub async fn make_access(
    api: &dyn Api,
    client: &Client,
    grant: &Grant,
    code: Option<&Stored>,
    (seconds, inactivity): (i64, i64),
) -> Result<String, TokenError> {
    let token = oauth_token::generate()?;
    let mut object = object("OAuthAccessToken", &token, grant, seconds);
    let inactivity = client.inactivity.unwrap_or(inactivity);
    if inactivity > 0 {
        object["inactivityTimeoutSeconds"] = inactivity.into();
    }
    if let Some(code) = code {
        object["authorizeToken"] = code.object["metadata"]["name"].clone();
    }
    api.create(&oauth(ACCESS), &object).await?;
    Ok(token)
}

/// The access token, if there is one.
///
/// # Errors
/// [`ApiError`].
pub async fn find_access(api: &dyn Api, token: &str) -> Result<Option<Stored>, ApiError> {
    find(api, ACCESS, token).await
}

async fn find(api: &dyn Api, resource: &str, token: &str) -> Result<Option<Stored>, ApiError> {
    // What is no token has no object, and its text is no business of anybody's log.
    let Some(name) = object_name(token).filter(|_| token.len() <= 512) else { return Ok(None) };
    Ok(api.find(&oauth_object(resource, &name)).await?.and_then(Stored::read))
}
