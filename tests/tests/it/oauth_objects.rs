//! OAuth clients, tokens and grants, as the OAuth server and their users see them.

use std::path::Path;

use anyhow::{Context as _, ensure};
use picoshift_tests::ControlPlane;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{OAUTH_GROUP, names, unique};
use picoshift_tests::tokens::{OAUTH, Token, object};
use serde_json::{Value, json};

use crate::support::assert_forbidden;

const COLLECTOR: &str = "system:kube-controller-manager";

#[tokio::test]
async fn kubectl_shows_the_group() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let listed =
        admin.kubectl.ok(&["api-resources", "--api-group=oauth.openshift.io", "--no-headers"]).await?;
    for (resource, kind) in [
        ("oauthaccesstokens", "OAuthAccessToken"),
        ("oauthauthorizetokens", "OAuthAuthorizeToken"),
        ("oauthclientauthorizations", "OAuthClientAuthorization"),
        ("oauthclients", "OAuthClient"),
        ("tokenreviews", "TokenReview"),
        ("useroauthaccesstokens", "UserOAuthAccessToken"),
    ] {
        let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        ensure!(
            lines.contains(&vec![resource, "oauth.openshift.io/v1", "false", kind]),
            "{resource}: {listed}"
        );
    }
    let group = admin.api.get(OAUTH).await?.ok()?;
    let review = group["resources"].as_array().context("no resources")?;
    let review = review.iter().find(|resource| resource["name"] == "tokenreviews").context("no reviews")?;
    assert_eq!((&review["group"], &review["version"]), (&json!("authentication.k8s.io"), &json!("v1")));
    ensure!(admin.kubectl.ok(&["explain", "oauthclient.scopeRestrictions"]).await?.contains("restriction"));

    let token = Token::issue(&admin, &unique("tess"), &json!({})).await?;
    let table = admin.kubectl.ok(&["get", "oauthaccesstokens", &token.name]).await?;
    let mut lines = table.lines();
    let heading =
        lines.next().context("no heading")?.split("  ").map(str::trim).filter(|word| !word.is_empty());
    let wanted = ["NAME", "USER NAME", "CLIENT NAME", "CREATED", "EXPIRES", "REDIRECT URI", "SCOPES"];
    assert_eq!(heading.collect::<Vec<_>>(), wanted);
    let row: Vec<&str> = lines.next().context("no row")?.split_whitespace().collect();
    assert_eq!((row[0], row[1]), (&*token.name, &*token.user));
    assert_eq!(row[row.len() - 2..], ["https://x.example/cb", "user:full"]);
    Ok(())
}

#[tokio::test]
async fn everybody_sees_and_ends_his_own_tokens() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (alice, bob) = (unique("alice"), unique("bob"));
    let own = Token::issue(&admin, &alice, &json!({})).await?;
    let second = Token::issue(&admin, &alice, &json!({})).await?;
    let other = Token::issue(&admin, &bob, &json!({})).await?;
    let path = format!("{OAUTH}/useroauthaccesstokens");
    let (api, direct) = own.clients(&plane)?;
    for http in [&api, &direct] {
        let list = http.get(&path).await?.ok()?;
        assert_eq!(list["kind"], "UserOAuthAccessTokenList");
        let mut wanted = vec![own.name.as_str(), second.name.as_str()];
        wanted.sort_unstable();
        assert_eq!(names(&list), wanted);
        http.get(&format!("{path}/{}", other.name)).await?.expect_code(404)?;
        // Nobody reads the tokens of all.
        assert_forbidden(&http.get(&format!("{OAUTH}/oauthaccesstokens")).await?.expect_code(403)?, &alice);
        assert_forbidden(&http.get(&own.path()).await?.expect_code(403)?, &alice);
        let forged = object("OAuthAccessToken", &other.name, &json!({}));
        http.post(&format!("{OAUTH}/oauthaccesstokens"), &forged).await?.expect_code(403)?;
    }
    let mut watch = api.watch(&format!("{path}?watch=true")).await?;
    watch.until(20, |event| event.kind == "ADDED" && event.name() == second.name).await?;
    api.delete(&format!("{path}/{}", other.name), &json!({})).await?.expect_code(404)?;
    api.delete(&format!("{path}/{}", second.name), &json!({})).await?.ok()?;
    let gone = watch.until(20, |event| event.kind == "DELETED").await?;
    assert_eq!((gone.name(), &gone.object["kind"]), (&*second.name, &json!("UserOAuthAccessToken")));
    // Who knows a token's hash may end it, as `oc logout` does; the answer is the object.
    let ended = api.delete(&own.path(), &json!({})).await?.ok()?;
    assert_eq!((&ended["kind"], &ended["metadata"]["name"]), (&json!("OAuthAccessToken"), &json!(own.name)));
    Ok(())
}

