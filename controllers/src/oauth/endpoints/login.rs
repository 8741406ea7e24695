//! `/login` and `/login/NAME`: the page that asks for name and password, and what comes of it.

use std::slice;
use std::sync::Arc;

use http::{Method, StatusCode};

use super::{Endpoints, csrf_token, nothing_here};
use crate::oauth::call::Call;
use crate::oauth::csrf;
use crate::oauth::directory::{Known, Provider};
use crate::oauth::logins::LoginError;
use crate::oauth::metrics::Means;
use crate::oauth::pages::{self, text_of};
use crate::oauth::provider::ProviderError;
use crate::oauth::reply::{self, Reply};
use crate::oauth::url::{Values, is_server_relative, query_unescape};

impl Endpoints {
    pub(super) async fn login(&self, call: &Call) -> Reply {
        let known = self.directory.known();
        let Some(provider) = provider(&known, &call.path) else { return nothing_here(call) };
        match call.method {
            Method::GET => form(call, call.query.get("then"), StatusCode::OK, text_of_reason(call)),
            Method::POST => self.log_in(call, &known, provider).await,
            _ => reply::method_not_allowed(),
        }
    }

    async fn log_in(&self, call: &Call, known: &Known, provider: &Arc<Provider>) -> Reply {
        if !csrf::fits(call.cookie(csrf::COOKIE), call.value("csrf")) {
            return again(call, "token_expired");
        }
        let then = call.value("then");
        if !is_server_relative(then) {
            return reply::redirect(call, "/");
        }
        let (name, password) = (call.value("username"), call.value("password"));
        if name.is_empty() {
            return again(call, "user_required");
        }
        if password.is_empty() {
            return again(call, "access_denied");
        }
        let providers = slice::from_ref(provider);
        match self.logins.attempt(providers, (name, password), call.address, Means::Form).await {
            Ok(Some(user)) => self
                .with_session(reply::redirect(call, then), known, &user)
                .unwrap_or_else(|| again(call, "authentication_error")),
            Ok(None) => again(call, "access_denied"),
            Err(LoginError::Throttled(wait)) => {
                let text = "Too many failed logins. Please wait a minute and try again.";
                let page = form(call, then, StatusCode::TOO_MANY_REQUESTS, text);
                reply::with_header(page, http::header::RETRY_AFTER, &wait.as_secs().max(1).to_string())
            }
            Err(LoginError::Provider(ProviderError::Busy)) => form(
                call,
                then,
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many logins at a time. Please try again.",
            ),
            Err(error) => again(call, error.reason()),
        }
    }
}

/// Whose login page a path is.
fn provider<'a>(known: &'a Known, path: &str) -> Option<&'a Arc<Provider>> {
    match (path.strip_prefix("/login/"), known.providers.as_slice()) {
        (Some(name), _) => known.provider(&query_unescape(&name.replace('+', "%2B"))?),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

fn text_of_reason(call: &Call) -> &'static str {
    match call.query.get("reason") {
        "" => "",
        reason => text_of(reason),
    }
}

/// The page, for who wants to get to a place on this server.
fn form(call: &Call, then: &str, code: StatusCode, error: &str) -> Reply {
    if !is_server_relative(then) {
        return reply::redirect(call, "/");
    }
    let Some((token, is_new)) = csrf_token(call) else { return pages::error("No randomness.") };
    let page = pages::login(code, &call.path, then, &token, error);
    if is_new { reply::with_cookie(page, csrf::COOKIE, &token) } else { page }
}

/// Back to the page, with a reason.
fn again(call: &Call, reason: &str) -> Reply {
    let mut query = Values::from([("reason", reason)]);
    let then = call.value("then");
    if !then.is_empty() {
        query.set("then", then);
    }
    reply::found(&format!("{}?{}", call.path, query.encode()))
}
