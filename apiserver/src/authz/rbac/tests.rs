//! RBAC's comparisons, and the questions about it.

use picoshift_machinery::UserInfo;
use proptest::prelude::*;

use super::*;
use crate::authz::Attributes;

fn asked(verb: &str, group: &str, resource: &str, namespace: &str) -> Attributes {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        ..Attributes::default()
    }
}

fn path(verb: &str, path: &str) -> Attributes {
    Attributes { verb: verb.to_owned(), path: path.to_owned(), ..Attributes::default() }
}

#[test]
fn rules_allow_as_rbac_does() {
    let rule = Rule::of_resources(&["get", "list"], &["", "apps"], &["pods", "pods/log", "*/scale"], &[]);
    for (verb, group, resource, allowed) in [
        ("get", "", "pods", true),
        ("list", "apps", "pods/log", true),
        ("get", "apps", "deployments/scale", true),
        ("get", "", "pods/exec", false),
        ("get", "apps", "deployments", false),
        ("get", "apps", "scale", false),
        ("watch", "", "pods", false),
        ("get", "batch", "pods", false),
        ("GET", "", "pods", false),
        ("get", "", "Pods", false),
        ("get", "", "", false),
    ] {
        assert_eq!(rule.allows(&asked(verb, group, resource, "")), allowed, "{verb} {group} {resource}");
    }
    let named = Rule::of_resources(&["*"], &["*"], &["*"], &["a"]);
    let of = |name: &str| Attributes { name: name.to_owned(), ..asked("get", "x", "y/z", "") };
    assert!(named.allows(&of("a")) && !named.allows(&of("b")) && !named.allows(&of("")));
    let paths = Rule::of_paths(&["get"], &["/healthz", "/api/*"]);
    for (verb, asked, allowed) in [
        ("get", "/healthz", true),
        ("get", "/api/v1", true),
        ("get", "/api/", true),
        ("get", "/api", false),
        ("get", "/healthz/x", false),
        ("post", "/healthz", false),
    ] {
        assert_eq!(paths.allows(&path(verb, asked)), allowed, "{verb} {asked}");
    }
    assert!(Rule::of_paths(&["*"], &["*"]).allows(&path("post", "/any")));
    assert!(!Rule::of_paths(&["*"], &["*"]).allows(&asked("get", "", "pods", "")));
    assert!(!Rule::of_resources(&["*"], &["*"], &["*"], &[]).allows(&path("get", "/")));
}

