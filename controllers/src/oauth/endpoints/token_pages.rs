//! `/oauth/token/request`, `/oauth/token/display` and `/oauth/token/implicit`: how a person gets a token to copy.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use picoshift_machinery::{bootstrap_user, plain};

use super::{Endpoints, csrf_token};
use crate::oauth::call::Call;
use crate::oauth::client::Client;
use crate::oauth::csrf;
use crate::oauth::pages;
use crate::oauth::reply::{self, Reply, description};
use crate::oauth::url::Values;

const CLIENT: &str = "openshift-browser-client";
const IMPLICIT: &str = "
You have reached this page by following a redirect Location header from an OAuth authorize request.

If a response_type=token parameter was passed to the /authorize endpoint, that requested an
\"Implicit Grant\" OAuth flow (see https://tools.ietf.org/html/rfc6749#section-4.2).

That flow requires the access token to be returned in the fragment portion of a redirect header.
Rather than following the redirect here, you can obtain the access token from the Location header
(see https://tools.ietf.org/html/rfc6749#section-4.2.2):

  1. Parse the URL in the Location header and extract the fragment portion
  2. Parse the fragment using the \"application/x-www-form-urlencoded\" format
  3. The access_token parameter contains the granted OAuth access token
";

pub(super) fn implicit() -> Reply {
    let mut reply = plain::text(StatusCode::OK, IMPLICIT);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    reply
}

impl Endpoints {
    /// Our own client, if it is there already.
    async fn browser_client(&self) -> Result<Client, Reply> {
        match Client::find(self.api(), CLIENT).await {
            Ok(Some(client)) => Ok(client),
            Ok(None) | Err(_) => {
                let text = "OAuth token endpoint is not ready";
                Err(plain::plain_error(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
        }
    }

    fn display_url(&self) -> String {
        format!("{}/oauth/token/display", self.settings.issuer)
    }

    pub(super) async fn request_token(&self, call: &Call) -> Reply {
        if let Err(reply) = self.browser_client().await {
            return reply;
        }
        let query = Values::from([
            ("client_id", CLIENT),
            ("redirect_uri", &self.display_url()),
            ("response_type", "code"),
        ]);
        reply::redirect(call, &format!("{}/oauth/authorize?{}", self.settings.issuer, query.encode()))
    }

    pub(super) async fn display_token(&self, call: &Call) -> Reply {
        let client = match self.browser_client().await {
            Ok(client) => client,
            Err(reply) => return reply,
        };
        match call.method {
            Method::GET => match code(call) {
                Ok(code) => {
                    let Some((token, is_new)) = csrf_token(call) else {
                        return pages::error("No randomness.");
                    };
                    let page = pages::display_form(&call.path, code, &token);
                    if is_new { reply::with_cookie(page, csrf::COOKIE, &token) } else { page }
                }
                Err(text) => pages::display_error(StatusCode::BAD_REQUEST, &text),
            },
            Method::POST => self.show_token(call, &client).await,
            _ => reply::method_not_allowed(),
        }
    }

    async fn show_token(&self, call: &Call, client: &Client) -> Reply {
        if !csrf::fits(call.cookie(csrf::COOKIE), call.value("csrf")) {
            let text = "Could not check CSRF token. Please try again.";
            return plain::plain_error(StatusCode::BAD_REQUEST, text);
        }
        let code = match code(call) {
            Ok(code) => code,
            Err(text) => return pages::display_error(StatusCode::BAD_REQUEST, &text),
        };
        match self.exchange(client, code, &self.display_url(), "").await {
            Ok(issued) => {
                let may_log_out = issued.code.is_of(bootstrap_user::NAME);
                pages::display_token(&issued.token, &self.settings.api_url, may_log_out)
            }
            Err(code) => {
                let text = format!("Error getting token: {}", code.description());
                pages::display_error(StatusCode::INTERNAL_SERVER_ERROR, &text)
            }
        }
    }
}

/// The code in the answer of our own authorize endpoint.
fn code(call: &Call) -> Result<&str, String> {
    let text = |text: &str| format!("Error handling auth request: {text}");
    match (call.value("error"), call.value("code")) {
        ("", "") => Err(text("Requested parameter not sent")),
        ("", code) => Ok(code),
        (error, _) => match call.value("error_description") {
            "" => Err(text(description(error))),
            described => Err(text(described)),
        },
    }
}