#[tokio::test]
async fn tokens_vanish_when_they_end() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let user = unique("eve");
    let selector = format!("fieldSelector=userName%3D{user}");
    let list = format!("{OAUTH}/oauthaccesstokens?{selector}");
    let mut watch = admin.api.watch(&format!("{list}&watch=true")).await?;
    let token = Token::issue(&admin, &user, &json!({"expiresIn": 2})).await?;
    watch.until(20, |event| event.kind == "ADDED" && event.name() == token.name).await?;
    watch.until(20, |event| event.kind == "DELETED" && event.name() == token.name).await?;
    assert_eq!(names(&admin.api.get(&list).await?.ok()?), [""; 0]);
    admin.api.get(&token.path()).await?.expect_code(404)?;
    Ok(())
}

#[tokio::test]
async fn an_update_creates_a_grant_for_who_may_create() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let token = Token::issue(&admin, &unique("gus"), &json!({})).await?;
    let client = admin.api.get(&token.path()).await?.ok()?["clientName"].clone();
    let name = format!("{}:{}", token.user, client.as_str().context("no client")?);
    let fields =
        json!({"clientName": client, "userName": token.user, "userUID": token.uid, "scopes": ["user:info"]});
    let grant = object("OAuthClientAuthorization", &name, &fields);
    let path = format!("{OAUTH}/oauthclientauthorizations/{name}");

    let role = unique("updater");
    let rules = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role},
        "rules": [{"apiGroups": ["oauth.openshift.io"], "resources": ["oauthclientauthorizations"], "verbs": ["update"]}]});
    admin.api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &rules).await?.expect_code(201)?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": role}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.api.post(bindings, &binding).await?.expect_code(201)?;
    let updater = plane.impersonated(&role, &["system:authenticated"])?;
    let refused = updater.api.put(&path, &grant).await?.expect_code(403)?;
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(message.contains("cannot create resource \"oauthclientauthorizations\""), "{message}");

    let made = admin.api.put(&path, &grant).await?.expect_code(201)?;
    assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Update");
    let changed = admin.api.patch(&path, patch::MERGE, &json!({"scopes": ["user:full"]})).await?.ok()?;
    assert_eq!(changed["scopes"], json!(["user:full"]));
    Ok(())
}

#[tokio::test]
async fn the_garbage_collector_sees_none() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    Token::issue(&admin, &unique("carl"), &json!({})).await?;
    let collector = plane.impersonated(COLLECTOR, &["system:authenticated", "system:masters"])?;
    for resource in ["oauthclients", "oauthaccesstokens", "useroauthaccesstokens"] {
        let list = collector.api.get(&format!("{OAUTH}/{resource}")).await?.ok()?;
        assert_eq!(names(&list), [""; 0], "{resource}");
        let query =
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watch = collector.api.watch(&format!("{OAUTH}/{resource}?{query}")).await?;
        let first = watch.until(20, |_| true).await?;
        assert_eq!(first.kind, "BOOKMARK", "{resource}: {:?}", first.object);
    }
    Ok(())
}

/// Whether a file below a directory has these bytes.
fn holds(directory: &Path, bytes: &[u8]) -> anyhow::Result<Option<String>> {
    for entry in std::fs::read_dir(directory)? {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        let kind = entry?;
        if kind.is_dir() {
            if let Some(found) = holds(&path, bytes)? {
                return Ok(Some(found));
            }
        } else if kind.is_file()
            && std::fs::read(&path)
                .is_ok_and(|content| content.windows(bytes.len()).any(|part| part == bytes))
        {
            return Ok(Some(path.display().to_string()));
        }
    }
    Ok(None)
}

#[tokio::test]
async fn no_raw_token_is_stored_or_logged() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let token = Token::issue(&admin, &unique("lara"), &json!({})).await?;
    let (api, direct) = token.clients(&plane)?;
    for http in [&api, &direct] {
        http.get(&format!("{OAUTH}/useroauthaccesstokens")).await?.ok()?;
        http.get(&format!("{OAUTH}/oauthclients")).await?.expect_code(403)?;
    }
    let review: Value = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token.raw}});
    admin.api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?.expect_code(201)?;
    let secret = token.raw.trim_start_matches("sha256~").as_bytes();
    let state = plane.home.state();
    ensure!(holds(&state, token.name.as_bytes())?.is_some(), "the token's object is in no file of {state:?}");
    assert_eq!(holds(&state, secret)?, None);
    let groups = plane.impersonated(&token.user, &["system:authenticated", OAUTH_GROUP])?;
    groups.api.get(&format!("{OAUTH}/useroauthaccesstokens")).await?.ok()?;
    Ok(())
}
