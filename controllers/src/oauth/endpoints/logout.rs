//! `/logout`: ends the browser's session here. Tokens stay; who wants to end one deletes it.

use http::{Method, StatusCode};

use super::Endpoints;
use crate::oauth::call::Call;
use crate::oauth::redirect_uri;
use crate::oauth::reply::{self, Reply};
use crate::oauth::session;
use crate::oauth::url::is_server_relative;

impl Endpoints {
    pub(super) fn logout(&self, call: &Call) -> Reply {
        if call.method != Method::POST {
            return reply::method_not_allowed();
        }
        let then = call.value("then");
        let console = self.settings.console_url.as_slice();
        let place = match then {
            "" => None,
            then if is_server_relative(then) => Some(then.to_owned()),
            // As it is spelt by whoever judged it: a backslash would be a way up to browsers.
            then => redirect_uri::choose(console, then).ok(),
        };
        let reply = place.map_or_else(|| reply::empty(StatusCode::OK), |place| reply::redirect(call, &place));
        match call.cookie(session::COOKIE) {
            Some(_) => Self::without_session(reply, &self.directory.known()),
            None => reply,
        }
    }
}
