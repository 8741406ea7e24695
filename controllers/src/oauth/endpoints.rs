//! The endpoints, and which of them answers a request.

use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use picoshift_machinery::Status;
use picoshift_machinery::body::full;
use picoshift_machinery::bootstrap_user;
use picoshift_machinery::plain;

use super::api::Api;
use super::call::Call;
use super::directory::{Directory, Known};
use super::logins::{LoginError, Logins};
use super::metrics::Means;
use super::provider::ProviderError;
use super::reply::{self, Reply};
use super::session::{self, User};
use super::{csrf, pages};

mod approve;
mod authorize;
mod login;
mod logout;
#[cfg(test)]
mod tests;
mod token;
mod token_pages;

/// What the server is told when it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its own URL, as clients call it, without a slash at its end.
    pub issuer: String,
    /// The URL of the API, for people to copy.
    pub api_url: String,
    /// Where the console is; who logs out may be sent there.
    pub console_url: Option<String>,
}

/// The OAuth server without its listener.
pub struct Endpoints {
    settings: Settings,
    directory: Arc<Directory>,
    logins: Logins,
    clock: fn() -> Timestamp,
}

/// Why it is not known who asks.
enum Unknown {
    /// There are no credentials, or wrong ones.
    Nobody,
    /// It could not be found out.
    Failed(Reply),
}

impl Endpoints {
    /// Endpoints that know what `directory` knows.
    #[must_use]
    pub fn new(
        settings: Settings,
        directory: Arc<Directory>,
        logins: Logins,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self { settings, directory, logins, clock }
    }

    fn api(&self) -> &dyn Api {
        self.logins.api.as_ref()
    }

    /// Answers a request.
    pub async fn answer(&self, call: &Call) -> Reply {
        let answer = match call.path.as_str() {
            "/healthz" => plain::text(StatusCode::OK, "ok"),
            "/oauth/authorize" => self.authorize(call).await,
            "/oauth/authorize/approve" => self.approve(call).await,
            "/oauth/token" => self.token(call).await,
            "/oauth/info" => self.info(call).await,
            "/oauth/token/request" => self.request_token(call).await,
            "/oauth/token/display" => self.display_token(call).await,
            "/oauth/token/implicit" => token_pages::implicit(),
            "/logout" => self.logout(call),
            path if path == "/login" || path.starts_with("/login/") => self.login(call).await,
            path if path.starts_with("/oauth/") || path.starts_with("/oauth2callback/") => nothing_here(call),
            _ => forbidden(call),
        };
        reply::with_standard_headers(answer)
    }

    /// Who asks: by the session, or else by name and password in the header.
    async fn who(&self, call: &Call, known: &Known) -> Result<User, Unknown> {
        if let Some(user) = self.in_session(call, known) {
            return Ok(user);
        }
        let basic = match call.credentials() {
            Ok(Some(basic)) => basic,
            Ok(None) => return Err(Unknown::Nobody),
            Err(text) => {
                let error = ProviderError::Failed(text.to_owned()).into();
                return Err(Unknown::Failed(failed(call, &error)));
            }
        };
        let credentials = (basic.name.as_str(), basic.password.as_str());
        match self.logins.attempt(&known.providers, credentials, call.address, Means::Basic).await {
            Ok(Some(user)) => Ok(user),
            Ok(None) => Err(Unknown::Nobody),
            Err(error) => Err(Unknown::Failed(failed(call, &error))),
        }
    }

    /// Who has logged in before.
    fn in_session(&self, call: &Call, known: &Known) -> Option<User> {
        let now = (self.clock)().as_second();
        let user = known.keys.as_ref()?.open(call.cookie(session::COOKIE)?, now)?;
        // A password of kube:admin that was changed ends its sessions.
        let is_current = user.name != bootstrap_user::NAME || known.kube_admin.as_ref() == Some(&user.uid);
        is_current.then_some(user)
    }

