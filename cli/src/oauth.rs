//! Logs in at the OAuth server with a name and a password: the flow of `oc login`, by which a program without a browser
//! gets an authorization code and changes it into a token.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Request, StatusCode, Uri, header};
use kube::Client;
use kube::client::Body;
use picoshift_machinery::bootstrap_user::{LOGIN_NAME, MIN_PASSWORD};
use picoshift_machinery::query;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::health::client_at;
use crate::paths::Paths;

const DISCOVERY: &str = "/.well-known/oauth-authorization-server";
const CLIENT: &str = "openshift-challenging-client";
/// Longest answer that is read.
const ANSWER_LIMIT: usize = 1 << 20;

/// Where the OAuth server is.
#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
}

#[derive(Debug, Deserialize)]
struct Token {
    access_token: String,
}

/// Logs in at the control plane whose API is at `port`; returns a token.
pub(crate) async fn login(port: u16, user: &str, password: &str, paths: &Paths) -> Result<String> {
    check_name(user)?;
    let api = client_at(&format!("https://127.0.0.1:{port}"), "cluster-ca", None, paths)?;
    let metadata: Metadata = api
        .request(Request::get(DISCOVERY).body(Vec::new())?)
        .await
        .context("cannot learn where the OAuth server is")?;
    let verifier = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let redirect = format!("{}/oauth/token/implicit", metadata.issuer);

    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let query = form(&[
        ("client_id", CLIENT),
        ("response_type", "code"),
        ("redirect_uri", &redirect),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ]);
    let (client, path) = endpoint(&metadata.authorization_endpoint, paths)?;
    let basic = STANDARD.encode(format!("{user}:{password}"));
    let request = Request::get(format!("{path}?{query}"))
        .header(header::AUTHORIZATION, format!("Basic {basic}"))
        .header("X-CSRF-Token", "1")
        .body(Body::empty())?;
    let answer = client.send(request).await.context("the OAuth server does not answer")?;
    if let Some(failure) = refused(answer.status(), user, password) {
        return Err(failure.into());
    }
    let code = code(&answer)?;

    let form = form(&[
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("code_verifier", &verifier),
    ]);
    let (client, path) = endpoint(&metadata.token_endpoint, paths)?;
    let request = Request::post(path)
        .header(header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(format!("{CLIENT}:"))))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(Body::from(form.into_bytes()))?;
    let answer = client.send(request).await.context("the OAuth server does not answer")?;
    let status = answer.status();
    let body = http_body_util::Limited::new(answer.into_body(), ANSWER_LIMIT);
    let body = http_body_util::BodyExt::collect(body).await.map_err(|err| anyhow::anyhow!(err))?.to_bytes();
    if !status.is_success() {
        bail!("the OAuth server gives no token: {status}: {}", String::from_utf8_lossy(&body));
    }
    let token: Token = serde_json::from_slice(&body).context("the OAuth server's answer has no token")?;
    Ok(token.access_token)
}

/// What an answer says of name and password. One that is too short to be kubeadmin's is a failure of the server's, as on
/// OpenShift, and nobody looks at other providers then.
fn refused(status: StatusCode, user: &str, password: &str) -> Option<Failure> {
    let too_short = user == LOGIN_NAME && password.len() < MIN_PASSWORD;
    match status {
        StatusCode::UNAUTHORIZED => Some(Failure::new(
            format!("{user} could not log in: the name or the password is wrong"),
            "`picoshift user list` names the users; `picoshift user add NAME --replace` sets a password",
        )),
        StatusCode::INTERNAL_SERVER_ERROR if too_short => Some(Failure::new(
            format!("{user} could not log in: its password has at least {MIN_PASSWORD} characters"),
            "`picoshift up` told it when it made the cluster; if it is lost, log in as another user: `picoshift user list`",
        )),
        _ => None,
    }
}

/// Basic credentials end the name at the first colon: what follows would be taken for the password, and another user tried.
fn check_name(user: &str) -> Result<(), Failure> {
    match user {
        "" => Err(Failure::new("the user name is empty", "`picoshift user list` names the users")),
        _ if user.contains(':') => Err(Failure::new(
            format!("{user} cannot log in by a password: the name has a colon"),
            "kube:admin logs in as kubeadmin",
        )),
        _ => Ok(()),
    }
}

/// A client of an endpoint, and its path there.
fn endpoint(url: &str, paths: &Paths) -> Result<(Client, String)> {
    let uri: Uri = url.parse().with_context(|| format!("the OAuth server's address is wrong: {url}"))?;
    let authority =
        uri.authority().with_context(|| format!("the OAuth server's address has no host: {url}"))?;
    let client = client_at(&format!("https://{authority}"), "cluster-ca", None, paths)?;
    Ok((client, uri.path().to_owned()))
}

/// The code in the redirect that answers a login.
fn code<B>(answer: &http::Response<B>) -> Result<String> {
    let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    let Some(location) = location.filter(|_| answer.status() == StatusCode::FOUND) else {
        bail!("the OAuth server answered {} instead of a code", answer.status());
    };
    let query = location.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or_default());
    let value = |name: &str| query::first(query, name).map(Cow::into_owned);
    if let Some(error) = value("error") {
        bail!("the OAuth server refused: {}", value("error_description").unwrap_or(error));
    }
    value("code").context("the OAuth server's redirect has no code")
}

fn form(pairs: &[(&str, &str)]) -> String {
    let encode = |text| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(status: u16, location: &str) -> Result<String> {
        code(&http::Response::builder().status(status).header("Location", location).body(()).unwrap())
    }

    #[test]
    fn a_name_with_a_colon_is_no_other_name() {
        assert!(
            check_name("user1:x").is_err() && check_name("kube:admin").is_err() && check_name("").is_err()
        );
        check_name("user@example.com").unwrap();
    }

    #[test]
    fn who_is_refused_is_told_why() {
        let told = |status: u16, user: &str, password: &str| {
            refused(status.try_into().unwrap(), user, password).map(|failure| failure.to_string())
        };
        assert!(told(401, "alice", "x").unwrap().contains("the name or the password is wrong"));
        let short = told(500, "kubeadmin", &"x".repeat(22)).unwrap();
        assert_eq!(short, "kubeadmin could not log in: its password has at least 23 characters");
        for (status, user, password) in [(500, "alice", "x"), (302, "kubeadmin", "x")] {
            assert_eq!(told(status, user, password), None);
        }
        assert_eq!(told(500, "kubeadmin", &"x".repeat(23)), None);
    }

    #[test]
    fn the_code_is_in_the_redirect() {
        assert_eq!(redirect(302, "https://o/x?state=a&code=sha256~b%2Dc#f").unwrap(), "sha256~b-c");
        assert!(redirect(302, "https://o/x?state=a").is_err());
        assert!(redirect(200, "https://o/x?code=a").is_err());
        let refused = redirect(302, "https://o/x?error=a&error_description=not+for%20you").unwrap_err();
        assert_eq!(refused.to_string(), "the OAuth server refused: not for you");
    }
}
