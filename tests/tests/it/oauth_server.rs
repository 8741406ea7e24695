//! The OAuth server as a server: sessions that several processes share, providers that change, and clients that mean harm.

use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::Method;
use picoshift_tests::ControlPlane;
use picoshift_tests::controllers::Controllers;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::oauth::{OAuth, form, location, told};
use picoshift_tests::objects::unique;
use picoshift_tests::tls::{Endpoint, client_config};
use rustls_pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const TOKEN: &str = "client_id=openshift-challenging-client&response_type=token";
const CODE: &str = "client_id=openshift-browser-client&response_type=code&idp=picoshift";

/// A free port. Somebody else may take it first; then the process that was to have it says so.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// One more process that serves logins, and does not lead.
async fn another(plane: &ControlPlane) -> anyhow::Result<(Controllers, String)> {
    let pki = plane.home.state().join("pki");
    let file = |kind: &str| -> anyhow::Result<PathBuf> {
        let path = pki.join(format!("openshift-controller-manager-serving.{kind}"));
        ensure!(path.exists(), "{} is missing", path.display());
        Ok(path)
    };
    let issuer = format!("https://127.0.0.1:{}", free_port()?);
    let flags = [
        format!("--oauth-issuer={issuer}"),
        format!("--oauth-bind-address={}", issuer.trim_start_matches("https://")),
        format!("--oauth-tls-cert-file={}", file("crt")?.display()),
        format!("--oauth-tls-private-key-file={}", file("key")?.display()),
        format!("--leader-elect-resource-name={}", unique("nobody-leads")),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let kubeconfig = plane.home.state().join("kubeconfig").join("openshift-controller-manager.kubeconfig");
    ensure!(kubeconfig.exists(), "{} is missing", kubeconfig.display());
    Ok((Controllers::start(plane, &kubeconfig, &flags).await?, issuer))
}

#[tokio::test]
async fn every_process_knows_who_has_logged_in() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let mut browser = OAuth::open(&plane).await?;
    browser.log_in(&format!("/oauth/authorize?{CODE}"), "user1", "user1").await?;
    let (_process, issuer) = another(&plane).await?;
    let mut elsewhere = browser.elsewhere(&plane, &issuer)?;
    let known = || {
        let mut elsewhere = elsewhere.clone();
        async move {
            let answer = elsewhere.get(&format!("/oauth/authorize?{CODE}")).await?;
            Ok(if told(&answer, "code").is_empty() { Err(location(&answer).to_owned()) } else { Ok(()) })
        }
    };
    eventually("another process knows the session", 30, known).await?;
    // A cookie of nobody's is nobody.
    elsewhere.send(Method::POST, "/logout", &[], "x=y").await?;
    let answer = elsewhere.get(&format!("/oauth/authorize?{CODE}")).await?;
    ensure!(location(&answer).starts_with("/login"), "{}", location(&answer));
    Ok(())
}