#[test]
fn null_lists_are_empty() {
    let rule: Rule =
        serde_json::from_str(r#"{"verbs":["get"],"apiGroups":null,"nonResourceURLs":["/x"]}"#).unwrap();
    assert_eq!(rule, Rule::of_paths(&["get"], &["/x"]));
}

/// `view` is a ClusterRole, `local` a Role of `a`.
fn world() -> Rbac {
    let rbac = Rbac::new();
    let rules = |rule: Rule| -> Arc<[Rule]> { vec![rule].into() };
    let view = rules(Rule::of_resources(&["get"], &["", "route.openshift.io"], &["routes", "pods"], &[]));
    let all = rules(Rule::of_resources(&["*"], &["*"], &["*"], &[]));
    let local = rules(Rule::of_resources(&["delete"], &[""], &["pods"], &[]));
    rbac.reset_roles(true, [("".into(), "view".into(), view), ("".into(), "cluster-admin".into(), all)]);
    rbac.reset_roles(false, [("a".into(), "local".into(), local)]);
    let bind = |namespace: &str, name: &str, kind: &str, role: &str, subjects: &[(&str, &str, &str)]| {
        let subjects = subjects.iter().map(|(kind, name, namespace)| SubjectDoc {
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
            namespace: (*namespace).to_owned(),
        });
        let role = RoleRef { kind: kind.to_owned(), name: role.to_owned() };
        let binding = RoleBinding { role, subjects: subjects.collect() };
        (Arc::from(namespace), Arc::from(name), Arc::new(binding))
    };
    let admins = [("Group", "system:cluster-admins", ""), ("User", "system:admin", "")];
    rbac.reset_bindings(true, [bind("", "admins", "ClusterRole", "cluster-admin", &admins)]);
    let robots = [("ServiceAccount", "robot", ""), ("ServiceAccount", "other", "b"), ("User", "alice", "")];
    rbac.reset_bindings(
        false,
        [
            bind("a", "view", "ClusterRole", "view", &robots),
            bind("a", "local", "Role", "local", &[("Group", "team", "")]),
            bind("b", "view", "ClusterRole", "view", &[("User", "bob", ""), ("Robot", "x", "")]),
            bind("b", "lost", "ClusterRole", "gone", &[("User", "carol", "")]),
        ],
    );
    assert!(rbac.is_synced());
    rbac
}

#[test]
fn who_can_is_everybody_whom_a_binding_names() {
    let rbac = world();
    let who = |asked: &Attributes| {
        let (found, errors) = rbac.who_can(asked);
        (Vec::from_iter(found.users), Vec::from_iter(found.groups), errors)
    };
    let admins = ["system:cluster-admins", "system:masters"];
    assert_eq!(
        who(&asked("get", "route.openshift.io", "routes", "")),
        (vec!["system:admin".to_owned()], admins.map(str::to_owned).to_vec(), vec![])
    );
    let (users, groups, errors) = who(&asked("get", "route.openshift.io", "routes", "a"));
    assert_eq!(
        users,
        ["alice", "system:admin", "system:serviceaccount:a:robot", "system:serviceaccount:b:other"]
    );
    assert_eq!((groups.as_slice(), errors.len()), (&admins.map(str::to_owned)[..], 0));
    assert_eq!(who(&asked("delete", "", "pods", "a")).1, ["system:cluster-admins", "system:masters", "team"]);
    let (users, _, errors) = who(&asked("get", "", "pods", "b"));
    assert_eq!(users, ["bob", "system:admin"]);
    assert_eq!(errors, [r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#]);
}

#[test]
fn rules_of_a_user_come_from_all_that_he_is() {
    let rbac = world();
    let rules = |name: &str, groups: &[&str], namespace: &str| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = UserInfo { name: name.to_owned(), groups, ..UserInfo::default() };
        let (rules, errors) = rbac.rules_for(&user, namespace);
        (compacted(rules), errors)
    };
    let (of_alice, errors) = rules("alice", &["team"], "a");
    let texts: Vec<String> = of_alice.iter().map(Rule::sort_key).collect();
    assert_eq!(errors.len(), 0);
    assert_eq!(
        texts,
        [
            "&PolicyRule{Verbs:[delete get],APIGroups:[],Resources:[pods],ResourceNames:[],NonResourceURLs:[],}",
            "&PolicyRule{Verbs:[get],APIGroups:[],Resources:[routes],ResourceNames:[],NonResourceURLs:[],}",
            "&PolicyRule{Verbs:[get],APIGroups:[route.openshift.io],Resources:[pods],ResourceNames:[],NonResourceURLs:[],}",
            "&PolicyRule{Verbs:[get],APIGroups:[route.openshift.io],Resources:[routes],ResourceNames:[],NonResourceURLs:[],}",
        ]
    );
    assert!(rules("alice", &[], "b").0.is_empty());
    assert_eq!(rules("system:serviceaccount:a:robot", &[], "a").0.len(), 4);
    assert!(rules("system:serviceaccount:b:robot", &[], "a").0.is_empty());
    assert_eq!(rules("carol", &[], "b").1.len(), 1);
}

#[test]
fn what_is_gone_counts_no_more() {
    let rbac = world();
    let asked = asked("get", "", "pods", "a");
    rbac.set_binding("a", "view", None);
    assert!(!rbac.who_can(&asked).0.users.contains("alice"));
    rbac.set_role("", "view", None);
    assert!(rbac.cluster_role("view").is_none() && rbac.knows_cluster_roles());
    rbac.reset_roles(true, []);
    assert!(rbac.cluster_role("cluster-admin").is_none());
    rbac.reset_bindings(true, []);
    assert_eq!(rbac.who_can(&asked).0.groups.len(), 1, "Roles and RoleBindings are others");
    assert!(
        rbac.rules_for(&UserInfo { groups: vec!["team".into()], ..UserInfo::default() }, "a").0.len() == 1
    );
}

fn words(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(of).prop_map(str::to_owned), 0..3)
}

prop_compose! {
    fn any_rule()(
        verbs in words(&["get", "list", "*"]),
        api_groups in words(&["", "apps", "*"]),
        resources in words(&["pods", "pods/log", "*/log", "*"]),
        resource_names in words(&["a", "b"]),
        non_resource_urls in words(&["/a", "/a/*", "*"]),
    ) -> Rule {
        // A rule with paths and names is refused by RBAC.
        let resource_names = if non_resource_urls.is_empty() { resource_names } else { Vec::new() };
        Rule { verbs, api_groups, resources, resource_names, non_resource_urls }
    }
}

proptest! {
    /// Parts say what their rule says, and a rule that covers a part allows all that the part allows.
    #[test]
    fn parts_and_cover_agree_with_allows(
        rule in any_rule(),
        other in any_rule(),
        verb in "get|list",
        group in "|apps",
        resource in "pods|pods/log|svc/log",
        name in "|a|b",
        url in "/a|/a/b|/c",
    ) {
        let resource = Attributes { name, ..asked(&verb, &group, &resource, "") };
        for asked in [resource, path(&verb, &url)] {
            let parts = rule.parts();
            prop_assert_eq!(rule.allows(&asked), parts.iter().any(|part| part.allows(&asked)));
            for part in parts {
                prop_assert!(rule.covers(&part));
                prop_assert!(!(other.covers(&part) && part.allows(&asked)) || other.allows(&asked));
            }
        }
    }
}
