//! `/oauth/token`, where a code is exchanged for an access token, and `/oauth/info`, which tells about one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::Map;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Endpoints;
use crate::oauth::call::{Basic, Call};
use crate::oauth::client::Client;
use crate::oauth::redirect_uri;
use crate::oauth::reply::{self, ErrorCode, Reply};
use crate::oauth::tokens::{self, Challenge, Stored};

/// An access token that was made for a code.
pub(super) struct Issued {
    pub(super) token: String,
    pub(super) seconds: i64,
    pub(super) code: Stored,
}

impl Endpoints {
    pub(super) async fn token(&self, call: &Call) -> Reply {
        if !matches!(call.method, Method::GET | Method::POST) || call.is_malformed {
            return reply::json_error(ErrorCode::InvalidRequest, "");
        }
        let grant_type = call.value("grant_type");
        if !matches!(
            grant_type,
            "authorization_code" | "refresh_token" | "password" | "client_credentials" | "assertion"
        ) {
            return reply::json_error(ErrorCode::UnsupportedGrantType, "");
        }
        let Some(basic) = call.client_credentials() else {
            return reply::json_error(ErrorCode::InvalidRequest, "");
        };
        // What only these grants need, and they lack.
        let needed: &[&str] = match grant_type {
            "authorization_code" => &["code"],
            "refresh_token" => &["refresh_token"],
            "password" => &["username", "password"],
            "assertion" => &["assertion_type", "assertion"],
            _ => &[],
        };
        if needed.iter().any(|name| call.value(name).is_empty()) {
            return reply::json_error(ErrorCode::InvalidGrant, "");
        }
        let client = match self.proven_client(&basic).await {
            Ok(client) => client,
            Err(code) => return reply::json_error(code, ""),
        };
        match grant_type {
            "authorization_code" => {}
            // There are no such tokens.
            "refresh_token" => return reply::json_error(ErrorCode::InvalidGrant, ""),
            _ => return reply::json_error(ErrorCode::AccessDenied, ""),
        }
        let (code, redirect) = (call.value("code"), call.value("redirect_uri"));
        match self.exchange(&client, code, redirect, call.value("code_verifier")).await {
            Ok(issued) => reply::json(StatusCode::OK, told(&issued)),
            Err(code) => reply::json_error(code, ""),
        }
    }

    async fn proven_client(&self, basic: &Basic) -> Result<Client, ErrorCode> {
        let found = Client::find(self.api(), &basic.name).await.map_err(|error| {
            tracing::warn!(%error, "cannot look up an OAuth client");
            ErrorCode::ServerError
        })?;
        let client = found.ok_or(ErrorCode::UnauthorizedClient)?;
        if client.redirect_uris.is_empty() || !client.has_secret(self.api(), &basic.password).await {
            return Err(ErrorCode::UnauthorizedClient);
        }
        Ok(client)
    }

    /// Exchanges a code. It is used up before the token is made: who comes second gets none.
    pub(super) async fn exchange(
        &self,
        client: &Client,
        code: &str,
        redirect: &str,
        verifier: &str,
    ) -> Result<Issued, ErrorCode> {
        let found = tokens::find_code(self.api(), code).await.map_err(|error| {
            tracing::warn!(%error, "cannot look up a code");
            ErrorCode::InvalidGrant
        })?;
        let code = found.ok_or(ErrorCode::UnauthorizedClient)?;
        if code.left((self.clock)(), false).is_none() || code.grant.client != client.name {
            return Err(ErrorCode::InvalidGrant);
        }
        if client.may_ask_for(&code.grant.scopes).is_err() {
            return Err(ErrorCode::InvalidGrant);
        }
        let first = client.redirect_uris.first().map_or("", String::as_str);
        let redirect = if redirect.is_empty() { first } else { redirect };
        let redirect = redirect_uri::choose(&client.redirect_uris, redirect).ok();
        if redirect.as_ref() != Some(&code.grant.redirect_uri) {
            return Err(ErrorCode::InvalidRequest);
        }
        verify(&code.challenge, verifier)?;
        let server_error = |error: &dyn std::error::Error| {
            tracing::warn!(client = client.name, %error, "cannot exchange a code");
            ErrorCode::ServerError
        };
        if !tokens::use_up(self.api(), &code).await.map_err(|error| server_error(&error))? {
            return Err(ErrorCode::UnauthorizedClient);
        }
        let known = self.directory.known();
        let seconds = client.max_age.unwrap_or(known.access_seconds);
        let times = (seconds, known.inactivity_seconds);
        let token = tokens::make_access(self.api(), client, &code.grant, Some(&code), times).await;
        let token = token.map_err(|error| server_error(&error))?;
        self.logins.metrics.tokens.inc();
        Ok(Issued { token, seconds, code })
    }

    pub(super) async fn info(&self, call: &Call) -> Reply {
        let header = call.header(AUTHORIZATION);
        let token = match header.strip_prefix("Bearer ") {
            Some(token) => token,
            None if header.is_empty() => call.value("code"),
            None => "",
        };
        let refuse = |code| reply::json_error(code, "");
        let Ok(Some(stored)) = tokens::find_access(self.api(), token).await else {
            return refuse(ErrorCode::InvalidRequest);
        };
        let client = match Client::find(self.api(), &stored.grant.client).await {
            Ok(Some(client)) if client.may_ask_for(&stored.grant.scopes).is_ok() => client,
            _ => return refuse(ErrorCode::InvalidRequest),
        };
        if client.redirect_uris.is_empty() {
            return refuse(ErrorCode::UnauthorizedClient);
        }
        let Some(left) = stored.left((self.clock)(), true) else { return refuse(ErrorCode::InvalidGrant) };
        let mut told = Map::new();
        told.insert("access_token".to_owned(), token.into());
        told.insert("client_id".to_owned(), client.name.into());
        told.insert("expires_in".to_owned(), left.into());
        told.insert("scope".to_owned(), stored.grant.scopes.join(" ").into());
        told.insert("token_type".to_owned(), "Bearer".into());
        reply::json(StatusCode::OK, told)
    }
}

fn told(issued: &Issued) -> Map<String, serde_json::Value> {
    let mut told = Map::new();
    told.insert("access_token".to_owned(), issued.token.clone().into());
    told.insert("expires_in".to_owned(), issued.seconds.into());
    told.insert("scope".to_owned(), issued.code.grant.scopes.join(" ").into());
    told.insert("token_type".to_owned(), "Bearer".into());
    told
}

/// Whether RFC 7636 allows this as a verifier or a challenge.
pub(super) fn is_verifier(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'~' | b'.' | b'_' | b'-'))
}

/// Whether who brings the code is who asked for it. A verifier for a code without a challenge is not looked at; a code with
/// one cannot be had without it.
fn verify(challenge: &Challenge, verifier: &str) -> Result<(), ErrorCode> {
    if challenge.text.is_empty() {
        return Ok(());
    }
    if !is_verifier(verifier) {
        return Err(ErrorCode::InvalidRequest);
    }
    let made = match challenge.method.as_str() {
        "" | "plain" => verifier.to_owned(),
        "S256" => URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
        _ => return Err(ErrorCode::InvalidRequest),
    };
    if bool::from(made.as_bytes().ct_eq(challenge.text.as_bytes())) {
        Ok(())
    } else {
        Err(ErrorCode::InvalidGrant)
    }
}
