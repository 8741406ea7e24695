//! Whose an OAuth token is (`oauth-apiserver/pkg/tokenvalidation`).
//!
//! In: what a client sent as a bearer token. Out: the user with her groups and the token's scopes, or why the token is no
//! good. Only hashes of tokens are looked for, and what is said about a token that is not there tells nothing.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use picoshift_machinery::bootstrap_user::{self, BootstrapUser};
use picoshift_machinery::field_error::quote;
use picoshift_machinery::user_info::SCOPES_EXTRA;
use picoshift_machinery::{Object, Status, UserInfo, oauth_token};

use super::activity::Activity;
use super::expiry::Expiring;
use super::lifetime;
use super::resources::strings;
use crate::authn::memberships::{Memberships, OAUTH};
use crate::authn::token_review::{TokenError, TokenReview};
use crate::groups::user;
use crate::registry::Registry;

/// Tells what the Secret of the bootstrap administrator says.
#[async_trait]
pub trait BootstrapSecret: Send + Sync {
    /// The administrator; `None` where there is none.
    ///
    /// # Errors
    /// Why there is none, or that it cannot be found out.
    async fn bootstrap_user(&self) -> Result<Option<BootstrapUser>, String>;
}

/// Why a token is no good, in the words of the real server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    /// There is no such token, or it has no form of one.
    #[error("token lookup failed")]
    Lookup,
    #[error(transparent)]
    Over(#[from] lifetime::Over),
    #[error("user.UID ({user}) does not match token.userUID ({token})")]
    Uid { user: String, token: String },
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.own), quoted(.wanted))]
    Audience { own: Vec<String>, wanted: Vec<String> },
    /// Of the user, or of the bootstrap administrator.
    #[error("{0}")]
    Other(String),
}

fn quoted(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| quote(text)).collect();
    format!("[{}]", list.join(" "))
}

/// Whose a token is, and for which audiences.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) user: UserInfo,
    pub(super) audiences: Vec<String>,
}

/// Knows the tokens.
pub(super) struct Tokens {
    pub(super) stored: Arc<Expiring>,
    pub(super) users: Arc<Registry>,
    pub(super) memberships: Arc<Memberships>,
    pub(super) bootstrap: Arc<dyn BootstrapSecret>,
    pub(super) activity: Arc<Activity>,
    /// The audiences that every token is for.
    pub(super) audiences: Vec<String>,
}

impl Tokens {
    /// Whose a token is; it has to be for one of `audiences`, where there are any.
    ///
    /// # Errors
    /// Why it is nobody's: all that was found, as the real server tells it.
    pub(super) async fn owner(&self, token: &str, audiences: &[String]) -> Result<Owner, String> {
        let now = Timestamp::now();
        let name = oauth_token::object_name(token).ok_or_else(|| Refused::Lookup.to_string())?;
        let token = self.stored.find(&name).ok_or_else(|| Refused::Lookup.to_string())?;
        let met = self.meet(audiences);
        let found = match self.of_user(&token, now) {
            Ok(user) => Ok(user),
            Err(why) if token.str_at(&["userName"]) == bootstrap_user::NAME => {
                let found = self.of_administrator(&token, now).await;
                let found = found.and_then(|user| met.clone().map(|_| user).map_err(Some));
                found.map_err(|other| vec![Some(why), other])
            }
            Err(why) => Err(vec![Some(why)]),
        };
        let user = found.map_err(aggregate)?;
        let audiences = met.map_err(|why| why.to_string())?;
        self.activity.used(&token, now);
        Ok(Owner { user, audiences })
    }

    fn of_user(&self, token: &Object, now: Timestamp) -> Result<UserInfo, Refused> {
        let name = token.str_at(&["userName"]);
        let found = self.users.find("", name).and_then(|item| item.object().ok());
        let user =
            found.ok_or_else(|| Refused::Other(Status::not_found(user::GROUP, "users", name).message))?;
        check(token, user.uid(), now)?;
        let mut info = UserInfo {
            name: name.to_owned(),
            uid: user.uid().to_owned(),
            groups: vec![OAUTH.to_owned()],
            extra: scopes_of(token),
        };
        if let Some(names) = self.memberships.of(&info) {
            info.groups.splice(0..0, names.iter().map(ToString::to_string));
        }
        Ok(info)
    }

    /// `Err(None)` where there is no administrator.
    async fn of_administrator(&self, token: &Object, now: Timestamp) -> Result<UserInfo, Option<Refused>> {
        let secret = self.bootstrap.bootstrap_user().await;
        let secret = secret.map_err(|why| Some(Refused::Other(why)))?.ok_or(None)?;
        check(token, &secret.uid, now)?;
        Ok(UserInfo {
            name: bootstrap_user::NAME.to_owned(),
            // His uid comes from his password.
            uid: String::new(),
            groups: vec![bootstrap_user::GROUP.to_owned()],
            extra: scopes_of(token),
        })
    }

    /// The audiences that are both ours and wanted; ours, where none are wanted.
    fn meet(&self, wanted: &[String]) -> Result<Vec<String>, Refused> {
        let both = |own: &&String| wanted.is_empty() || wanted.contains(own);
        let audiences: Vec<String> = self.audiences.iter().filter(both).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(Refused::Audience { own: self.audiences.clone(), wanted: wanted.to_vec() });
        }
        Ok(audiences)
    }
}

/// Whether a token is still good, and the user's of this uid.
fn check(token: &Object, uid: &str, now: Timestamp) -> Result<(), Refused> {
    lifetime::check_end(token, now)?;
    let of_token = token.str_at(&["userUID"]);
    if of_token != uid {
        return Err(Refused::Uid { user: uid.to_owned(), token: of_token.to_owned() });
    }
    Ok(lifetime::check_timeout(token, now)?)
}

fn scopes_of(token: &Object) -> std::collections::BTreeMap<String, Vec<String>> {
    let scopes = strings(token, "scopes").into_iter().map(str::to_owned).collect();
    [(SCOPES_EXTRA.to_owned(), scopes)].into()
}

/// Several reasons as one, each once.
fn aggregate(reasons: Vec<Option<Refused>>) -> String {
    let mut texts: Vec<String> = reasons.into_iter().flatten().map(|reason| reason.to_string()).collect();
    texts.dedup();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Callers of our own server: what kube-apiserver would be told.
#[async_trait]
impl TokenReview for Tokens {
    async fn review(&self, token: &str) -> Result<Option<UserInfo>, TokenError> {
        self.owner(token, &[]).await.map(|owner| Some(owner.user)).map_err(TokenError)
    }
}
