//! Whose tokens are, and until when.

use std::time::Instant;

use picoshift_machinery::bootstrap_user;
use picoshift_machinery::oauth_token::object_name;

use super::*;

const LOOKUP: &str = "token lookup failed";
const AUDIENCE: &str = "https://kubernetes.default.svc";

impl World {
    /// Stores a token for what a client holds.
    async fn issue(&self, raw: &str, user: &str, with: Value) {
        let mut body = token('x', user, &with);
        body["metadata"]["name"] = json!(object_name(raw).unwrap());
        self.ok("POST", "/oauthaccesstokens", body).await;
    }

    async fn review(&self, token: &str, audiences: Value) -> Value {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        self.ok("POST", "/tokenreviews", body).await["status"].clone()
    }

    /// Why a token is no good.
    async fn why(&self, token: &str) -> String {
        let status = self.review(token, Value::Null).await;
        assert_eq!((&status["user"], status.get("authenticated")), (&json!({}), None), "{status}");
        status["error"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test]
async fn a_token_is_its_users_with_groups_and_scopes() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let uid = world.new_user("carol").await;
    let group = json!({"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": "devs"},
        "users": ["carol"]});
    world.ok("POST", "/groups", group).await;
    let raw = "sha256~carols";
    let scopes = json!(["user:info", "role:view:a"]);
    world.issue(raw, "carol", json!({"userUID": uid, "scopes": scopes})).await;
    let user = json!({"username": "carol", "uid": uid, "groups": ["devs", "system:authenticated:oauth"],
        "extra": {"scopes.authorization.openshift.io": scopes}});
    let good = json!({"authenticated": true, "user": user, "audiences": [AUDIENCE]});
    assert_eq!(world.review(raw, Value::Null).await, good);
    assert_eq!(world.review(raw, json!(["istio-ca", AUDIENCE])).await, good);
    assert_eq!(
        world.review("sha256~carols and more", Value::Null).await,
        good,
        "only the first word is the token"
    );
    let other = world.review(raw, json!(["istio-ca"])).await;
    let why = "token audiences [\"https://kubernetes.default.svc\"] is invalid for the target audiences [\"istio-ca\"]";
    assert_eq!(other, json!({"user": {}, "error": why}));
    // The same code answers for callers of our own server.
    let own = world.oauth.tokens.review(raw).await.unwrap().unwrap();
    assert_eq!((&*own.name, &*own.uid), ("carol", uid.as_str()));
    assert_eq!(own.scopes(), ["user:info", "role:view:a"]);

    world.ok("DELETE", &format!("/oauthaccesstokens/{}", object_name(raw).unwrap()), Value::Null).await;
    assert_eq!(world.why(raw).await, LOOKUP);
    assert_eq!(world.oauth.tokens.review(raw).await.unwrap_err().to_string(), LOOKUP);
}

#[tokio::test]
async fn nothing_else_is_a_token() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let uid = world.new_user("carol").await;
    world.issue("sha256~good", "carol", json!({"userUID": uid})).await;
    let name = object_name("sha256~good").unwrap();
    for bad in ["x", "sha256~", "sha256~Good", "SHA256~good", "good", &name, "eyJhbGciOiJub25lIn0.e30."] {
        assert_eq!(world.why(bad).await, LOOKUP, "{bad}");
    }
    assert_eq!(world.why(" sha256~good").await, "");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}});
    let why = "token is required for TokenReview in authentication".to_owned();
    assert_eq!(world.refused("POST", "/tokenreviews", body).await, (400, why));
    let body = json!({"apiVersion": "oauth.openshift.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    assert_eq!(world.refused("POST", "/tokenreviews", body).await.0, 400, "the kind is Kubernetes' own");
}

#[tokio::test]
async fn a_token_is_of_the_user_for_whom_it_was_made() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    world.issue("sha256~t", "carol", json!({"userUID": "old"})).await;
    assert_eq!(world.why("sha256~t").await, "users.user.openshift.io \"carol\" not found");
    let uid = world.new_user("carol").await;
    assert_eq!(world.why("sha256~t").await, format!("user.UID ({uid}) does not match token.userUID (old)"));
}