    /// Begins the session of `user`; `None` when there are no keys yet.
    fn with_session(&self, reply: Reply, known: &Known, user: &User) -> Option<Reply> {
        let lasts =
            if user.name == bootstrap_user::NAME { session::LASTS_FOR_KUBE_ADMIN } else { session::LASTS };
        let cookie =
            known.keys.as_ref()?.seal(Some(user), (self.clock)().as_second().saturating_add(lasts))?;
        Some(reply::with_cookie(reply, session::COOKIE, &cookie))
    }

    /// Ends a session.
    fn without_session(reply: Reply, known: &Known) -> Reply {
        match known.keys.as_ref().and_then(|keys| keys.seal(None, 0)) {
            Some(cookie) => reply::with_cookie(reply, session::COOKIE, &cookie),
            None => reply,
        }
    }
}

/// The answer when nobody can say who it is: a page for browsers, a line for programs.
fn failed(call: &Call, error: &LoginError) -> Reply {
    match error {
        LoginError::Throttled(wait) => {
            let reply = plain::plain_error(StatusCode::TOO_MANY_REQUESTS, &error.to_string());
            reply::with_header(reply, http::header::RETRY_AFTER, &wait.as_secs().max(1).to_string())
        }
        LoginError::Provider(ProviderError::Busy) => {
            let reply = plain::plain_error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
            reply::with_header(reply, http::header::RETRY_AFTER, "1")
        }
        _ if call.prefers_html() => pages::error(pages::text_of(error.reason())),
        _ => plain::text(StatusCode::INTERNAL_SERVER_ERROR, format!("Error: {error}")),
    }
}

/// The paths that a real server lists when somebody who may see them asks for another.
const PATHS: &str = "/apis /healthz /healthz/log /healthz/ping /healthz/poststarthook/max-in-flight-filter \
    /healthz/poststarthook/openshift.io-StartUserInformer /healthz/poststarthook/storage-object-count-tracker-hook \
    /livez /livez/log /livez/ping /livez/poststarthook/max-in-flight-filter \
    /livez/poststarthook/openshift.io-StartUserInformer /livez/poststarthook/storage-object-count-tracker-hook \
    /metrics /metrics/slis /readyz /readyz/log /readyz/ping /readyz/poststarthook/max-in-flight-filter \
    /readyz/poststarthook/openshift.io-StartUserInformer /readyz/poststarthook/storage-object-count-tracker-hook \
    /readyz/shutdown /version";

/// 404 where nobody has to say who it is.
fn nothing_here(_call: &Call) -> Reply {
    let paths: Vec<&str> = PATHS.split_whitespace().collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({ "paths": paths })).unwrap_or_default();
    as_json(StatusCode::NOT_FOUND, text)
}

/// Everything else is for those who may; who they are is asked by kube-apiserver only.
fn forbidden(call: &Call) -> Reply {
    let status = if call.header(AUTHORIZATION).is_empty() {
        let verb = call.method.as_str().to_ascii_lowercase();
        let message = format!("forbidden: User \"system:anonymous\" cannot {verb} path {:?}", call.path);
        Status::router(StatusCode::FORBIDDEN, "Forbidden", &message)
    } else {
        Status::unauthorized()
    };
    let agent = call.header(USER_AGENT);
    let for_people = ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name));
    let text = if for_people { ordered(&status) } else { format!("{}\n", status.to_value()) };
    as_json(status.http_code(), text)
}

/// A Status for people: in the order of its fields.
fn ordered(status: &Status) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let details = if status.details.is_some() { "  \"details\": {},\n" } else { "" };
    format!(
        "{{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {{}},\n  \"status\": \"Failure\",\n  \
         \"message\": {},\n  \"reason\": {},\n{details}  \"code\": {}\n}}",
        quoted(&status.message),
        quoted(&status.reason),
        status.code
    )
}

fn as_json(code: StatusCode, text: String) -> Reply {
    let mut reply = Reply::new(full(text));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// The token that a form must carry, and whether it has to be put into a cookie first. `None` without randomness.
fn csrf_token(call: &Call) -> Option<(String, bool)> {
    csrf::token(call.cookie(csrf::COOKIE))
}
