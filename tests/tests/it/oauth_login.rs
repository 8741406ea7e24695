//! Logging in: the requests of `oc`, of browsers, of kube-auth-proxy and of service accounts that are clients.

use anyhow::{Context as _, ensure};
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::oauth::{OAuth, field, form, location, object_name, told};
use picoshift_tests::objects::unique;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const CLIENTS: &str = "/apis/oauth.openshift.io/v1/oauthclients";
const TOKENS: &str = "/apis/oauth.openshift.io/v1/oauthaccesstokens";
const USERS: &str = "/apis/user.openshift.io/v1/users";

/// Who a token is; `None` when it is nobody's.
async fn whoami(plane: &ControlPlane, token: &str) -> anyhow::Result<Option<Value>> {
    let api = plane.anonymous()?.api.with_header("authorization", &format!("Bearer {token}"))?;
    let answer = api.get(&format!("{USERS}/~")).await?;
    if answer.status == 401 { Ok(None) } else { answer.expect_code(200).map(Some) }
}

#[tokio::test]
async fn a_password_becomes_a_token_that_the_api_takes() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let mut oauth = OAuth::open(&plane).await?;
    let token = oauth.token("user1", "user1").await?;
    let stored = admin.api.get(&format!("{TOKENS}/{}", object_name(&token))).await?.expect_code(200)?;
    ensure!(
        stored["clientName"] == "openshift-challenging-client" && stored["expiresIn"] == 86400,
        "{stored}"
    );
    ensure!(!stored.to_string().contains(&token), "the token itself is stored");
    let user = admin.api.get(&format!("{USERS}/user1")).await?.expect_code(200)?;
    assert_eq!(user["identities"], json!(["picoshift:user1"]));
    assert_eq!(stored["userUID"], user["metadata"]["uid"]);
    let who = whoami(&plane, &token).await?.context("the token is nobody's")?;
    assert_eq!(who["metadata"]["name"], "user1");
    ensure!(
        who["groups"].as_array().is_some_and(|groups| groups.contains(&json!("system:authenticated:oauth"))),
        "{who}"
    );
    // A second login finds the same user.
    oauth.token("user1", "user1").await?;
    let again = admin.api.get(&format!("{USERS}/user1")).await?.expect_code(200)?;
    assert_eq!(again["metadata"]["uid"], user["metadata"]["uid"]);
    let wrong = oauth
        .challenge("client_id=openshift-challenging-client&response_type=token", "user1", "wrong")
        .await?;
    assert_eq!(
        (wrong.status.as_u16(), &wrong.headers["www-authenticate"]),
        (401, &"Basic realm=\"openshift\"".parse()?)
    );
    Ok(())
}

#[tokio::test]
async fn a_browser_shows_a_token() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut browser = OAuth::open(&plane).await?;
    let request = browser.get("/oauth/token/request").await?;
    let authorize = location(&request).strip_prefix(&browser.issuer).context("another server")?.to_owned();
    let chosen = format!("{authorize}&idp=picoshift");
    let refused = browser.log_in(&chosen, "user1", "wrong").await?;
    ensure!(location(&refused).contains("reason=access_denied"), "{refused:?}");
    let page = browser.get(location(&refused)).await?.text();
    ensure!(page.contains("Invalid login or password. Please try again."), "{page}");
    let back = browser.log_in(&chosen, "user1", "user1").await?;
    assert_eq!(location(&back), chosen);
    let display = browser.get(&chosen).await?;
    let display = location(&display).strip_prefix(&browser.issuer).context("another server")?.to_owned();
    let page = browser.get(&display).await?.text();
    let pairs = [("code", field(&page, "code")), ("csrf", field(&page, "csrf"))];
    let pairs = pairs.each_ref().map(|(name, value)| (*name, value.as_str()));
    let shown = browser.post("/oauth/token/display", &pairs).await?.text();
    let token =
        shown.split(['<', '>']).find(|text| text.starts_with("sha256~")).context("no token")?.to_owned();
    assert_eq!(whoami(&plane, &token).await?.context("nobody's")?["metadata"]["name"], "user1");
    let twice = browser.post("/oauth/token/display", &pairs).await?;
    assert_eq!(twice.status, 500, "a code is used once");
    Ok(())
}

/// Its requests, in its order (providers/openshift.go).
#[tokio::test]
async fn kube_auth_proxy_step_by_step() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (client, redirect) = (unique("data-science"), "https://rh-ai.apps.example/oauth2/callback");
    let object = json!({"apiVersion": "oauth.openshift.io/v1", "kind": "OAuthClient", "metadata": {"name": client},
        "redirectURIs": [redirect], "secret": "proxy-secret", "grantMethod": "auto"});
    admin.api.post(CLIENTS, &object).await?.expect_code(201)?;
    let mut browser = OAuth::open(&plane).await?;
    let query = form(&[
        ("approval_prompt", "force"),
        ("client_id", &client),
        ("redirect_uri", redirect),
        ("response_type", "code"),
        ("scope", "user:full"),
        ("state", "nonce:/home"),
        ("idp", "picoshift"),
    ]);
    let authorize = format!("/oauth/authorize?{query}");
    let back = browser.log_in(&authorize, "user1", "user1").await?;
    assert_eq!(location(&back), authorize);
    let back = browser.get(&authorize).await?;
    ensure!(location(&back).starts_with(redirect) && told(&back, "state") == "nonce%3A%2Fhome", "{back:?}");
    let code = told(&back, "code").to_owned();
    let exchange = |secret: &'static str| {
        let (client, code) = (client.clone(), code.clone());
        let mut proxy = browser.clone();
        async move {
            let pairs = [
                ("client_id", client.as_str()),
                ("client_secret", secret),
                ("code", code.as_str()),
                ("grant_type", "authorization_code"),
                ("redirect_uri", redirect),
            ];
            proxy.post("/oauth/token", &pairs).await
        }
    };
    assert_eq!(exchange("wrong").await?.expect_code(400)?["error"], "unauthorized_client");
    let token = exchange("proxy-secret").await?.expect_code(200)?;
    let token = token["access_token"].as_str().context("no token")?.to_owned();
    assert_eq!(exchange("proxy-secret").await?.expect_code(400)?["error"], "unauthorized_client");
    let who = whoami(&plane, &token).await?.context("nobody's")?;
    ensure!(who["metadata"]["name"] == "user1" && who["groups"].is_array(), "{who}");
    // It signs out as the user, whose right it is to end one's own tokens.
    let user = plane.anonymous()?.api.with_header("authorization", &format!("Bearer {token}"))?;
    let gone = user.delete(&format!("{TOKENS}/{}", object_name(&token)), &json!({})).await?;
    ensure!(gone.status == 200, "{}", gone.text());
    let ended = || async { Ok(whoami(&plane, &token).await?.map_or(Ok(()), |who| Err(who.to_string()))) };
    eventually("a token that was deleted is nobody's", 30, ended).await?;
    admin.api.delete(&format!("{CLIENTS}/{client}"), &json!({})).await?.expect_code(200)?;
    Ok(())
}

