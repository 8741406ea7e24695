//! Clients, tokens and authorizations.

use super::*;
use crate::resource::Verb;

#[tokio::test]
async fn a_token_is_for_a_client_that_may_have_its_scopes() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let some = json!({"scopeRestrictions": [{"literals": ["user:info"]},
        {"clusterRole": {"roleNames": ["view"], "namespaces": ["a"], "allowEscalation": false}}]});
    world.new_client("some", some).await;
    let robot = "system:serviceaccount:a:client";
    for (client, scope, good) in [
        ("c", "role:admin:*:!", true),
        ("some", "user:info", true),
        ("some", "role:view:a", true),
        ("some", "role:view:a:!", false),
        ("some", "role:view:b", false),
        ("some", "user:full", false),
        (robot, "user:info", true),
        (robot, "role:admin:a:!", true),
        (robot, "role:admin:b", false),
        (robot, "user:full", false),
        ("system:serviceaccount:a:plain", "user:info", false),
    ] {
        let body = token('a', "u", &json!({"clientName": client, "scopes": [scope]}));
        let (code, answer) = world.send("POST", "/oauthaccesstokens", &body).await;
        assert_eq!(code, if good { 201 } else { 422 }, "{client} {scope}: {answer}");
        if good {
            world.ok("DELETE", &format!("/oauthaccesstokens/{}", name_of('a')), Value::Null).await;
        } else {
            assert_eq!(answer["details"]["causes"][0]["field"], "clientName");
            assert_eq!(answer["details"]["causes"][0]["reason"], "InternalError");
        }
    }
    for (client, why) in [
        ("nosuch", "clientName: Internal error: oauthclients.oauth.openshift.io \"nosuch\" not found"),
        ("system:serviceaccount:a:no", "clientName: Internal error: serviceaccounts \"no\" not found"),
        ("", "[clientName: Required value, clientName: Internal error: resource name may not be empty]"),
    ] {
        let (_, message) = world
            .refused("POST", "/oauthaccesstokens", token('a', "u", &json!({"clientName": client})))
            .await;
        assert!(message.ends_with(why), "{message}");
    }
}

#[tokio::test]
async fn a_delete_answers_the_token_or_a_status_of_the_rest() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let made = world.ok("POST", "/oauthaccesstokens", token('a', "u", &json!({}))).await;
    let code = json!({"kind": "OAuthAuthorizeToken", "expiresIn": 300, "codeChallenge": "x".repeat(43)});
    let code = world.ok("POST", "/oauthauthorizetokens", token('b', "u", &code)).await;
    assert_eq!(code["codeChallengeMethod"], "plain");
    let revision =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    for (path, made) in [("/oauthaccesstokens", made), ("/oauthauthorizetokens", code)] {
        let path = format!("{path}/{}", made["metadata"]["name"].as_str().unwrap());
        let mut gone = world.ok("DELETE", &path, Value::Null).await;
        assert!(revision(&gone) > revision(&made), "the revision is the deletion's");
        gone["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
        assert_eq!(gone, made);
        assert_eq!(world.send("DELETE", &path, &Value::Null).await.0, 404);
    }
    assert_eq!(world.ok("DELETE", "/oauthclients/c", Value::Null).await["status"], "Success");
}

#[tokio::test]
async fn a_token_changes_only_its_inactivity_timeout() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    world.ok("POST", "/oauthaccesstokens", token('a', "u", &json!({"inactivityTimeoutSeconds": 300}))).await;
    let path = format!("/oauthaccesstokens/{}", name_of('a'));
    let patched = world.ok("PATCH", &path, json!({"inactivityTimeoutSeconds": 400})).await;
    assert_eq!(patched["inactivityTimeoutSeconds"], 400);
    world.ok("PATCH", &path, json!({"metadata": {"labels": {"a": "b"}}})).await;
    let (code, message) = world.refused("PATCH", &path, json!({"userName": "root"})).await;
    assert_eq!(code, 422);
    assert!(message.contains("[]: Invalid value: {\"name\":\"sha256~a"), "{message}");
    assert!(message.ends_with(": field is immutable"), "{message}");
    // A token that never timed out does not begin to.
    assert_eq!(
        world
            .ok("PATCH", &path, json!({"inactivityTimeoutSeconds": 0}))
            .await
            .get("inactivityTimeoutSeconds"),
        None
    );
    let (_, message) = world.refused("PATCH", &path, json!({"inactivityTimeoutSeconds": 500})).await;
    assert!(
        message.ends_with("inactivityTimeoutSeconds: Invalid value: 500: cannot update non-timing-out token")
    );
}

