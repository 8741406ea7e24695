//! Users, groups, identities and mappings, as people and programs use them, and what groups let their members do.

use anyhow::{Context as _, ensure};
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{OAUTH_GROUP, PROJECTS, names, project_path, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{assert_forbidden, may, new_namespace, newcomer};

const API: &str = "/apis/user.openshift.io/v1";
const CALLER: &str = "/apis/user.openshift.io/v1/users/~";
const COLLECTORS: [&str; 2] =
    ["system:kube-controller-manager", "system:serviceaccount:kube-system:generic-garbage-collector"];

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "user.openshift.io/v1", "kind": kind, "metadata": {"name": name}})
}

async fn new_group(admin: &Actor, prefix: &str, users: &[&str]) -> anyhow::Result<String> {
    let mut group = object("Group", &unique(prefix));
    group["users"] = json!(users);
    admin.api.post(&format!("{API}/groups"), &group).await?.expect_code(201)?;
    Ok(group["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

async fn set_users(admin: &Actor, group: &str, users: &[&str]) -> anyhow::Result<()> {
    let change = json!({"users": users});
    admin.api.patch(&format!("{API}/groups/{group}"), patch::MERGE, &change).await?.ok()?;
    Ok(())
}

/// Gives the role `admin` in a namespace to a group.
async fn bind_group(admin: &Actor, namespace: &str, group: &str) -> anyhow::Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": group},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&path, &binding).await?.expect_code(201)?;
    Ok(())
}

#[tokio::test]
async fn the_caller_is_shown_to_everybody_who_is_somebody() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, alice) = (plane.admin()?, newcomer(&plane, "alice")?);
    for http in [&alice.api, alice.direct()?] {
        for path in [CALLER.to_owned(), format!("{API}/users/%7E")] {
            let me = http.get(&path).await?.ok()?;
            assert_eq!(me["metadata"]["name"], alice.name.as_str());
            assert_eq!(me["groups"], json!(["system:authenticated", OAUTH_GROUP]));
            assert_eq!(me["metadata"].get("resourceVersion"), None, "she is not stored: {me}");
        }
    }
    for name in ["kube:admin", "system:serviceaccount:default:robot", "user@dom", "b64:a2Y6eA=="] {
        let caller = plane.impersonated(name, &["z", "system:authenticated", "a"])?;
        let me = caller.api.get(CALLER).await?.ok()?;
        assert_eq!(me["metadata"], json!({"name": name}));
        assert_eq!(me["groups"], json!(["a", "system:authenticated", "z"]));
    }
    let mut user = object("User", &alice.name);
    user["fullName"] = json!("Alice");
    user["groups"] = json!(["system:masters"]);
    let stored = admin.api.post(&format!("{API}/users"), &user).await?.expect_code(201)?;
    let me = alice.api.get(CALLER).await?.ok()?;
    assert_eq!((&me["fullName"], &me["metadata"]["uid"]), (&json!("Alice"), &stored["metadata"]["uid"]));
    assert_eq!(me["groups"], json!(["system:authenticated", OAUTH_GROUP]));

    let nobody = plane.anonymous()?;
    for http in [&nobody.api, nobody.direct()?] {
        assert_forbidden(&http.get(CALLER).await?.expect_code(403)?, "system:anonymous");
    }
    // Only herself.
    assert_forbidden(
        &alice.api.get(&format!("{API}/users/{}", alice.name)).await?.expect_code(403)?,
        &alice.name,
    );
    assert_forbidden(&alice.api.get(&format!("{API}/users")).await?.expect_code(403)?, &alice.name);
    assert_forbidden(&alice.api.get(&format!("{API}/groups")).await?.expect_code(403)?, &alice.name);
    Ok(())
}

#[tokio::test]
async fn names_that_no_other_kind_could_have() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    for name in [unique("user@dom"), format!("b64:{}", unique("x")), unique("Ünal Y"), unique("a,b=c")] {
        let made = admin.api.post(&format!("{API}/users"), &object("User", &name)).await?.expect_code(201)?;
        ensure!(made["metadata"].get("generation").is_none() && made["groups"].is_null(), "{made}");
        let escaped = name.replace(' ', "%20").replace('Ü', "%C3%9C");
        let path = format!("{API}/users/{escaped}");
        let change = json!({"fullName": "F"});
        let changed = admin.api.patch(&path, patch::MERGE, &change).await?.ok()?;
        assert_eq!((&changed["metadata"]["name"], &changed["fullName"]), (&json!(name), &json!("F")));
        admin.api.delete(&path, &json!({"propagationPolicy": "Foreground"})).await?.ok()?;
        admin.api.get(&path).await?.expect_code(404)?;
    }
    let refused = admin.api.get(&format!("{API}/users/system:x")).await?.expect_code(422)?;
    assert_eq!(refused["reason"], "Invalid");
    for name in ["system:masters", "system:cluster-admins", "~"] {
        let mut group = object("Group", name);
        group["users"] = json!(["eve"]);
        admin.api.post(&format!("{API}/groups"), &group).await?.expect_code(422)?;
    }
    Ok(())
}

