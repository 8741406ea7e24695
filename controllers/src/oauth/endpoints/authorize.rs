//! `/oauth/authorize`: a client sends its user here, and gets back a code or a token, or why not.

use http::StatusCode;
use http::header::{HeaderName, WARNING, WWW_AUTHENTICATE};
use picoshift_machinery::{bootstrap_user, plain, scope};

use super::{Endpoints, Unknown};
use crate::oauth::call::Call;
use crate::oauth::client::{Client, GrantMethod};
use crate::oauth::directory::{CODE, Known};
use crate::oauth::grants;
use crate::oauth::pages;
use crate::oauth::redirect_uri;
use crate::oauth::reply::{self, ErrorCode, Reply};
use crate::oauth::scopes::{self, covers};
use crate::oauth::tokens::{self, Challenge, Grant};
use crate::oauth::url::{Values, query_escape, query_unescape};

/// Programs send this header to be challenged; a page of another site cannot make a browser send it.
const CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");
const REALM: &str = "Basic realm=\"openshift\"";

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseType {
    Code,
    Token,
}

/// A request whose client and redirect URI are good: errors go to the client from here on.
struct Request<'a> {
    call: &'a Call,
    client: Client,
    redirect_uri: String,
    response: ResponseType,
    challenge: Challenge,
    state: &'a str,
}

/// What the grants say.
enum Granted {
    Yes(Vec<String>),
    /// The client is told why not.
    No(Reply),
    /// The user is asked.
    Ask(Reply),
}

impl Request<'_> {
    /// The client is told what went wrong.
    fn refuse(&self, code: ErrorCode, text: &str, state: &str) -> Reply {
        reply::to_client(&self.redirect_uri, reply::error(code.id(), text, state), false)
    }
}

impl Endpoints {
    pub(super) async fn authorize(&self, call: &Call) -> Reply {
        let request = match self.request(call).await {
            Ok(request) => request,
            Err(reply) => return reply,
        };
        if !call.value("error").is_empty() {
            return bounced(&request);
        }
        let known = self.directory.known();
        let user = match self.who(call, &known).await {
            Ok(user) => user,
            Err(Unknown::Nobody) => return self.ask_who(&request, &known),
            Err(Unknown::Failed(reply)) => return reply,
        };
        let grant = Grant {
            client: request.client.name.clone(),
            scopes: Vec::new(),
            redirect_uri: request.redirect_uri.clone(),
            user,
        };
        let (reply, user) = match self.check_grant(&request, &grant).await {
            Granted::Ask(reply) => return reply,
            Granted::No(reply) => (reply, grant.user),
            Granted::Yes(scopes) => {
                let grant = Grant { scopes, ..grant };
                (self.finish(&request, &grant, &known).await, grant.user)
            }
        };
        // The session was for this one request; only kube:admin, whom no provider remembers, goes on.
        if user.name == bootstrap_user::NAME { reply } else { Self::without_session(reply, &known) }
    }

