//! OAuth tokens at kube-apiserver and at our server: whose they are, and how soon they are nobody's.

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Method;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::Http;
use picoshift_tests::objects::{OAUTH_GROUP, unique};
use picoshift_tests::tokens::{OAUTH, Token};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::support::assert_forbidden;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const REVIEWER: &str = "system:serviceaccount:openshift-oauth-apiserver:openshift-authenticator";
const CALLER: &str = "/apis/user.openshift.io/v1/users/~";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// kube-apiserver remembers a token for ten seconds, and the webhook's answer for one.
const DEAD_WITHIN: u64 = 12;

fn review(token: &str, audiences: &[&str]) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences}})
}

/// Who kube-apiserver says that a caller is.
async fn whoami(http: &Http) -> anyhow::Result<Value> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    Ok(http.post(path, &body).await?.expect_code(201)?["status"]["userInfo"].clone())
}

/// Waits until kube-apiserver refuses a token.
async fn dies(http: &Http) -> anyhow::Result<()> {
    eventually("the token dies", DEAD_WITHIN, async || {
        let code = http.get(CALLER).await?.status.as_u16();
        Ok(if code == 401 { Ok(()) } else { Err(format!("answered {code}")) })
    })
    .await
}

#[tokio::test]
async fn a_token_is_its_user_everywhere() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let user = unique("wendy");
    let token = Token::issue(&admin, &user, &json!({})).await?;
    let group = unique("devs");
    let body = json!({"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": group},
        "users": [user]});
    admin.api.post("/apis/user.openshift.io/v1/groups", &body).await?.expect_code(201)?;
    let (api, direct) = token.clients(&plane)?;
    let me = whoami(&api).await?;
    assert_eq!((&me["username"], &me["uid"]), (&json!(user), &json!(token.uid)));
    assert_eq!(me["groups"], json!([group, OAUTH_GROUP, "system:authenticated"]));
    assert_eq!(me["extra"]["scopes.authorization.openshift.io"], json!(["user:full"]));
    for http in [&api, &direct] {
        let me = http.get(CALLER).await?.ok()?;
        assert_eq!((&me["metadata"]["name"], &me["metadata"]["uid"]), (&json!(user), &json!(token.uid)));
        let mut groups = vec![group.as_str(), OAUTH_GROUP, "system:authenticated"];
        groups.sort_unstable();
        assert_eq!(me["groups"], json!(groups));
    }
    Ok(())
}

#[tokio::test]
async fn kube_apiserver_reviews_by_audience() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let token = Token::issue(&admin, &unique("ida"), &json!({})).await?;
    let ask = async |token: &str, audiences: &[&str]| -> anyhow::Result<Value> {
        let answer = admin.api.post(REVIEWS, &review(token, audiences)).await?.expect_code(201)?;
        Ok(answer["status"].clone())
    };
    for audiences in [&[][..], &[ISSUER][..], &["istio-ca", ISSUER][..]] {
        let status = ask(&token.raw, audiences).await?;
        assert_eq!(status["authenticated"], true, "{audiences:?}: {status}");
        assert_eq!(
            (&status["user"]["username"], &status["audiences"]),
            (&json!(token.user), &json!([ISSUER]))
        );
    }
    let other = ask(&token.raw, &["istio-ca"]).await?;
    assert_eq!(other.get("authenticated"), None, "{other}");
    // kube-apiserver holds the audiences against its own before it looks at the reason.
    assert_eq!(other["error"], "invalid bearer token", "{other}");
    for bad in [format!("{}x", token.raw), token.name.clone(), "sha256~".to_owned()] {
        let status = ask(&bad, &[]).await?;
        assert_eq!(status.get("authenticated"), None, "{status}");
        ensure!(status["error"].as_str().is_some_and(|why| why.contains("token lookup failed")), "{status}");
    }
    Ok(())
}