#[tokio::test]
async fn kubectl_knows_the_group() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let kubectl = &admin.kubectl;
    let listed = kubectl.ok(&["api-resources", "--api-group=user.openshift.io", "--no-headers"]).await?;
    for words in [
        ["users", "User"],
        ["groups", "Group"],
        ["identities", "Identity"],
        ["useridentitymappings", "UserIdentityMapping"],
    ] {
        let found = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let wanted = vec![words[0], "user.openshift.io/v1", "false", words[1]];
        ensure!(found.into_iter().any(|line| line == wanted), "{wanted:?} is not in {listed}");
    }
    ensure!(
        kubectl.ok(&["explain", "identity.providerUserName"]).await?.contains("string"),
        "no explanation"
    );

    let name = unique("carol");
    let file = plane.stage.directory.join(unique("user")).with_extension("yaml");
    let text = format!(
        "apiVersion: user.openshift.io/v1\nkind: User\nmetadata:\n  name: {name}\nfullName: Carol\nidentities:\n- p:{name}\n"
    );
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy().into_owned();
    assert_eq!(
        kubectl.ok(&["create", "-f", &file]).await?,
        format!("user.user.openshift.io/{name} created\n")
    );
    let table = kubectl.ok(&["get", "users", &name]).await?;
    let mut lines = table.lines();
    let heading: Vec<_> = lines.next().context("no heading")?.split_whitespace().collect();
    assert_eq!(heading, ["NAME", "UID", "FULL", "NAME", "IDENTITIES"]);
    let row: Vec<_> = lines.next().context("no row")?.split_whitespace().collect();
    assert_eq!((row[0], row[2], row[3]), (name.as_str(), "Carol", format!("p:{name}").as_str()));
    kubectl.ok(&["patch", "user", &name, "--type=merge", "-p", r#"{"fullName":"Newer"}"#]).await?;
    kubectl.ok(&["label", "user", &name, "team=a"]).await?;
    let said = kubectl.ok(&["get", "users", "-l", "team=a", "-o", "jsonpath={.items[*].fullName}"]).await?;
    assert_eq!(said, "Newer");
    assert_eq!(
        kubectl.ok(&["delete", "user", &name]).await?,
        format!("user.user.openshift.io \"{name}\" deleted\n")
    );
    Ok(())
}

#[tokio::test]
async fn a_mappings_life() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (carol, dave) = (unique("carol"), unique("dave"));
    for name in [&carol, &dave] {
        admin.api.post(&format!("{API}/users"), &object("User", name)).await?.expect_code(201)?;
    }
    let mut identity = object("Identity", "");
    identity["providerName"] = json!("htpasswd");
    identity["providerUserName"] = json!(carol);
    let identity = admin.api.post(&format!("{API}/identities"), &identity).await?.expect_code(201)?;
    let name = format!("htpasswd:{carol}");
    assert_eq!(identity["metadata"]["name"], name.as_str());

    let mut mapping = object("UserIdentityMapping", "");
    mapping["identity"] = json!({"name": name});
    mapping["user"] = json!({"name": carol});
    let (all, path) = (format!("{API}/useridentitymappings"), format!("{API}/useridentitymappings/{name}"));
    let dry = admin.api.post(&format!("{all}?dryRun=All"), &mapping).await?.expect_code(201)?;
    assert_eq!(dry["user"]["name"], carol.as_str());
    admin.api.get(&path).await?.expect_code(404)?;
    let made = admin.api.post(&all, &mapping).await?.expect_code(201)?;
    assert_eq!(made["metadata"]["uid"], identity["metadata"]["uid"]);
    admin.api.post(&all, &mapping).await?.expect_code(409)?;
    admin.api.get(&all).await?.expect_code(405)?;
    let selector = format!("{API}/identities?fieldSelector=user.name%3D{carol}");
    assert_eq!(names(&admin.api.get(&selector).await?.ok()?), [name.as_str()]);

    mapping["metadata"] = made["metadata"].clone();
    mapping["user"] = json!({"name": dave});
    let moved = admin.api.put(&path, &mapping).await?.expect_code(200)?;
    assert_eq!(moved["user"]["name"], dave.as_str());
    admin.api.put(&path, &mapping).await?.expect_code(409)?;
    admin.api.delete(&path, &json!({})).await?.ok()?;
    mapping["metadata"] = json!({"name": name});
    let again = admin.api.put(&path, &mapping).await?.expect_code(201)?;
    assert_eq!(again["user"]["name"], dave.as_str());
    admin.api.delete(&format!("{API}/users/{dave}"), &json!({})).await?.ok()?;
    let gone = admin.api.get(&path).await?.expect_code(404)?;
    assert_eq!(gone["message"], format!("useridentitymapping.user.openshift.io \"{name}\" not found"));
    Ok(())
}