#[tokio::test]
async fn an_update_creates_an_authorization() {
    let world = World::new().await;
    world
        .new_client("c", json!({"scopeRestrictions": [{"literals": ["user:info", "user:check-access"]}]}))
        .await;
    let grant = |scopes: Value| {
        let fields = json!({"clientName": "c", "userName": "u", "userUID": "1", "scopes": scopes});
        object("OAuthClientAuthorization", "u:c", &fields)
    };
    let (code, made) =
        world.send("PUT", "/oauthclientauthorizations/u:c", &grant(json!(["user:info"]))).await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("u:c")), "{made}");
    // One that is there needs its revision; what it grants beyond is asked of the client.
    assert_eq!(
        world.send("PUT", "/oauthclientauthorizations/u:c", &grant(json!(["user:info"]))).await.0,
        422
    );
    let mut more = grant(json!(["user:info", "user:full"]));
    more["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let (code, message) = world.refused("PUT", "/oauthclientauthorizations/u:c", more.clone()).await;
    assert_eq!(code, 422);
    assert!(
        message.contains("clientName: Internal error: user:full not found in [user:info user:check-access]")
    );
    more["scopes"] = json!(["user:info", "user:check-access"]);
    assert_eq!(world.send("PUT", "/oauthclientauthorizations/u:c", &more).await.0, 200);
    let (_, message) =
        world.refused("PATCH", "/oauthclientauthorizations/u:c", json!({"userUID": "2"})).await;
    assert!(message.ends_with("userUID: Invalid value: \"2\": userUID is not a mutable field"), "{message}");
    // A patch, and an update of another resource, create nothing.
    assert_eq!(world.send("PATCH", "/oauthclientauthorizations/v:c", &json!({})).await.0, 404);
    assert_eq!(world.send("PUT", "/oauthclients/d", &object("OAuthClient", "d", &json!({}))).await.0, 404);
    let mut bound = grant(json!(["user:info"]));
    bound["userName"] = json!("w");
    bound["metadata"] = json!({"name": "w:c", "uid": "somebody"});
    assert_eq!(world.send("PUT", "/oauthclientauthorizations/w:c", &bound).await.0, 409);
    // Whatever the path says, the name is user and client: what has that name is not written over.
    let mut wrong = grant(json!([]));
    wrong["metadata"]["name"] = json!("wrong");
    wrong["scopes"] = json!(["user:info"]);
    assert_eq!(world.send("PUT", "/oauthclientauthorizations/wrong", &wrong).await.0, 409);
}

#[tokio::test]
async fn everybody_sees_his_own_tokens() {
    let mut world = World::new().await;
    world.new_client("c", json!({})).await;
    world.new_client("d", json!({})).await;
    for (letter, user, client) in [('a', "al", "c"), ('b', "al", "d"), ('e', "eve", "c")] {
        world.ok("POST", "/oauthaccesstokens", token(letter, user, &json!({"clientName": client}))).await;
    }
    world.becomes("al");
    assert_eq!(world.names("useroauthaccesstokens", "").await, [name_of('a'), name_of('b')]);
    assert_eq!(world.names("useroauthaccesstokens", "clientName=d").await, [name_of('b')]);
    assert_eq!(world.names("useroauthaccesstokens", "clientName!=d").await, [name_of('a')]);
    let own = world.ok("GET", &format!("/useroauthaccesstokens/{}", name_of('a')), Value::Null).await;
    assert_eq!((&own["kind"], &own["clientName"]), (&json!("UserOAuthAccessToken"), &json!("c")));
    let others = format!("/useroauthaccesstokens/{}", name_of('e'));
    let missing = format!("useroauthaccesstokens.oauth.openshift.io \"{}\" not found", name_of('e'));
    for method in ["GET", "DELETE"] {
        assert_eq!(world.refused(method, &others, Value::Null).await, (404, missing.clone()));
    }
    let nosuch = "oauthaccesstokens.oauth.openshift.io \"x\" not found".to_owned();
    assert_eq!(world.refused("GET", "/useroauthaccesstokens/x", Value::Null).await, (404, nosuch));
    for nobody in ["", "a", "eve\u{0}", "system:anonymous"] {
        world.becomes(nobody);
        assert_eq!(world.names("useroauthaccesstokens", "").await, [""; 0], "{nobody}");
    }
    world.becomes("eve");
    let gone = world.ok("DELETE", &others, Value::Null).await;
    assert_eq!(gone["kind"], "OAuthAccessToken");
    assert_eq!(world.names("useroauthaccesstokens", "").await, [""; 0]);
}

