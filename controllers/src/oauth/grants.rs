//! What users have granted to clients: OAuthClientAuthorization objects.

use serde_json::{Value, json};

use super::api::{Api, ApiError, oauth, oauth_object};
use super::scopes::merge;
use super::session::User;

const RESOURCE: &str = "oauthclientauthorizations";
/// How often it is begun anew when somebody else was faster.
const RETRIES: u32 = 3;

fn path(user: &User, client: &str) -> String {
    oauth_object(RESOURCE, &format!("{}:{client}", user.name))
}

fn scopes(object: &Value) -> Vec<String> {
    let scopes = object["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    scopes.map(ToOwned::to_owned).collect()
}

/// What the user has granted to the client. A grant of a user of that name who is gone is taken away.
///
/// # Errors
/// [`ApiError`].
pub async fn granted(api: &dyn Api, user: &User, client: &str) -> Result<Vec<String>, ApiError> {
    let path = path(user, client);
    let Some(object) = api.find(&path).await? else { return Ok(Vec::new()) };
    if object["userUID"] == user.uid.as_str() {
        return Ok(scopes(&object));
    }
    api.delete_read(&path, &object).await?;
    Ok(Vec::new())
}

/// Adds scopes to what the user has granted to the client.
///
/// # Errors
/// [`ApiError`].
pub async fn grant(api: &dyn Api, user: &User, client: &str, more: &[String]) -> Result<(), ApiError> {
    let mut left = RETRIES;
    loop {
        match try_grant(api, user, client, more).await {
            Err(error) if error.is_conflict() && left > 0 => left -= 1,
            result => return result,
        }
    }
}

async fn try_grant(api: &dyn Api, user: &User, client: &str, more: &[String]) -> Result<(), ApiError> {
    let path = path(user, client);
    if let Some(mut object) = api.find(&path).await? {
        if object["userUID"] == user.uid.as_str() {
            object["scopes"] = json!(merge(&scopes(&object), more));
            return api.replace(&path, &object).await.map(drop);
        }
        api.delete_read(&path, &object).await?;
    }
    let object = json!({
        "apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClientAuthorization",
        "metadata": {"name": format!("{}:{client}", user.name)},
        "userName": user.name, "userUID": user.uid, "clientName": client, "scopes": more,
    });
    api.create(&oauth(RESOURCE), &object).await.map(drop)
}
