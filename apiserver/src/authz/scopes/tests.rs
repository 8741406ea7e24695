//! Every scope, and what is tried to get around them.

use bytes::Bytes;
use http_body_util::BodyExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::authz::Attributes;

const RESERVED: [(&str, &str); 8] = [
    ("", "secrets"),
    ("image.openshift.io", "imagestreams/secrets"),
    ("oauth.openshift.io", "oauthaccesstokens"),
    ("oauth.openshift.io", "oauthauthorizetokens"),
    ("authorization.openshift.io", "rolebindings"),
    ("authorization.openshift.io", "clusterroles"),
    ("", "rolebindings"),
    ("network.openshift.io", "service/externalips"),
];

fn rbac(roles: &[(&str, Vec<Rule>)]) -> Arc<Rbac> {
    let rbac = Arc::new(Rbac::new());
    let roles = roles.iter().map(|(name, rules)| ("".into(), (*name).into(), rules.clone().into()));
    rbac.reset_roles(true, roles.collect::<Vec<_>>());
    rbac
}

/// `view`, `admin` and `cluster-admin` in short.
fn scopes() -> Scopes {
    let view = Rule::of_resources(&["get", "list"], &[""], &["pods", "secrets", "namespaces"], &[]);
    let tokens = Rule::of_resources(&["create"], &[""], &["serviceaccounts/token"], &[]);
    let groups: Vec<&str> = RESERVED.iter().map(|(group, _)| *group).collect();
    let resources: Vec<&str> = RESERVED.iter().map(|(_, resource)| *resource).collect();
    let reserved = Rule::of_resources(&["get", "create"], &groups, &resources, &[]);
    Scopes::new(rbac(&[
        ("view", vec![view.clone()]),
        ("admin", vec![view, tokens, reserved]),
        (
            "cluster-admin",
            vec![Rule::of_resources(&["*"], &["*"], &["*"], &[]), Rule::of_paths(&["*"], &["*"])],
        ),
        ("system:view", vec![Rule::of_resources(&["get"], &["apps"], &["deployments"], &[])]),
    ]))
}

fn asked(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes {
        verb: verb.to_owned(),
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: String::new(),
    }
}

fn path(verb: &str, path: &str) -> Attributes {
    Attributes { verb: verb.to_owned(), path: path.to_owned(), ..Attributes::default() }
}

fn list(scopes: &[&str]) -> Vec<String> {
    scopes.iter().map(|scope| (*scope).to_owned()).collect()
}

fn allowed(given: &[&str], asked: &Attributes) -> bool {
    scopes().prevent(&list(given), asked).unwrap().is_none()
}

#[test]
fn no_scopes_prevent_nothing() {
    assert!(allowed(&[], &asked("delete", "", "secrets", "a", "x")));
}

#[test]
fn every_scope_allows_discovery_and_reads_only() {
    for url in [
        "/",
        "/version",
        "/version/openshift",
        "/api",
        "/apis",
        "/apis/a/v1",
        "/openapi/v2",
        "/.well-known/x",
    ] {
        assert!(allowed(&["user:info"], &path("get", url)), "{url}");
        assert!(!allowed(&["user:info"], &path("post", url)), "{url}");
    }
    for url in ["/metrics", "/debug/pprof/", "/logs/", "/openapi/v3", "/healthz", "//", "/versions", "/APIS"]
    {
        assert!(!allowed(&["user:info"], &path("get", url)), "{url}");
    }
}