async fn service_account_token(admin: &Actor, namespace: &str, name: &str) -> anyhow::Result<String> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = admin.api.post(&path, &request).await?.expect_code(201)?;
    Ok(token["status"]["token"].as_str().context("no token")?.to_owned())
}

#[tokio::test]
async fn a_service_account_is_a_client_and_asks() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "oauth").await?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "proxy", "annotations": {
        "serviceaccounts.openshift.io/oauth-redirecturi.first": "https://proxy.example/oauth/callback"}}});
    admin.api.post(&accounts, &account).await?.expect_code(201)?;
    let (client, redirect) =
        (format!("system:serviceaccount:{namespace}:proxy"), "https://proxy.example/oauth/callback");
    let mut browser = OAuth::open(&plane).await?;
    let query = |scope: &str| {
        let pairs = [
            ("client_id", client.as_str()),
            ("redirect_uri", redirect),
            ("response_type", "code"),
            ("scope", scope),
            ("state", "s"),
            ("idp", "picoshift"),
        ];
        format!("/oauth/authorize?{}", form(&pairs))
    };
    let scope = format!("user:info role:view:{namespace}");
    let authorize = query(&scope);
    browser.log_in(&authorize, "developer", "developer").await?;
    let asked = browser.get(&authorize).await?;
    ensure!(location(&asked).starts_with("authorize/approve?"), "{asked:?}");
    let page = browser.get(&format!("/oauth/{}", location(&asked))).await?.text();
    ensure!(page.contains("<b>proxy</b> in project"), "{page}");
    let names = ["then", "csrf", "client_id", "user_name", "redirect_uri"];
    let mut pairs: Vec<(&str, String)> = names.map(|name| (name, field(&page, name))).into();
    pairs.extend(scope.split(' ').map(|scope| ("scope", scope.to_owned())));
    pairs.push(("approve", "Allow selected permissions".to_owned()));
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let approved = browser.post("/oauth/authorize/approve", &pairs).await?;
    let again = location(&approved).strip_prefix("..").context("no way back")?.to_owned();
    let back = browser.get(&format!("/oauth{again}")).await?;
    let code = told(&back, "code").to_owned();
    ensure!(code.starts_with("sha256~"), "{back:?}");
    let secret = service_account_token(&admin, &namespace, "proxy").await?;
    let other = service_account_token(&admin, &namespace, "default").await?;
    for (secret, code_of_answer) in [("", 400), (other.as_str(), 400), (secret.as_str(), 200)] {
        let pairs = [
            ("client_id", client.as_str()),
            ("client_secret", secret),
            ("code", &code),
            ("grant_type", "authorization_code"),
            ("redirect_uri", redirect),
        ];
        let answer = browser.post("/oauth/token", &pairs).await?.expect_code(code_of_answer)?;
        ensure!(code_of_answer == 400 || answer["scope"] == scope.as_str(), "{answer}");
    }
    browser.log_in(&query("user:full"), "developer", "developer").await?;
    assert_eq!(told(&browser.get(&query("user:full")).await?, "error"), "access_denied");

    let bare = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bare"}});
    admin.api.post(&accounts, &bare).await?.expect_code(201)?;
    let refused = browser.get(&authorize.replace("proxy&", "bare&")).await?;
    assert_eq!(refused.expect_code(400)?["error"], "server_error");
    let events = admin.api.get(&format!("/api/v1/namespaces/{namespace}/events")).await?.expect_code(200)?;
    ensure!(events.to_string().contains("NoSAOAuthRedirectURIs"), "{events}");
    Ok(())
}

#[tokio::test]
async fn own_clients_are_brought_back() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    OAuth::open(&plane).await?;
    let path = format!("{CLIENTS}/openshift-cli-client");
    let wanted = json!(["http://127.0.0.1/callback", "http://[::1]/callback"]);
    let back = || async {
        let answer = admin.api.get(&path).await?;
        let good = answer.status == 200 && answer.json()?["redirectURIs"] == wanted;
        Ok(if good { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the client is there", 60, back).await?;
    admin.api.delete(&path, &json!({})).await?.expect_code(200)?;
    eventually("a deleted client comes back", 60, back).await?;
    let change = json!({"redirectURIs": ["https://evil.example/"]});
    admin.api.patch(&path, patch::MERGE, &change).await?.expect_code(200)?;
    eventually("a changed client is brought back", 60, back).await
}