/// A TokenReview of a token in protobuf, in its envelope.
fn message(token: &str) -> anyhow::Result<Bytes> {
    let field = |number: u8, content: &[u8]| -> anyhow::Result<Vec<u8>> {
        let length = u8::try_from(content.len()).ok().filter(|length| *length < 128).context("too long")?;
        Ok([&[number << 3 | 2, length], content].concat())
    };
    let raw = field(2, &field(1, token.as_bytes())?)?;
    let kind = [field(1, b"authentication.k8s.io/v1")?, field(2, b"TokenReview")?].concat();
    Ok([b"k8s\0".to_vec(), field(1, &kind)?, field(2, &raw)?].concat().into())
}

#[tokio::test]
async fn only_kube_apiserver_asks_without_a_role() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let token = Token::issue(&admin, &unique("rita"), &json!({})).await?;
    let path = format!("{OAUTH}/tokenreviews");
    let body = review(&token.raw, &[]);
    let reviewer = plane.by_certificate(REVIEWER, None)?;
    let answer = reviewer.direct()?.post(&path, &body).await?.expect_code(201)?;
    assert_eq!(
        (&answer["kind"], &answer["apiVersion"]),
        (&json!("TokenReview"), &json!("authentication.k8s.io/v1"))
    );
    let status = &answer["status"];
    assert_eq!(
        (&status["authenticated"], &status["user"]["uid"]),
        (&json!(true), &json!(token.uid)),
        "{answer}"
    );
    assert_eq!(status["audiences"], json!([ISSUER]));

    let mut request =
        reviewer.direct()?.request(Method::POST, &path, Some(PROTOBUF), message(&token.raw)?)?;
    request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(PROTOBUF));
    let answer = reviewer.direct()?.send(request).await?;
    assert_eq!(
        (answer.status.as_u16(), answer.headers[http::header::CONTENT_TYPE].to_str()?),
        (201, PROTOBUF)
    );
    let has = |text: &str| answer.body.windows(text.len()).any(|part| part == text.as_bytes());
    ensure!(answer.body.starts_with(b"k8s\0") && has(&token.uid) && has(OAUTH_GROUP), "{:?}", answer.text());

    // The rule is for this one request of this one user.
    for (method, path) in
        [(Method::GET, CALLER.replace('~', "x")), (Method::GET, format!("{OAUTH}/oauthclients"))]
    {
        let request = reviewer.direct()?.request(method, &path, None, Bytes::new())?;
        assert_forbidden(&reviewer.direct()?.send(request).await?.expect_code(403)?, REVIEWER);
    }
    let somebody = plane.by_certificate(&unique("sam"), None)?;
    for http in [somebody.direct()?, &somebody.api] {
        assert_forbidden(&http.post(&path, &body).await?.expect_code(403)?, &somebody.name);
    }
    plane.anonymous()?.direct()?.post(&path, &body).await?.expect_code(403)?;
    Ok(())
}

#[tokio::test]
async fn a_deleted_token_dies() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let token = Token::issue(&admin, &unique("dora"), &json!({})).await?;
    let (api, direct) = token.clients(&plane)?;
    for http in [&api, &direct] {
        http.get(CALLER).await?.ok()?;
    }
    admin.api.delete(&token.path(), &json!({})).await?.ok()?;
    assert_eq!(direct.get(CALLER).await?.status.as_u16(), 401, "our own server knows at once");
    dies(&api).await
}

#[tokio::test]
async fn a_token_of_a_user_made_anew_is_nobodys() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let user = unique("ned");
    let token = Token::issue(&admin, &user, &json!({})).await?;
    let (api, direct) = token.clients(&plane)?;
    api.get(CALLER).await?.ok()?;
    admin.api.delete(&format!("/apis/user.openshift.io/v1/users/{user}"), &json!({})).await?.ok()?;
    let other = Token::issue(&admin, &user, &json!({})).await?;
    ensure!(other.uid != token.uid, "the same uid");
    assert_eq!(direct.get(CALLER).await?.status.as_u16(), 401);
    other.clients(&plane)?.1.get(CALLER).await?.ok()?;
    dies(&api).await
}

