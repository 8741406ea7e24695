//! Token scopes on every way to an API: they take away, and whoever tries to get around them gets nothing.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::Http;
use picoshift_tests::objects::{PROJECTS, names, project_path, role_binding, routes_path, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const EXTRA: &str = "scopes.authorization.openshift.io";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Somebody with scopes, as `http`'s caller impersonates her.
fn scoped(http: &Http, user: &str, groups: &[&str], scopes: &[&str]) -> anyhow::Result<Http> {
    let mut http = http.clone().with_header("Impersonate-User", user)?;
    for group in groups.iter().chain([&"system:authenticated"]) {
        http = http.with_header("Impersonate-Group", group)?;
    }
    for scope in scopes {
        http = http.with_header(&format!("Impersonate-Extra-{EXTRA}"), scope)?;
    }
    Ok(http)
}

/// The same through kube-apiserver, and straight to our server.
fn both(admin: &Actor, user: &str, scopes: &[&str]) -> anyhow::Result<[Http; 2]> {
    Ok([scoped(&admin.api, user, &[], scopes)?, scoped(admin.direct()?, user, &[], scopes)?])
}

/// A namespace, and a user who is its admin, as kube-apiserver knows already.
async fn owned(admin: &Actor) -> anyhow::Result<(String, String)> {
    let (namespace, user) = (new_namespace(admin, "scoped").await?, unique("alice"));
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&path, &role_binding("admin", "admin", &user)).await?.expect_code(201)?;
    let her = scoped(&admin.api, &user, &[], &[])?;
    let look = || async {
        let answer = her.get(&format!("/api/v1/namespaces/{namespace}/secrets")).await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("she is admin", 30, look).await?;
    Ok((namespace, user))
}

/// Fails unless the answer is a refusal by these scopes.
fn prevented(status: &Value, scopes: &[&str]) {
    let message = status["message"].as_str().unwrap_or_default();
    let reason = format!(": scopes [{}] prevent this action", scopes.join(" "));
    assert!(message.contains(&reason), "{status}");
}

#[tokio::test]
async fn scopes_limit_what_a_user_may_do() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (namespace, user) = owned(&admin).await?;
    let other = new_namespace(&admin, "other").await?;
    let (routes, elsewhere) = (routes_path(&namespace), routes_path(&other));
    let caller = "/apis/user.openshift.io/v1/users/~";
    let role = format!("role:view:{namespace}");
    let cases: [(&[&str], &str, bool); 11] = [
        (&["user:info"], caller, true),
        (&["user:info"], &routes, false),
        (&["user:check-access"], caller, false),
        (&["user:list-projects"], PROJECTS, true),
        (&["user:list-projects"], &routes, false),
        (&["user:info"], PROJECTS, false),
        (&[&role], &routes, true),
        (&[&role], caller, false),
        (&[&role], &elsewhere, false),
        (&["user:full"], &routes, true),
        (&["user:info", &role], caller, true),
    ];
    for (scopes, path, allowed) in cases {
        for http in both(&admin, &user, scopes)? {
            let answer = http.get(path).await?;
            if allowed {
                answer.expect_code(200)?;
            } else {
                prevented(&answer.expect_code(403)?, scopes);
            }
        }
    }
    // What a role reads it does not write, and no scope gives what the user has not.
    for http in both(&admin, &user, &[&role])? {
        let route = picoshift_tests::objects::route("r");
        prevented(&http.post(&routes, &route).await?.expect_code(403)?, &[&role]);
        http.get(&project_path(&namespace)).await?.expect_code(200)?;
        prevented(&http.get(&project_path(&other)).await?.expect_code(403)?, &[&role]);
    }
    for http in both(&admin, &user, &["user:full", "role:cluster-admin:*:!"])? {
        let refused = http.get(&elsewhere).await?.expect_code(403)?;
        ensure!(!refused["message"].as_str().unwrap_or_default().contains("scopes"), "{refused}");
    }
    // Discovery is for every token.
    for http in both(&admin, &user, &["user:info"])? {
        for path in ["/apis", "/apis/route.openshift.io/v1", "/version"] {
            http.get(path).await?.expect_code(200)?;
        }
    }
    Ok(())
}

