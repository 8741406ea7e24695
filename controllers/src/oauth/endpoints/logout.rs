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
        let may_follow =
            is_server_relative(then) || (!then.is_empty() && redirect_uri::choose(console, then).is_ok());
        let reply = if may_follow { reply::redirect(call, then) } else { reply::empty(StatusCode::OK) };
        match call.cookie(session::COOKIE) {
            Some(_) => Self::without_session(reply, &self.directory.known()),
            None => reply,
        }
    }
}