#[tokio::test]
async fn providers_come_and_go() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let path = "/apis/config.openshift.io/v1/oauths/cluster";
    let before = admin.api.get(path).await?.expect_code(200)?["spec"].clone();
    let secret = unique("more-users");
    // `password`, as `htpasswd -s` writes it; anybody may read it here.
    let file = "carol:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"htpasswd": file}});
    admin.api.post("/api/v1/namespaces/openshift-config/secrets", &object).await?.expect_code(201)?;
    let mut providers = before["identityProviders"].as_array().cloned().unwrap_or_default();
    providers.push(json!({"name": "sso", "type": "OpenID", "mappingMethod": "claim",
        "openID": {"clientID": "x", "clientSecret": {"name": "x"}, "issuer": "https://sso.example",
            "claims": {"preferredUsername": ["preferred_username"]}}}));
    providers.push(json!({"name": "more", "type": "HTPasswd", "mappingMethod": "generate",
        "htpasswd": {"fileData": {"name": secret}}}));
    let user = json!({"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": "carol"}});
    let made = admin.api.post("/apis/user.openshift.io/v1/users", &user).await?;
    ensure!(matches!(made.status.as_u16(), 201 | 409), "{}", made.text());
    let oauth = OAuth::open(&plane).await?;
    let change = json!({"spec": {"identityProviders": providers}});
    admin.api.patch(path, patch::MERGE, &change).await?.expect_code(200)?;

    let result = async {
        let log_in = || {
            let mut oauth = oauth.clone();
            async move { Ok(oauth.token("carol", "password").await.map_err(|error| error.to_string())) }
        };
        eventually("a new provider counts", 30, log_in).await?;
        let identity =
            admin.api.get("/apis/user.openshift.io/v1/identities/more%3Acarol").await?.expect_code(200)?;
        ensure!(identity["user"]["name"] == "carol2", "a name that is taken is avoided: {identity}");
        let mut chooser = oauth.clone();
        let page = chooser
            .get("/oauth/authorize?client_id=openshift-browser-client&response_type=code")
            .await?
            .text();
        ensure!(page.contains("Log in with more") && page.contains("Log in with picoshift"), "{page}");
        ensure!(!page.contains("Log in with sso"), "a provider that is not supported is left out: {page}");
        oauth.clone().token("user1", "user1").await?;
        admin
            .api
            .delete(&format!("/api/v1/namespaces/openshift-config/secrets/{secret}"), &json!({}))
            .await?
            .expect_code(200)?;
        let refused = || {
            let mut oauth = oauth.clone();
            async move {
                let answer = oauth.challenge(TOKEN, "carol", "password").await?;
                Ok(if answer.status == 401 { Ok(()) } else { Err(answer.status.to_string()) })
            }
        };
        eventually("a provider without its file is gone", 30, refused).await
    };
    let result = result.await;
    let back = json!([{"op": "replace", "path": "/spec", "value": before}]);
    admin.api.patch(path, patch::JSON, &back).await?.expect_code(200)?;
    result
}

#[tokio::test]
async fn guesses_are_throttled_and_others_go_on() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut oauth = OAuth::open(&plane).await?;
    let name = unique("victim");
    let mut refused = None;
    for _ in 0..30 {
        let answer = oauth.challenge(TOKEN, &name, "guess").await?;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.status, 401);
    }
    let refused = refused.context("nobody stops the guesses")?;
    ensure!(refused.headers.contains_key("retry-after"), "{refused:?}");
    oauth.token("user1", "user1").await?;
    Ok(())
}

/// Passwords are hashed beside the threads that answer.
#[tokio::test]
async fn many_logins_do_not_hold_up_other_requests() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let oauth = OAuth::open(&plane).await?;
    let logins = (0..24).map(|_| {
        let mut oauth = oauth.clone();
        async move { oauth.challenge(TOKEN, "user1", "user1").await.map(|answer| answer.status.as_u16()) }
    });
    let mut probe = oauth.clone();
    let probes = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let begun = Instant::now();
            ensure!(probe.get("/healthz").await?.status == 200, "not healthy");
            slowest = slowest.max(begun.elapsed());
        }
        Ok(slowest)
    };
    let begun = Instant::now();
    let (logins, slowest) = tokio::join!(futures::future::try_join_all(logins), probes);
    let (logins, slowest): (Vec<u16>, Duration) = (logins?, slowest?);
    ensure!(logins.iter().all(|code| *code == 302), "{logins:?}");
    // One login after the other would hold each probe up for about all of them.
    ensure!(slowest < begun.elapsed() / 2, "a probe took {slowest:?} of {:?}", begun.elapsed());
    Ok(())
}

async fn connect(
    oauth: &OAuth,
    plane: &ControlPlane,
    protocols: &[&[u8]],
) -> anyhow::Result<TlsStream<TcpStream>> {
    let endpoint = Endpoint { url: oauth.issuer.clone(), ca: plane.stage.kube.ca.clone(), server_name: None };
    let mut config = client_config(&endpoint, None)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let tcp = TcpStream::connect(oauth.issuer.trim_start_matches("https://")).await?;
    Ok(TlsConnector::from(std::sync::Arc::new(config))
        .connect(ServerName::try_from("127.0.0.1")?, tcp)
        .await?)
}