/// `(user, scopes, attributes)` as kube-apiserver answers it, and its reason.
async fn review(
    admin: &Actor,
    user: &str,
    scopes: &[&str],
    attributes: &Value,
) -> anyhow::Result<(bool, String)> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:cluster-admins"], "extra": {EXTRA: scopes},
            "resourceAttributes": attributes},
    });
    let answer = admin.api.post(REVIEWS, &review).await?.expect_code(201)?;
    let reason = answer["status"]["reason"].as_str().unwrap_or_default().to_owned();
    Ok((answer["status"]["allowed"] == true, reason))
}

fn attributes(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Value {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    json!({"verb": verb, "group": group, "version": "v1", "resource": resource, "subresource": subresource,
        "namespace": namespace, "name": name})
}

#[tokio::test]
async fn a_role_scope_of_an_administrator_is_no_way_out() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "attacked").await?;
    // An administrator, as whom nothing else than the scopes is in the way.
    let boss = unique("boss");
    let http = scoped(&admin.api, &boss, &["system:cluster-admins"], &["role:cluster-admin:*"])?;
    let token = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default/token");
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    http.get(&secrets).await?.expect_code(403)?;
    http.get("/api/v1/secrets").await?.expect_code(403)?;
    http.post(&token, &json!({"spec": {}})).await?.expect_code(403)?;
    for (kind, path) in [
        ("RoleBinding", format!("namespaces/{namespace}/rolebindings")),
        ("ClusterRoleBinding", "clusterrolebindings".to_owned()),
    ] {
        let binding = json!({"kind": kind, "metadata": {"name": unique("mine")},
            "roleRef": {"name": "cluster-admin"}, "subjects": [{"kind": "User", "name": boss}]});
        let ours = format!("/apis/authorization.openshift.io/v1/{path}");
        http.post(&ours, &binding).await?.expect_code(403)?;
    }
    for asked in [
        attributes("impersonate", "", "users", "", "system:admin"),
        attributes("impersonate", "", "groups", "", "system:masters"),
        attributes("impersonate", "authentication.k8s.io", &format!("userextras/{EXTRA}"), "", "user:full"),
        attributes("get", "", "secrets", &namespace, "x"),
        attributes("create", "", "serviceaccounts/token", &namespace, "default"),
        attributes("create", "", "pods/exec", &namespace, "x"),
        attributes("create", "authentication.k8s.io", "tokenreviews", "", ""),
        attributes("escalate", "rbac.authorization.k8s.io", "clusterroles", "", "view"),
        attributes("delete", "project.openshift.io", "projects", "", &namespace),
    ] {
        let (allowed, reason) = review(&admin, &boss, &["role:cluster-admin:*"], &asked).await?;
        ensure!(
            !allowed && reason == "scopes [role:cluster-admin:*] prevent this action",
            "{asked}: {reason}"
        );
        let (allowed, reason) = review(&admin, &boss, &["role:cluster-admin:*:!"], &asked).await?;
        ensure!(allowed, "{asked}: {reason}");
    }
    Ok(())
}

#[tokio::test]
async fn odd_spellings_of_scopes_give_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "odd").await?;
    let boss = unique("boss");
    let pods = attributes("list", "", "pods", &namespace, "");
    for scope in [
        "USER:FULL",
        "user:full ",
        "user:*",
        "*",
        "",
        "role:cluster-admin",
        "role:cluster-admin::!",
        "role:cluster-admin:*:!:!",
        "role:cluster-admin:*:",
        "role:Cluster-Admin:*:!",
        "role:../clusterroles/cluster-admin:*:!",
        "role:cluster-admin:x/../*:!",
        "ROLE:cluster-admin:*:!",
        "role:view:other",
    ] {
        let (allowed, reason) = review(&admin, &boss, &[scope], &pods).await?;
        ensure!(
            !allowed && reason.contains(&format!("scopes [{scope}] prevent this action")),
            "{scope:?}: {reason}"
        );
    }
    let (_, reason) = review(&admin, &boss, &["nonsense", "role:a:"], &pods).await?;
    assert_eq!(
        reason,
        "scopes [nonsense role:a:] prevent this action, additionally the following non-fatal errors were reported: \
         [no scope evaluator found for \"nonsense\", bad format for scope role:a:]"
    );
    // Keys of extras have no case in headers.
    let shouting = scoped(&admin.api, &boss, &["system:cluster-admins"], &[])?;
    let shouting =
        shouting.with_header(&format!("Impersonate-Extra-{}", EXTRA.to_uppercase()), "user:info")?;
    prevented(&shouting.get(&routes_path(&namespace)).await?.expect_code(403)?, &["user:info"]);
    // kube-apiserver never denies members of system:masters anything; our server holds them to their scopes.
    for way in [&admin.api, admin.direct()?] {
        let master = scoped(way, &boss, &["system:masters"], &["user:info"])?;
        prevented(&master.get(&routes_path(&namespace)).await?.expect_code(403)?, &["user:info"]);
    }
    Ok(())
}