#[tokio::test]
async fn a_token_ends_and_times_out() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let uid = world.new_user("carol").await;
    world.issue("sha256~out", "carol", json!({"userUID": uid, "inactivityTimeoutSeconds": 1})).await;
    let mut held = token('x', "carol", &json!({"userUID": uid}));
    held["metadata"] = json!({"name": object_name("sha256~held").unwrap(), "finalizers": ["example.com/x"]});
    world.ok("POST", "/oauthaccesstokens", held).await;
    world
        .ok("DELETE", &format!("/oauthaccesstokens/{}", object_name("sha256~held").unwrap()), Value::Null)
        .await;
    assert_eq!(world.why("sha256~held").await, "token is expired");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(world.why("sha256~out").await, "token timed out");
}

#[tokio::test]
async fn a_use_puts_the_time_out_off() {
    let world = World::new().await;
    world.new_client("c", json!({"accessTokenInactivityTimeoutSeconds": 300})).await;
    world.new_client("free", json!({"accessTokenInactivityTimeoutSeconds": 0})).await;
    let uid = world.new_user("carol").await;
    // Near its time-out a use is written at once, far from it not before a third has gone by.
    for (raw, client, timeout) in [
        ("sha256~near", "c", 8),
        ("sha256~far", "c", 300),
        ("sha256~free", "free", 8),
        ("sha256~never", "c", 0),
    ] {
        let with = json!({"userUID": uid, "clientName": client, "inactivityTimeoutSeconds": timeout});
        world.issue(raw, "carol", with).await;
        assert_eq!(world.review(raw, Value::Null).await["authenticated"], true);
    }
    let timeout_of = async |raw: &str| {
        let path = format!("/oauthaccesstokens/{}", object_name(raw).unwrap());
        world.ok("GET", &path, Value::Null).await.get("inactivityTimeoutSeconds").and_then(Value::as_i64)
    };
    let started = Instant::now();
    while timeout_of("sha256~near").await < Some(300) || timeout_of("sha256~free").await.is_some() {
        assert!(started.elapsed() < SOON, "the use was not written");
        tokio::task::yield_now().await;
    }
    assert_eq!(timeout_of("sha256~far").await, Some(300));
    assert_eq!(timeout_of("sha256~never").await, None);
}

#[tokio::test]
async fn the_bootstrap_administrator_lasts_as_long_as_his_secret() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    world.issue("sha256~root", "kube:admin", json!({"userUID": "first"})).await;
    let missing = "users.user.openshift.io \"kube:admin\" not found";
    assert_eq!(world.why("sha256~root").await, missing);
    let is = |uid: &str| Some(Ok(BootstrapUser { hash: Vec::new(), uid: uid.to_owned() }));
    *world.secret.0.lock() = is("first");
    let status = world.review("sha256~root", Value::Null).await;
    let user = json!({"username": bootstrap_user::NAME, "groups": ["system:cluster-admins"],
        "extra": {"scopes.authorization.openshift.io": ["user:full"]}});
    assert_eq!(status, json!({"authenticated": true, "user": user, "audiences": [AUDIENCE]}));
    let other = world.review("sha256~root", json!(["istio-ca"])).await;
    let audiences = "token audiences [\"https://kubernetes.default.svc\"] is invalid for the target audiences [\"istio-ca\"]";
    assert_eq!(other, json!({"user": {}, "error": format!("[{missing}, {audiences}]")}));
    *world.secret.0.lock() = is("second");
    let why = world.why("sha256~root").await;
    assert_eq!(why, format!("[{missing}, user.UID (second) does not match token.userUID (first)]"));
    *world.secret.0.lock() = Some(Err("broken".to_owned()));
    assert_eq!(world.why("sha256~root").await, format!("[{missing}, broken]"));
    // Nobody else becomes him by a token of that uid.
    world.issue("sha256~eve", "eve", json!({"userUID": "second"})).await;
    *world.secret.0.lock() = is("second");
    assert_eq!(world.why("sha256~eve").await, "users.user.openshift.io \"eve\" not found");
}