#[tokio::test]
async fn tokens_expire_and_time_out() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let user = unique("olga");
    let expiring = Token::issue(&admin, &user, &json!({"expiresIn": 4})).await?;
    let idle = Token::issue(&admin, &user, &json!({"inactivityTimeoutSeconds": 1})).await?;
    let (api, direct) = expiring.clients(&plane)?;
    for http in [&api, &direct] {
        http.get(CALLER).await?.ok()?;
    }
    eventually("the token expires", 20, async || {
        let code = direct.get(CALLER).await?.status.as_u16();
        Ok(if code == 401 { Ok(()) } else { Err(format!("answered {code}")) })
    })
    .await?;
    // This one was not used since it was made, and timed out before that.
    assert_eq!(idle.clients(&plane)?.1.get(CALLER).await?.status.as_u16(), 401);
    dies(&api).await?;
    // A use near the end of the time puts it off, by the client's own.
    let busy = Token::issue(&admin, &user, &json!({"inactivityTimeoutSeconds": 8})).await?;
    let client = admin.api.get(&busy.path()).await?.ok()?["clientName"].clone();
    let client = format!("{OAUTH}/oauthclients/{}", client.as_str().unwrap_or_default());
    let timeout = json!({"accessTokenInactivityTimeoutSeconds": 300});
    admin.api.patch(&client, picoshift_tests::http::patch::MERGE, &timeout).await?.ok()?;
    busy.clients(&plane)?.0.get(CALLER).await?.ok()?;
    eventually("the use is written", 20, async || {
        let seconds = admin.api.get(&busy.path()).await?.ok()?["inactivityTimeoutSeconds"].as_i64();
        Ok(if seconds >= Some(300) { Ok(()) } else { Err(format!("{seconds:?}")) })
    })
    .await
}

/// The uid that the tokens of the bootstrap administrator have as long as his Secret is this.
fn uid_of(secret: &Value) -> anyhow::Result<String> {
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).context("no Secret");
    let hash = BASE64_STANDARD.decode(text("/data/kubeadmin")?)?;
    let state =
        [text("/metadata/uid")?.as_bytes(), text("/metadata/resourceVersion")?.as_bytes(), &hash].concat();
    Ok(BASE64_URL_SAFE_NO_PAD.encode(Sha512::digest(state)))
}

/// The Secret, made where it is not there; whether it was made.
async fn secret(admin: &Actor) -> anyhow::Result<(Value, bool)> {
    let path = "/api/v1/namespaces/kube-system/secrets";
    let there = admin.api.get(&format!("{path}/kubeadmin")).await?;
    if there.status.is_success() {
        return Ok((there.ok()?, false));
    }
    let hash = format!("$2a$10${}", "a".repeat(53));
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeadmin"},
        "stringData": {"kubeadmin": hash}});
    Ok((admin.api.post(path, &body).await?.expect_code(201)?, true))
}

#[tokio::test]
async fn the_bootstrap_administrator_is_one_until_his_secret_changes() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let (found, made) = secret(&admin).await?;
    let token = Token::issue_as(&admin, "kube:admin", &uid_of(&found)?, &json!({})).await?;
    let (api, direct) = token.clients(&plane)?;
    let me = whoami(&api).await?;
    assert_eq!((&me["username"], me.get("uid")), (&json!("kube:admin"), None), "{me}");
    assert_eq!(me["groups"], json!(["system:cluster-admins", "system:authenticated"]));
    for http in [&api, &direct] {
        http.get(&format!("{OAUTH}/oauthclients")).await?.ok()?;
    }
    let path = "/api/v1/namespaces/kube-system/secrets/kubeadmin";
    let change = json!({"metadata": {"annotations": {"changed": unique("at")}}});
    admin.api.patch(path, picoshift_tests::http::patch::MERGE, &change).await?.ok()?;
    assert_eq!(direct.get(CALLER).await?.status.as_u16(), 401, "any change of it ends his tokens");
    if made {
        admin.api.delete(path, &json!({})).await?.ok()?;
    }
    dies(&api).await
}