#[tokio::test]
async fn role_scopes_follow_the_cluster_role_of_the_moment() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (namespace, user) = owned(&admin).await?;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (whole, part) = (unique("whole"), unique("part"));
    let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"scopes-test": &whole}}]});
    let aggregated = json!({"metadata": {"name": &whole}, "aggregationRule": selector, "rules": []});
    admin.api.post(roles, &aggregated).await?.expect_code(201)?;
    let scope = format!("role:{whole}:{namespace}");
    let ways = both(&admin, &user, &[&scope])?;
    for http in &ways {
        http.get(&routes_path(&namespace)).await?.expect_code(403)?;
    }
    let rule = json!({"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["list"]});
    let role = json!({"metadata": {"name": &part, "labels": {"scopes-test": &whole}}, "rules": [rule]});
    admin.api.post(roles, &role).await?.expect_code(201)?;
    let answers = |code: u16| {
        let (ways, path) = (&ways, routes_path(&namespace));
        move || {
            let path = path.clone();
            async move {
                for http in ways {
                    let answer = http.get(&path).await?;
                    if answer.status.as_u16() != code {
                        return Ok(Err(answer.text()));
                    }
                }
                Ok(Ok(()))
            }
        }
    };
    eventually("a rule was aggregated into the role", 30, answers(200)).await?;
    admin.api.delete(&format!("{roles}/{part}"), &json!({})).await?.expect_code(200)?;
    eventually("the rule is gone again", 30, answers(403)).await?;
    admin.api.delete(&format!("{roles}/{whole}"), &json!({})).await?.expect_code(200)?;
    Ok(())
}

#[tokio::test]
async fn project_lists_and_watches_show_what_the_scopes_show() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (first, user) = owned(&admin).await?;
    let second = new_namespace(&admin, "second").await?;
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{second}/rolebindings");
    let only_first = format!("role:view:{first}");
    let hers = |scopes: &'static [&'static str]| both(&admin, &user, scopes);
    let full = scoped(&admin.api, &user, &[], &["user:full"])?;
    let limited = both(&admin, &user, &["user:list-scoped-projects", &only_first])?;
    let watch = format!("{PROJECTS}?watch=true&timeoutSeconds=60");
    let mut watches = Vec::new();
    for http in &limited {
        watches.push(http.watch(&watch).await?);
    }
    let mut seen = full.watch(&watch).await?;
    admin.api.post(&path, &role_binding("view", "view", &user)).await?.expect_code(201)?;
    seen.until(30, |event| event.kind == "ADDED" && event.name() == second).await?;

    let both_projects = vec![first.as_str(), second.as_str()];
    for (ways, expected) in [
        (hers(&["user:full"])?, &both_projects[..]),
        (hers(&["user:list-projects"])?, &both_projects),
        (hers(&["user:list-scoped-projects"])?, &[]),
        (both(&admin, &user, &["user:list-scoped-projects", "role:view:*"])?, &both_projects),
        (both(&admin, &user, &["user:list-scoped-projects", "role:system:image-puller:*"])?, &[]),
        (limited, &both_projects[..1]),
    ] {
        for http in ways {
            let mut shown: Vec<String> =
                names(&http.get(PROJECTS).await?.ok()?).into_iter().map(str::to_owned).collect();
            shown.sort();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(shown, expected);
        }
    }
    for http in hers(&["user:info"])? {
        prevented(&http.get(PROJECTS).await?.expect_code(403)?, &["user:info"]);
    }
    // A change of the first is what the limited watches see first, and never the second.
    let change = json!({"metadata": {"labels": {"seen": "yes"}}});
    let merge = picoshift_tests::http::patch::MERGE;
    for namespace in [&second, &first] {
        let path = format!("/api/v1/namespaces/{namespace}");
        admin.api.patch(&path, merge, &change).await?.expect_code(200)?;
    }
    for mut watch in watches {
        let event = watch.until(30, |event| event.object["metadata"]["labels"]["seen"] == "yes").await?;
        assert_eq!(event.name(), first);
    }
    Ok(())
}