#[tokio::test]
async fn a_watch_of_own_tokens_tells_nothing_of_others() {
    let mut world = World::new().await;
    world.new_client("c", json!({})).await;
    world.ok("POST", "/oauthaccesstokens", token('a', "al", &json!({}))).await;
    world.ok("POST", "/oauthaccesstokens", token('e', "eve", &json!({}))).await;
    world.becomes("al");
    let options = ListOptions { send_initial_events: Some(true), bookmarks: true, ..ListOptions::default() };
    let mut watch = world.storage("useroauthaccesstokens").watch(&world.cx(), &options).await.unwrap();
    let first = watch.next().await.unwrap();
    assert!(
        matches!(&first[..], [WatchEvent::Added(item), WatchEvent::Bookmark { initial_events_end: true, .. }]
            if *item.name == *name_of('a') && shown(item)["kind"] == "UserOAuthAccessToken"),
        "{first:?}"
    );
    for (method, letter) in [("DELETE", 'e'), ("DELETE", 'a')] {
        world.ok(method, &format!("/oauthaccesstokens/{}", name_of(letter)), Value::Null).await;
    }
    let next = tokio::time::timeout(SOON, watch.next()).await.unwrap().unwrap();
    assert!(matches!(&next[..], [WatchEvent::Deleted(item)] if *item.name == *name_of('a')), "{next:?}");
}

#[tokio::test]
async fn tokens_vanish_when_they_end() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let tokens = world.storage("oauthaccesstokens");
    let mut watch = tokens.watch(&world.cx(), &ListOptions::default()).await.unwrap();
    world.ok("POST", "/oauthaccesstokens", token('k', "u", &json!({"expiresIn": 0}))).await;
    world.ok("POST", "/oauthaccesstokens", token('a', "u", &json!({"expiresIn": 1}))).await;
    let mut gone = Vec::new();
    while gone.is_empty() {
        let events = tokio::time::timeout(SOON, watch.next()).await.unwrap().unwrap();
        gone.extend(events.into_iter().filter_map(|event| match event {
            WatchEvent::Deleted(item) => Some(item.name.to_string()),
            _ => None,
        }));
    }
    assert_eq!(gone, [name_of('a')]);
    assert_eq!(world.names("oauthaccesstokens", "").await, [name_of('k')]);
    // A finalizer keeps a token from a delete, not from its end.
    let mut kept = token('f', "u", &json!({"expiresIn": 1}));
    kept["metadata"]["finalizers"] = json!(["example.com/x"]);
    world.ok("POST", "/oauthaccesstokens", kept).await;
    let ends = async {
        while world.names("oauthaccesstokens", "").await.len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, ends).await.unwrap();
}

#[tokio::test]
async fn what_ended_while_nobody_looked_is_not_shown() {
    let mut world = World::new().await;
    world.new_client("c", json!({})).await;
    world.ok("POST", "/oauthaccesstokens", token('k', "u", &json!({}))).await;
    world.oauth.tasks.abort_all();
    world.ok("POST", "/oauthaccesstokens", token('a', "u", &json!({"expiresIn": 1}))).await;
    world.ok("POST", "/oauthaccesstokens", token('b', "u", &json!({"expiresIn": 1}))).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(world.send("GET", &format!("/oauthaccesstokens/{}", name_of('a')), &Value::Null).await.0, 404);
    let world = world.restarted().await;
    assert_eq!(world.names("oauthaccesstokens", "").await, [name_of('k')]);
}

#[tokio::test]
async fn the_collector_sees_none() {
    let world = World::new().await;
    world.new_client("c", json!({})).await;
    let listed = |storage: &&Arc<dyn Storage>| storage.resource().has(Verb::List);
    for storage in world.oauth.storages.iter().filter(listed) {
        let mut options = ListOptions::default();
        let collector = UserInfo { name: "system:kube-controller-manager".to_owned(), ..UserInfo::default() };
        collector::hide(storage.resource(), &collector, &mut options);
        let list = storage.list(&world.cx(), &options).await.unwrap();
        assert_eq!(list.items.iter().count(), 0, "{}", storage.resource().plural);
    }
}