/// Sends bytes and reads until the server has nothing more to say.
async fn exchange(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> anyhow::Result<String> {
    // The server may have answered, and gone, before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn only_http_1_and_only_what_is_small() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let oauth = OAuth::open(&plane).await?;
    let stream = connect(&oauth, &plane, &[b"h2", b"http/1.1"]).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let head = "Host: x\r\nConnection: close\r\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let large = format!(
        "POST /login HTTP/1.1\r\n{head}{form}Content-Length: 1000000\r\n\r\n{}",
        "x".repeat(1_000_000)
    );
    let long = format!("GET /oauth/authorize?{} HTTP/1.1\r\n{head}\r\n", "x".repeat(40_000));
    let header = format!("GET /healthz HTTP/1.1\r\n{head}X: {}\r\n\r\n", "x".repeat(2_000_000));
    let many = format!("GET /healthz HTTP/1.1\r\n{head}{}\r\n", "X: x\r\n".repeat(500));
    let twice = format!(
        "POST /oauth/token HTTP/1.1\r\n{head}{form}Content-Length: 3\r\nContent-Length: 4\r\n\r\na=b"
    );
    for (request, codes) in
        [(large, "413"), (long, "414"), (header, "431 400"), (many, "431 400"), (twice, "400")]
    {
        let mut stream = connect(&oauth, &plane, &[b"http/1.1"]).await?;
        let answer = exchange(&mut stream, request.as_bytes()).await?;
        let code = answer.split(' ').nth(1).unwrap_or_default();
        ensure!(codes.split(' ').any(|one| one == code) || answer.is_empty(), "{codes}: {answer}");
    }
    ensure!(oauth.clone().get("/healthz").await?.status == 200, "others go on");
    Ok(())
}

/// Who sends nothing is not waited for for ever, and keeps nobody from logging in.
#[tokio::test]
async fn slow_clients_keep_nobody_out() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut oauth = OAuth::open(&plane).await?;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = connect(&oauth, &plane, &[b"http/1.1"]).await?;
        stream.write_all(b"GET /login?then=%2F HTTP/1.1\r\nHost: x\r\nX-Slow: ").await?;
        slow.push(stream);
    }
    oauth.token("user1", "user1").await?;
    let mut first = slow.pop().context("no connection")?;
    let answer = exchange(&mut first, b"").await?;
    ensure!(!answer.contains("200 OK"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn the_log_tells_no_secret() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut oauth = OAuth::open(&plane).await?;
    let token = oauth.token("user1", "user1").await?;
    let guess = unique("a-password-that-is-wrong");
    oauth.challenge(TOKEN, "user1", &guess).await?;
    let code = unique("sha256~code");
    let pairs = form(&[
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("client_id", "openshift-cli-client"),
        ("client_secret", ""),
    ]);
    let refused = oauth.send(Method::POST, "/oauth/token", &[], &pairs).await?;
    assert_eq!(refused.expect_code(400)?["error"], "unauthorized_client");
    let mut read = 0;
    for entry in std::fs::read_dir(plane.home.state().join("logs"))? {
        let path = entry?.path();
        let log = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        read += log.len();
        for secret in [&token, &guess, &code] {
            ensure!(!log.contains(secret.as_str()), "{} has a secret", path.display());
        }
    }
    ensure!(read > 0, "there is no log to look at");
    Ok(())
}

#[tokio::test]
async fn what_clients_look_for_is_there() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let oauth = OAuth::open(&plane).await?;
    let config = |namespace: &str, name: &str| format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let shown =
        admin.api.get(&config("openshift-config-managed", "oauth-openshift")).await?.expect_code(200)?;
    let twin = config("openshift-authentication", "v4-0-config-system-metadata");
    let look = || async {
        let answer = admin.api.get(&twin).await?;
        Ok(if answer.status == 200 { Ok(answer.json()?) } else { Err(answer.text()) })
    };
    let twin = eventually("the metadata is in both places", 30, look).await?;
    assert_eq!(shown["data"], twin["data"]);
    let metadata: Value =
        serde_json::from_str(shown["data"]["oauthMetadata"].as_str().context("no metadata")?)?;
    assert_eq!(metadata["authorization_endpoint"], format!("{}/oauth/authorize", oauth.issuer));
    let clients =
        admin.api.get("/apis/oauth.openshift.io/v1/oauthclients").await?.expect_code(200)?.to_string();
    for name in ["openshift-browser-client", "openshift-challenging-client", "openshift-cli-client"] {
        ensure!(clients.contains(name), "{name} is missing");
    }
    Ok(())
}
