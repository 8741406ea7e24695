//! From identities to users: which User an Identity belongs to, and what is made when it is seen for the first time.

use serde_json::{Value, json};

use super::api::{Api, ApiError, user_object, users};
use super::provider::Identity;
use super::session::User;

/// How often it is begun anew when somebody else was faster.
const RETRIES: u32 = 3;
/// Names that `generate` tries.
const MOST_NAMES: u32 = 100;

/// How a new identity becomes a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The user of its name, if that is nobody else's.
    Claim,
    /// The user that somebody has mapped it to before.
    Lookup,
    /// The user of its name, whoever else has it.
    Add,
    /// A user of its name, or of the next one that is free.
    Generate,
}

impl Method {
    /// Reads the name; empty is `claim`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "claim" => Some(Self::Claim),
            "lookup" => Some(Self::Lookup),
            "add" => Some(Self::Add),
            "generate" => Some(Self::Generate),
            _ => None,
        }
    }
}

/// Why there is no user.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The user is somebody else's.
    #[error(
        "user {user:?} cannot be claimed by identity {identity:?} because it is already mapped to [{mapped}]"
    )]
    Claimed {
        /// The user.
        user: String,
        /// The identity.
        identity: String,
        /// What it is mapped to.
        mapped: String,
    },
    /// Nobody has mapped it.
    #[error("lookup of user for {identity:?} failed: {why}")]
    Lookup {
        /// The identity.
        identity: String,
        /// Why.
        why: ApiError,
    },
    /// The identity is there, and its user is not, or knows nothing of it.
    #[error("useridentitymappings.user.openshift.io {0:?} not found")]
    Unmapped(String),
    /// All names are taken.
    #[error("Could not create user, max attempts exceeded")]
    NoName,
    /// Something went wrong.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// The user of an identity; made if the method says so.
///
/// # Errors
/// [`MappingError`].
pub async fn user_of(api: &dyn Api, identity: &Identity, method: Method) -> Result<User, MappingError> {
    if method == Method::Lookup {
        return lookup(api, &identity.name()).await;
    }
    let mut left = RETRIES;
    loop {
        if let Some(stored) = api.find(&user_object("identities", &identity.name())).await? {
            return mapped(api, &stored).await;
        }
        match provision(api, identity, method).await {
            Err(MappingError::Api(error)) if error.is_conflict() && left > 0 => left -= 1,
            result => return result,
        }
    }
}

async fn lookup(api: &dyn Api, identity: &str) -> Result<User, MappingError> {
    let failed = |why| MappingError::Lookup { identity: identity.to_owned(), why };
    let get = |path: String| async move { api.send(http::Method::GET, &path, None).await };
    let mapping = get(user_object("useridentitymappings", identity)).await.map_err(failed)?;
    let name = mapping["user"]["name"].as_str().unwrap_or_default();
    Ok(user(&get(user_object("users", name)).await.map_err(failed)?))
}

/// The user that a stored identity names, if the user knows of it.
async fn mapped(api: &dyn Api, identity: &Value) -> Result<User, MappingError> {
    let name = identity["metadata"]["name"].as_str().unwrap_or_default();
    let unmapped = || MappingError::Unmapped(name.to_owned());
    let user_name = identity["user"]["name"].as_str().filter(|name| !name.is_empty()).ok_or_else(unmapped)?;
    let stored = api.send(http::Method::GET, &user_object("users", user_name), None).await?;
    let found = user(&stored);
    if identity["user"]["uid"] != found.uid.as_str() || !identities(&stored).any(|own| own == name) {
        return Err(unmapped());
    }
    Ok(found)
}

async fn provision(api: &dyn Api, identity: &Identity, method: Method) -> Result<User, MappingError> {
    let stored = match method {
        Method::Generate => generate(api, identity).await?,
        _ => claim(api, identity, method == Method::Add).await?,
    };
    let user = user(&stored);
    let object = json!({
        "apiVersion": "user.openshift.io/v1", "kind": "Identity",
        "metadata": {"name": identity.name()},
        "providerName": identity.provider,
        "providerUserName": identity.user_name,
        "user": {"name": user.name, "uid": user.uid},
    });
    api.create(&users("identities"), &object).await?;
    Ok(user)
}

async fn claim(api: &dyn Api, identity: &Identity, shared: bool) -> Result<Value, MappingError> {
    let path = user_object("users", &identity.preferred_name);
    let Some(mut stored) = api.find(&path).await? else {
        return create(api, &identity.preferred_name, identity).await;
    };
    let name = identity.name();
    if identities(&stored).any(|own| own == name) {
        return Ok(stored);
    }
    let mut mapped: Vec<String> = identities(&stored).map(ToOwned::to_owned).collect();
    if !shared && !mapped.is_empty() {
        let user = identity.preferred_name.clone();
        return Err(MappingError::Claimed { user, identity: name, mapped: mapped.join(" ") });
    }
    mapped.push(name);
    stored["identities"] = json!(mapped);
    Ok(api.replace(&path, &stored).await?)
}

async fn generate(api: &dyn Api, identity: &Identity) -> Result<Value, MappingError> {
    for number in 1..=MOST_NAMES {
        let name = match number {
            1 => identity.preferred_name.clone(),
            _ => format!("{}{number}", identity.preferred_name),
        };
        match api.find(&user_object("users", &name)).await? {
            None => return create(api, &name, identity).await,
            Some(stored) if identities(&stored).any(|own| own == identity.name()) => return Ok(stored),
            Some(_) => {}
        }
    }
    Err(MappingError::NoName)
}

async fn create(api: &dyn Api, name: &str, identity: &Identity) -> Result<Value, MappingError> {
    let object = json!({
        "apiVersion": "user.openshift.io/v1", "kind": "User",
        "metadata": {"name": name}, "identities": [identity.name()],
    });
    Ok(api.create(&users("users"), &object).await?)
}

fn identities(user: &Value) -> impl Iterator<Item = &str> {
    user["identities"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn user(stored: &Value) -> User {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    User { name: text(&stored["metadata"]["name"]), uid: text(&stored["metadata"]["uid"]) }
}

#[cfg(test)]
mod tests;