#[tokio::test]
async fn a_group_lets_its_members_in_at_once() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, eve) = (plane.admin()?, newcomer(&plane, "eve")?);
    let namespace = new_namespace(&admin, "grouped").await?;
    let group = new_group(&admin, "devs", &[]).await?;
    bind_group(&admin, &namespace, &group).await?;
    let path = project_path(&namespace);
    let list = eve.api.get(PROJECTS).await?.ok()?;
    let from = list["metadata"]["resourceVersion"].as_str().context("no revision")?;
    let watch = format!("{PROJECTS}?watch=true&resourceVersion={from}&timeoutSeconds=60");
    let mut watch = eve.api.watch(&watch).await?;
    eve.api.get(&path).await?.expect_code(403)?;

    set_users(&admin, &group, &[&eve.name]).await?;
    let me = eve.api.get(CALLER).await?.ok()?;
    assert_eq!(me["groups"], json!([group, "system:authenticated", OAUTH_GROUP]));
    eve.direct()?.get(&path).await?.expect_code(200)?;
    assert_eq!(names(&eve.api.get(PROJECTS).await?.ok()?), [namespace.as_str()]);
    let events = watch.collect_until(30, |event| event.name() == namespace).await?;
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some("ADDED"));
    // kube-apiserver remembers the webhook's answers for a second.
    let allowed = || async {
        let answer = eve.api.get(&path).await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("kube-apiserver hears of it", 15, allowed).await?;
    ensure!(may(&admin, &eve.name, "delete", "", &namespace).await?, "a review does not count the group");

    set_users(&admin, &group, &[]).await?;
    let me = eve.api.get(CALLER).await?.ok()?;
    assert_eq!(me["groups"], json!(["system:authenticated", OAUTH_GROUP]));
    eve.direct()?.get(&path).await?.expect_code(403)?;
    assert_eq!(names(&eve.api.get(PROJECTS).await?.ok()?), [""; 0]);
    let events = watch.collect_until(30, |event| event.name() == namespace).await?;
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some("DELETED"));
    let refused = || async {
        let answer = eve.api.get(&path).await?;
        Ok(if answer.status == 403 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("kube-apiserver hears of it", 15, refused).await
}

#[tokio::test]
async fn who_is_not_from_the_oauth_server_is_in_no_group() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "closed").await?;
    let eve = plane.by_certificate(&unique("eve"), None)?;
    let group = new_group(&admin, "devs", &[&eve.name]).await?;
    bind_group(&admin, &namespace, &group).await?;
    for http in [&eve.api, eve.direct()?] {
        assert_eq!(http.get(CALLER).await?.ok()?["groups"], json!(["system:authenticated"]));
        http.get(&project_path(&namespace)).await?.expect_code(403)?;
        assert_eq!(names(&http.get(PROJECTS).await?.ok()?), [""; 0]);
    }
    let mut robots = object("Group", &unique("robots"));
    robots["users"] = json!([format!("system:serviceaccount:{namespace}:default")]);
    admin.api.post(&format!("{API}/groups"), &robots).await?.expect_code(422)?;
    Ok(())
}

#[tokio::test]
async fn the_garbage_collector_leaves_users_alone() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    // Owned by what is not there: the collector would delete it within seconds.
    let mut orphan = object("Group", &unique("orphan"));
    orphan["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Namespace", "name": "nosuch", "uid": "00000000-0000-0000-0000-000000000000",
    }]);
    let orphan = admin.api.post(&format!("{API}/groups"), &orphan).await?.expect_code(201)?;
    for user in COLLECTORS {
        let collector = plane.impersonated(user, &["system:masters", "system:authenticated"])?;
        for plural in ["users", "groups", "identities"] {
            assert_eq!(collector.api.get(&format!("{API}/{plural}")).await?.ok()?["items"], json!([]));
            let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            let path = format!("{API}/{plural}?{query}&timeoutSeconds=30");
            let events =
                collector.api.watch(&path).await?.collect_until(20, |event| event.kind == "BOOKMARK").await?;
            assert_eq!(events.len(), 1, "{user} sees {plural}: {events:?}");
        }
        let name = orphan["metadata"]["name"].as_str().unwrap_or_default();
        collector.api.get(&format!("{API}/groups/{name}")).await?.expect_code(200)?;
    }
    // It works: what a namespace owns goes with it, while the group stays.
    let namespace = new_namespace(&admin, "owner").await?;
    let owner = admin.api.get(&format!("/api/v1/namespaces/{namespace}")).await?.ok()?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
        "metadata": {"name": namespace, "ownerReferences": [{
            "apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": owner["metadata"]["uid"],
        }]},
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    admin.api.post(roles, &role).await?.expect_code(201)?;
    admin.api.delete(&format!("/api/v1/namespaces/{namespace}"), &json!({})).await?.ok()?;
    let look = || async {
        let answer = admin.api.get(&format!("{roles}/{namespace}")).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("what the namespace owned goes", 120, look).await?;
    let name = orphan["metadata"]["name"].as_str().unwrap_or_default();
    admin.api.get(&format!("{API}/groups/{name}")).await?.expect_code(200)?;
    Ok(())
}