#[test]
fn user_scopes_allow_what_they_say() {
    let own = asked("get", "user.openshift.io", "users", "", "~");
    let other = asked("get", "user.openshift.io", "users", "", "jane");
    let access = asked("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "");
    let rules = asked("create", "authorization.openshift.io", "selfsubjectrulesreviews", "a", "");
    let who = asked("create", "authentication.k8s.io", "selfsubjectreviews", "", "");
    let projects = asked("list", "project.openshift.io", "projects", "", "");
    let namespace = asked("get", "", "namespaces", "", "a");
    let secret = asked("get", "", "secrets", "a", "x");
    let all = [&own, &other, &access, &rules, &who, &projects, &namespace, &secret];
    for (scope, allows) in [
        ("user:info", &[&own][..]),
        ("user:check-access", &[&access, &rules]),
        ("user:list-scoped-projects", &[&projects]),
        ("user:list-projects", &[&projects, &namespace]),
        ("user:full", &all),
    ] {
        for asked in all {
            assert_eq!(allowed(&[scope], asked), allows.contains(&asked), "{scope} {asked:?}");
        }
    }
    assert!(allowed(&["user:full"], &path("post", "/anything")));
    assert!(allowed(&["user:info", "user:check-access"], &access));
}

#[test]
fn a_role_scope_allows_its_role_in_its_namespace() {
    let pods = |namespace: &str| asked("get", "", "pods", namespace, "p");
    assert!(allowed(&["role:view:a"], &pods("a")));
    assert!(!allowed(&["role:view:a"], &pods("b")));
    assert!(!allowed(&["role:view:a"], &pods("")));
    assert!(allowed(&["role:view:*"], &pods("b")) && allowed(&["role:view:*"], &pods("")));
    assert!(!allowed(&["role:view:a"], &asked("delete", "", "pods", "a", "p")));
    assert!(!allowed(&["role:nosuch:*"], &pods("a")));
    assert!(allowed(&["role:system:view:*"], &asked("get", "apps", "deployments", "a", "")));
    assert!(allowed(&["role:nosuch:*", "role:view:a"], &pods("a")));
}

#[test]
fn only_an_escalating_scope_allows_what_escalates() {
    for (group, resource) in RESERVED {
        let asked = asked("get", group, resource, "a", "x");
        assert!(!allowed(&["role:admin:a"], &asked), "{group}/{resource}");
        assert!(!allowed(&["role:admin:*", "role:view:*", "role:cluster-admin:*"], &asked));
        assert!(allowed(&["role:admin:a:!"], &asked), "{group}/{resource}");
        assert!(!allowed(&["role:admin:b:!"], &asked), "{group}/{resource}");
    }
    // A rule without bounds gives nothing at all without the mark.
    for asked in [
        asked("get", "", "pods", "a", "x"),
        asked("create", "", "serviceaccounts/token", "a", "x"),
        asked("impersonate", "", "users", "", "system:admin"),
        asked(
            "impersonate",
            "authentication.k8s.io",
            "userextras/scopes.authorization.openshift.io",
            "",
            "user:full",
        ),
        asked("escalate", "rbac.authorization.k8s.io", "clusterroles", "", "view"),
        asked("create", "authorization.openshift.io", "clusterrolebindings", "", ""),
    ] {
        assert!(!allowed(&["role:cluster-admin:*"], &asked), "{asked:?}");
        assert!(allowed(&["role:cluster-admin:*:!"], &asked), "{asked:?}");
    }
    assert!(!allowed(&["role:cluster-admin:*"], &path("get", "/metrics")));
}

#[test]
fn what_is_no_scope_gives_nothing_and_says_why() {
    let asked = asked("get", "", "pods", "a", "x");
    let reason = |given: &[&str]| scopes().prevent(&list(given), &asked).unwrap().unwrap();
    assert_eq!(
        reason(&["user:info", "user:check-access"]),
        "scopes [user:info user:check-access] prevent this action"
    );
    let many = "scopes [view role:view: view role:a:!] prevent this action, additionally the following non-fatal \
                errors were reported: [no scope evaluator found for \"view\", bad format for scope role:view:, bad \
                format for scope role:a]";
    assert_eq!(reason(&["view", "role:view:", "view", "role:a:!"]), many);
    for odd in [
        "USER:FULL",
        "user:full ",
        " user:full",
        "User:Full",
        "user:*",
        "user:",
        "*",
        "",
        "role:view",
        "role:view:",
        "role::a",
        "role:view:A",
        "role:View:a",
        "role:view:a/../a",
        "role:../view:a",
        "role:view:a:",
        "role:view:a::!",
        "role:view:a:!:!",
        "role:view:!",
        "Role:view:a",
        "role:view:a,user:full",
        "role:view:a user:full",
    ] {
        assert!(!allowed(&[odd], &asked), "{odd:?}");
        // Neither does it take from what the others give.
        assert!(allowed(&[odd, "role:view:a"], &asked), "{odd:?}");
    }
}

#[test]
fn nothing_is_judged_by_roles_that_are_not_known() {
    let unknown = Scopes::new(Arc::new(Rbac::new()));
    let pods = asked("get", "", "pods", "a", "x");
    assert_eq!(unknown.prevent(&list(&["role:view:a"]), &pods).unwrap_err().code, 503);
    assert_eq!(unknown.prevent(&list(&["role:view:a", "user:full"]), &pods), Ok(None));
    assert!(unknown.prevent(&list(&["user:info"]), &pods).unwrap().is_some());
}

#[test]
fn a_review_about_oneself_is_let_to_the_server_that_reads_it() {
    for resource in ["subjectaccessreviews", "localsubjectaccessreviews"] {
        let review = asked("create", "authorization.openshift.io", resource, "a", "");
        assert!(allowed(&["user:check-access"], &review));
        assert!(!allowed(&["user:info"], &review));
        let known = Attributes { version: "*".to_owned(), ..review };
        assert!(!allowed(&["user:check-access"], &known), "it is about others");
    }
}

async fn webhook(scopes: &Scopes, spec: Value) -> (u16, Value) {
    let review =
        json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
    let response = webhook::answer(scopes, &Bytes::from(review.to_string()));
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice::<Value>(&body).unwrap()["status"].clone())
}

