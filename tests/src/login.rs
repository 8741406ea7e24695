//! Logs in at the OAuth server as a program without a browser does.

use anyhow::Context as _;

use crate::ControlPlane;
use crate::http::Http;
use crate::tls::{Endpoint, Protocol};

/// The client that answers to a name and a password.
const CLIENT: &str = "openshift-challenging-client";

/// A token of `user`, by the implicit flow that curl users are told.
///
/// # Errors
/// When the OAuth server gives none.
pub async fn token(plane: &ControlPlane, user: &str, password: &str) -> anyhow::Result<String> {
    use base64::Engine as _;
    let oauth = server(plane).await?;
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let oauth =
        oauth.with_header("x-csrf-token", "1")?.with_header("authorization", &format!("Basic {basic}"))?;
    let answer = oauth.get(&format!("/oauth/authorize?client_id={CLIENT}&response_type=token")).await?;
    let location = answer.headers.get("location").and_then(|value| value.to_str().ok());
    let location = location.with_context(|| format!("answered {}: {}", answer.status, answer.text()))?;
    let fragment = location.split_once('#').with_context(|| format!("no token in {location}"))?.1;
    let token = fragment.split('&').find_map(|pair| pair.strip_prefix("access_token="));
    Ok(token.with_context(|| format!("no token in {location}"))?.replace("%7E", "~"))
}

/// A client of the OAuth server, without a credential.
///
/// # Errors
/// When nobody says where it is.
pub async fn server(plane: &ControlPlane) -> anyhow::Result<Http> {
    let metadata =
        plane.anonymous()?.api.get("/.well-known/oauth-authorization-server").await?.expect_code(200)?;
    let issuer = metadata["issuer"].as_str().context("no issuer")?;
    let endpoint = Endpoint { url: issuer.to_owned(), ..plane.stage.kube.clone() };
    Http::new(&endpoint, None, Protocol::Http1)
}
