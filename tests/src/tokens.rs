//! OAuth tokens as the OAuth server would issue them: an object under a hash, and the token that hashes to it.

use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::Http;
use crate::objects::unique;
use crate::tls::Protocol;
use crate::{Actor, ControlPlane};

/// The group version.
pub const OAUTH: &str = "/apis/oauth.openshift.io/v1";

/// A token, and whose it is.
#[derive(Debug, Clone)]
pub struct Token {
    /// What its holder sends.
    pub raw: String,
    /// Name of its object.
    pub name: String,
    /// Name of its user.
    pub user: String,
    /// Uid of its user.
    pub uid: String,
}

/// An object of the group.
#[must_use]
pub fn object(kind: &str, name: &str, with: &Value) -> Value {
    let mut object = json!({"apiVersion": "oauth.openshift.io/v1", "kind": kind, "metadata": {"name": name}});
    if let (Some(object), Some(with)) = (object.as_object_mut(), with.as_object()) {
        object.extend(with.clone());
    }
    object
}

impl Token {
    /// Issues a token to a user, who is made where she is not there, by a client of her own. `with` is changed in the
    /// token's object.
    ///
    /// # Errors
    /// When an object is refused.
    pub async fn issue(admin: &Actor, user: &str, with: &Value) -> anyhow::Result<Self> {
        let users = "/apis/user.openshift.io/v1/users";
        let body = json!({"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": user}});
        let made = admin.api.post(users, &body).await?;
        let made = match made.status.as_u16() {
            409 => admin.api.get(&format!("{users}/{user}")).await?.ok()?,
            _ => made.expect_code(201)?,
        };
        let uid = made["metadata"]["uid"].as_str().context("no uid")?;
        Self::issue_as(admin, user, uid, with).await
    }

    /// The same, for whoever has this name and uid.
    ///
    /// # Errors
    /// When an object is refused.
    pub async fn issue_as(admin: &Actor, user: &str, uid: &str, with: &Value) -> anyhow::Result<Self> {
        let client = unique("client");
        let body = object("OAuthClient", &client, &json!({"grantMethod": "auto"}));
        admin.api.post(&format!("{OAUTH}/oauthclients"), &body).await?.expect_code(201)?;
        let secret = format!("{}-{}", unique("secret"), "x".repeat(16));
        let name = format!("sha256~{}", BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&secret)));
        let fields = json!({"clientName": client, "userName": user, "userUID": uid, "expiresIn": 86400,
            "scopes": ["user:full"], "redirectURI": "https://x.example/cb"});
        let mut token = object("OAuthAccessToken", &name, &fields);
        if let (Some(token), Some(with)) = (token.as_object_mut(), with.as_object()) {
            token.extend(with.clone());
        }
        admin.api.post(&format!("{OAUTH}/oauthaccesstokens"), &token).await?.expect_code(201)?;
        Ok(Self { raw: format!("sha256~{secret}"), name, user: user.to_owned(), uid: uid.to_owned() })
    }

    /// Her client of kube-apiserver, and of our server directly.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn clients(&self, plane: &ControlPlane) -> anyhow::Result<(Http, Http)> {
        let value = format!("Bearer {}", self.raw);
        let client =
            |endpoint| Http::new(endpoint, None, Protocol::Any)?.with_header("authorization", &value);
        Ok((client(&plane.stage.kube)?, client(&plane.stage.ours)?))
    }

    /// Path of its object.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{OAUTH}/oauthaccesstokens/{}", self.name)
    }
}