#[tokio::test]
async fn the_webhook_denies_or_has_no_opinion() {
    let scopes = scopes();
    let spec = |scope: &str, attributes: Value| {
        json!({"user": "jane", "groups": ["system:masters"],
            "extra": {"scopes.authorization.openshift.io": [scope]}, "resourceAttributes": attributes})
    };
    let pod = json!({"verb": "get", "version": "v1", "resource": "pods", "namespace": "a", "name": "x"});
    let (code, status) = webhook(&scopes, spec("role:view:a", pod.clone())).await;
    assert_eq!((code, &status), (200, &json!({"allowed": false})));
    let (_, status) = webhook(&scopes, spec("role:view:b", pod.clone())).await;
    assert_eq!((&status["denied"], &status["allowed"]), (&json!(true), &json!(false)));
    assert_eq!(status["reason"], "scopes [role:view:b] prevent this action");
    // A project is in the namespace of its name.
    let project =
        json!({"verb": "get", "group": "project.openshift.io", "resource": "projects", "name": "a"});
    assert_eq!(
        webhook(&scopes, spec("role:cluster-admin:a:!", project.clone())).await.1["denied"],
        Value::Null
    );
    assert_eq!(webhook(&scopes, spec("role:cluster-admin:b:!", project)).await.1["denied"], true);
    // Nothing to ask about, or no resource, is no path either.
    for attributes in [json!({"verb": "get"}), json!({"verb": "get", "resource": ""})] {
        assert_eq!(webhook(&scopes, spec("user:full", attributes)).await.1["denied"], true);
    }
    let path = json!({"user": "jane", "extra": {"scopes.authorization.openshift.io": ["user:info"]},
        "nonResourceAttributes": {"verb": "get", "path": "/version"}});
    assert_eq!(webhook(&scopes, path).await.1["denied"], Value::Null);
    let unknown = Scopes::new(Arc::new(Rbac::new()));
    assert_eq!(webhook(&unknown, spec("role:view:a", pod)).await.0, 503);
}

fn any_scope() -> impl Strategy<Value = String> {
    prop_oneof![
        "user:(info|check-access|list-projects|list-scoped-projects)",
        "role:(view|admin|cluster-admin|system:view|nosuch):(a|b|\\*)",
        "(role|user|x)?:?[a-z:!*]{0,8}",
    ]
}

fn any_action() -> impl Strategy<Value = Attributes> {
    let verbs = prop::sample::select(vec!["get", "create", "list", "impersonate"]);
    let resources = prop::sample::select(RESERVED.to_vec());
    (verbs, resources, "a|b|", any::<bool>()).prop_map(|(verb, (group, resource), namespace, url)| {
        if url { path(verb, "/metrics") } else { asked(verb, group, resource, &namespace, "x") }
    })
}

proptest! {
    /// Whatever is combined: without `:!` and `user:full` nothing that escalates is allowed.
    #[test]
    fn nothing_escalates_by_accident(given in prop::collection::vec(any_scope(), 1..4), action in any_action()) {
        let marked = |scope: &String| scope.ends_with(":!") || scope == "user:full";
        prop_assume!(!given.iter().any(marked));
        prop_assert!(scopes().prevent(&given, &action).unwrap().is_some(), "{given:?} {action:?}");
    }

    /// One more scope never takes away.
    #[test]
    fn scopes_add_up(
        given in prop::collection::vec(any_scope(), 1..4),
        more in any_scope(),
        verb in "get|list",
        namespace in "a|b|",
    ) {
        let action = asked(&verb, "", "pods", &namespace, "x");
        let prevents = |given: &[String]| scopes().prevent(given, &action).unwrap().is_some();
        let both: Vec<String> = given.iter().cloned().chain([more]).collect();
        prop_assert!(prevents(&given) || !prevents(&both));
    }

    #[test]
    fn any_body_is_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let response = webhook::answer(&scopes(), &Bytes::from(bytes));
        prop_assert!(response.status() == 400 || response.status() == 200);
    }
}
