//! `/oauth/authorize/approve`: the user is asked what a client may do.

use http::Method;
use picoshift_machinery::bootstrap_user;

use super::{Endpoints, Unknown, csrf_token};
use crate::oauth::call::Call;
use crate::oauth::client::{Client, service_account};
use crate::oauth::csrf;
use crate::oauth::grants;
use crate::oauth::pages::{self, GrantPage};
use crate::oauth::reply::{self, Reply};
use crate::oauth::scopes::{self, describe};
use crate::oauth::session::User;
use crate::oauth::url::{Values, is_server_relative};

impl Endpoints {
    pub(super) async fn approve(&self, call: &Call) -> Reply {
        let known = self.directory.known();
        let user = match self.who(call, &known).await {
            Ok(user) => user,
            Err(Unknown::Nobody | Unknown::Failed(_)) => {
                let then = call.value("then");
                if is_server_relative(then) {
                    return reply::found(then);
                }
                return pages::grant_error("You must reauthenticate before continuing");
            }
        };
        match call.method {
            Method::GET => self.ask(call, &user).await,
            Method::POST => self.take(call, &user).await,
            _ => reply::method_not_allowed(),
        }
    }

    /// The client, if it may ask for these scopes.
    async fn client(&self, id: &str, asked: &[String]) -> Result<Client, Reply> {
        let Ok(Some(client)) = Client::find(self.api(), id).await else {
            return Err(pages::grant_error("Could not find client for client_id"));
        };
        match client.may_ask_for(asked) {
            Ok(()) => Ok(client),
            Err(why) => {
                let asked = asked.join(" ");
                Err(pages::grant_error(&format!("{id} requested illegal scopes ([{asked}]): {why}")))
            }
        }
    }

    async fn ask(&self, call: &Call, user: &User) -> Reply {
        let asked = scopes::split(call.query.get("scope"));
        let client = match self.client(call.query.get("client_id"), &asked).await {
            Ok(client) => client,
            Err(reply) => return reply,
        };
        let Some((token, is_new)) = csrf_token(call) else { return pages::error("No randomness.") };
        let granted = grants::granted(self.api(), user, &client.name).await.unwrap_or_default();
        let described: Vec<_> = asked.iter().map(|scope| describe(scope, &granted)).collect();
        let account = service_account::split(&client.name);
        let page = pages::grant(&GrantPage {
            then: call.query.get("then"),
            csrf: &token,
            client: &client.name,
            account,
            user: &user.name,
            redirect_uri: call.query.get("redirect_uri"),
            granted: granted.iter().map(|scope| describe(scope, &granted)).collect(),
            asked: described,
        });
        if is_new { reply::with_cookie(page, csrf::COOKIE, &token) } else { page }
    }

    async fn take(&self, call: &Call, user: &User) -> Reply {
        let form = &call.form;
        if !csrf::fits(call.cookie(csrf::COOKIE), form.get("csrf")) {
            return pages::grant_error("Invalid CSRF token");
        }
        if form.get("user_name") != user.name {
            return pages::grant_error("User did not match");
        }
        let asked: Vec<String> = form.all("scope").flat_map(scopes::split).collect();
        let then = form.get("then");
        if form.get("approve").is_empty() || asked.is_empty() {
            let why = "Access denied, but no redirect URL was specified";
            return back(then, "error", "access_denied").unwrap_or_else(|| pages::grant_error(why));
        }
        let client = match self.client(form.get("client_id"), &asked).await {
            Ok(client) => client,
            Err(reply) => return reply,
        };
        if let Err(error) = grants::grant(self.api(), user, &client.name, &asked).await {
            tracing::warn!(client = client.name, %error, "cannot keep what a user grants");
            return pages::grant_error(match user.name.as_str() {
                bootstrap_user::NAME => "Could not create client authorization",
                _ => "Could not update client authorization",
            });
        }
        let why = "Access granted, but no redirect URL was specified";
        back(then, "scope", &asked.join(" ")).unwrap_or_else(|| pages::grant_error(why))
    }
}

/// Back to the request, with one more parameter; `None` if `then` leads anywhere else. Upstream follows it wherever it
/// leads.
fn back(then: &str, name: &str, value: &str) -> Option<Reply> {
    let is_ours =
        then.strip_prefix("../authorize").is_some_and(|rest| rest.is_empty() || rest.starts_with('?'));
    if !is_ours && !is_server_relative(then) {
        return None;
    }
    let then = then.split('#').next().unwrap_or_default();
    // The path stays as it is written: `/%2Fhost`, decoded, would be another server.
    let (path, query) = then.split_once('?').unwrap_or((then, ""));
    let mut query = Values::parse(query);
    query.set(name, value);
    Some(reply::found(&format!("{path}?{}", query.encode())))
}