    /// Checks what may not be told to the client yet, then what may.
    async fn request<'a>(&self, call: &'a Call) -> Result<Request<'a>, Reply> {
        let state = call.value("state");
        // Escaped twice by some clients, and read twice by upstream.
        let Some(redirect) = query_unescape(call.value("redirect_uri")) else {
            return Err(reply::json_error(ErrorCode::InvalidRequest, ""));
        };
        let client = match Client::find(self.api(), call.value("client_id")).await {
            Ok(Some(client)) if !client.redirect_uris.is_empty() => client,
            Ok(_) => return Err(reply::json_error(ErrorCode::UnauthorizedClient, state)),
            Err(error) => {
                tracing::warn!(%error, "cannot look up an OAuth client");
                return Err(reply::json_error(ErrorCode::ServerError, state));
            }
        };
        let redirect_uri = redirect_uri::choose(&client.redirect_uris, &redirect).map_err(|error| {
            tracing::debug!(client = client.name, %error, "a redirect is refused");
            reply::json_error(ErrorCode::InvalidRequest, state)
        })?;
        let (response, challenge) = (ResponseType::Token, Challenge::default());
        let request = Request { call, client, redirect_uri, response, challenge, state };
        match call.value("response_type") {
            "token" => Ok(request),
            "code" => match challenge_of(call) {
                Ok(challenge) => Ok(Request { response: ResponseType::Code, challenge, ..request }),
                Err(text) => Err(request.refuse(ErrorCode::InvalidRequest, text, state)),
            },
            _ => Err(request.refuse(ErrorCode::UnsupportedResponseType, "", state)),
        }
    }

    /// Answers who has not said who it is: with a challenge, a login page, or a choice of them.
    fn ask_who(&self, request: &Request<'_>, known: &Known) -> Reply {
        let call = request.call;
        if request.client.challenges {
            return challenge(call);
        }
        let chosen = call.query.get("idp");
        let to_login = |provider| {
            let path = known.login_path(provider);
            reply::redirect(call, &format!("{path}?then={}", query_escape(&call.target())))
        };
        if !chosen.is_empty() {
            return match known.provider(chosen) {
                Some(provider) => to_login(provider),
                None => plain::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("Error: Unable to locate redirect handler: {}", pages::escape(chosen)),
                ),
            };
        }
        match known.providers.as_slice() {
            [only] => to_login(only),
            several => {
                let link = |name: &str| {
                    let mut query = call.query.clone();
                    query.set("idp", name);
                    (name.to_owned(), format!("{}?{}", call.path, query.encode()))
                };
                pages::providers(several.iter().map(|provider| link(provider.passwords.name())).collect())
            }
        }
    }

    /// Whether the user has granted what is asked for, or need not.
    async fn check_grant(&self, request: &Request<'_>, grant: &Grant) -> Granted {
        // Upstream leaves out the state in all of these.
        let no = |code, text: &str| Granted::No(request.refuse(code, text, ""));
        let mut asked = scopes::split(request.call.value("scope"));
        if asked.is_empty() {
            asked.push(scopes::FULL.to_owned());
        }
        let errors: Vec<String> = scope::validate(&asked, "").iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [] => {}
            [only] => return no(ErrorCode::InvalidScope, only),
            several => return no(ErrorCode::InvalidScope, &format!("[{}]", several.join(", "))),
        }
        let is_refused = |scope: &&String| request.client.may_ask_for(std::slice::from_ref(*scope)).is_err();
        let mut refused: Vec<&str> = asked.iter().filter(is_refused).map(String::as_str).collect();
        if !refused.is_empty() {
            refused.sort_unstable();
            refused.dedup();
            return no(ErrorCode::AccessDenied, &format!("scope denied: {}", refused.join(" ")));
        }
        match grants::granted(self.api(), &grant.user, &grant.client).await {
            Ok(granted) if covers(&granted, &asked) => return Granted::Yes(asked),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot look up what a user has granted");
                return no(ErrorCode::ServerError, "");
            }
        }
        match request.client.grant {
            GrantMethod::Auto => Granted::Yes(asked),
            GrantMethod::Deny => Granted::No(request.refuse(ErrorCode::AccessDenied, "", request.state)),
            GrantMethod::Prompt => Granted::Ask(ask_grant(request, &asked)),
        }
    }

    /// Makes the code or the token.
    async fn finish(&self, request: &Request<'_>, grant: &Grant, known: &Known) -> Reply {
        let mut told = Values::default();
        let made = match request.response {
            ResponseType::Code => {
                let made =
                    tokens::make_code(self.api(), grant, request.state, &request.challenge, CODE).await;
                made.map(|code| {
                    told.set("code", code);
                    told.set("state", request.state);
                })
            }
            ResponseType::Token => {
                let seconds = request.client.max_age.unwrap_or(known.access_seconds);
                let times = (seconds, known.inactivity_seconds);
                let made = tokens::make_access(self.api(), &request.client, grant, None, times).await;
                made.map(|token| {
                    self.logins.metrics.tokens.inc();
                    told.set("access_token", token);
                    told.set("token_type", "Bearer");
                    told.set("expires_in", seconds.to_string());
                    told.set("scope", grant.scopes.join(" "));
                    if !request.state.is_empty() {
                        told.set("state", request.state);
                    }
                })
            }
        };
        let in_fragment = request.response == ResponseType::Token;
        if let Err(error) = made {
            tracing::warn!(client = grant.client, %error, "cannot make a token");
            told = reply::error(ErrorCode::ServerError.id(), "", request.state);
        }
        reply::to_client(&request.redirect_uri, told, in_fragment)
    }
}

/// The challenge that the code is to be bound to.
fn challenge_of(call: &Call) -> Result<Challenge, &'static str> {
    let text = call.value("code_challenge");
    if text.is_empty() {
        return Ok(Challenge::default());
    }
    let method = match call.value("code_challenge_method") {
        "" | "plain" => "plain",
        "S256" => "S256",
        _ => return Err("code_challenge_method transform algorithm not supported (rfc7636)"),
    };
    if !super::token::is_verifier(text) {
        return Err("code_challenge invalid (rfc7636)");
    }
    Ok(Challenge { text: text.to_owned(), method: method.to_owned() })
}

/// An error that came with the request goes on to the client.
fn bounced(request: &Request<'_>) -> Reply {
    let call = request.call;
    let mut told = reply::error(call.value("error"), call.value("error_description"), request.state);
    if !call.value("error_uri").is_empty() {
        told.set("error_uri", call.value("error_uri"));
    }
    reply::to_client(&request.redirect_uri, told, false)
}

/// 401 for programs.
fn challenge(call: &Call) -> Reply {
    if !call.header(CSRF_HEADER).is_empty() {
        return reply::with_header(reply::empty(StatusCode::UNAUTHORIZED), WWW_AUTHENTICATE, REALM);
    }
    let text = "A non-empty X-CSRF-Token header is required to receive basic-auth challenges";
    let reply = plain::text(StatusCode::UNAUTHORIZED, format!("{text}\n"));
    reply::with_header(reply, WARNING, &format!("199 Origin \"{text}\""))
}

/// Sends the user to the page that asks. The way there and back is relative, so that it also works behind a proxy that
/// knows this server by another path.
fn ask_grant(request: &Request<'_>, asked: &[String]) -> Reply {
    let query = &request.call.raw_query;
    let then = if query.is_empty() { "../authorize".to_owned() } else { format!("../authorize?{query}") };
    let told = Values::from([
        ("then", then.as_str()),
        ("client_id", &request.client.name),
        ("scope", &asked.join(" ")),
        ("redirect_uri", &request.redirect_uri),
    ]);
    reply::found(&format!("authorize/approve?{}", told.encode()))
}
