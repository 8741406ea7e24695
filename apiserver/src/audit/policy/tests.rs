//! Tests of policies.

use http::Method;

use super::*;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
metadata: {name: some, creationTimestamp: null}
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [system:kube-controller-manager]
  verbs: [get, watch]
- level: None
  nonResourceURLs: [/healthz*, /version]
- level: Metadata
  resources:
  - group: image.openshift.io
    resources: [imagestreams/secrets, "*/layers"]
  - group: route.openshift.io
    resources: [routes/*]
    resourceNames: [secret]
- level: Request
  namespaces: [shop, ""]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- level: RequestResponse
  userGroups: [team, other]
"#;

fn decide(policy: &Policy, user: &str, groups: &[&str], method: &Method, path: &str) -> Decision {
    let info = RequestInfo::parse(method, path, false, None).unwrap();
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = UserInfo { name: user.to_owned(), groups, ..UserInfo::default() };
    policy.decide(Some(&user), &info)
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = Policy::parse(POLICY).unwrap();
    let level =
        |user: &str, groups: &[&str], path: &str| decide(&policy, user, groups, &Method::GET, path).level;
    let routes = "/apis/route.openshift.io/v1/namespaces/ns/routes";
    let streams = "/apis/image.openshift.io/v1/namespaces/ns/imagestreams/a";
    let team: &[&str] = &["team"];
    let manager = "system:kube-controller-manager";
    assert_eq!(level(manager, team, &format!("{routes}/a")), Level::None);
    assert_eq!(level(manager, team, routes), Level::RequestResponse, "a list is no get");
    assert_eq!(level("jane", team, "/healthz/ping"), Level::None);
    assert_eq!(level("jane", team, "/version/"), Level::RequestResponse);
    assert_eq!(level("jane", team, &format!("{streams}/secrets")), Level::Metadata);
    assert_eq!(level("jane", team, &format!("{streams}/layers")), Level::Metadata);
    assert_eq!(level("jane", team, streams), Level::RequestResponse);
    assert_eq!(level("jane", team, &format!("{routes}/secret")), Level::Metadata);
    assert_eq!(level("jane", team, &format!("{routes}/secret/status")), Level::Metadata);
    assert_eq!(level("jane", team, &format!("{routes}/other/status")), Level::RequestResponse);
    assert_eq!(level("jane", &[], "/apis/user.openshift.io/v1/users/a"), Level::Request, "no namespace");
    assert_eq!(level("jane", &[], "/apis/project.openshift.io/v1/projects/shop"), Level::Request);
    assert_eq!(level("jane", &[], "/apis/project.openshift.io/v1/projects/other"), Level::None);
    assert_eq!(level("jane", &[], routes), Level::None, "no rule");
    let nobody = RequestInfo::parse(&Method::GET, &routes.replace("/ns/", "/shop/"), false, None).unwrap();
    assert_eq!(policy.decide(None, &nobody).level, Level::Request);
    let shop = decide(&policy, "jane", &[], &Method::GET, &routes.replace("/ns/", "/shop/"));
    assert_eq!(shop.omit, [Stage::RequestReceived, Stage::ResponseStarted]);
    assert!(!shop.omit_managed_fields);
    assert!(decide(&policy, "jane", team, &Method::GET, streams).omit_managed_fields);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let with = |rules: &str| {
        let policy = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: {rules}}}");
        Policy::parse(&policy).map(drop).map_err(|error| error.to_string())
    };
    with("[{level: Metadata}]").unwrap();
    with("[{level: Metadata, nonResourceURLs: ['*', /a, '/b*']}]").unwrap();
    for (rules, why) in [
        ("[]", "rules: there are none"),
        (
            "[{level: Metadata, nonResourceURLs: [a]}]",
            "rules[0].nonResourceURLs: non-resource URL rules must begin with a '/' character",
        ),
        (
            "[{level: None}, {level: Metadata, nonResourceURLs: [/a*b]}]",
            "rules[1].nonResourceURLs: non-resource URL wildcards '*' must be the final character of the rule",
        ),
        (
            "[{level: Metadata, nonResourceURLs: [/a], namespaces: [b]}]",
            "rules[0].nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "[{level: Metadata, resources: [{group: a.io/v1}]}]",
            "rules[0].resources.group: an API group is a DNS subdomain, without a version",
        ),
        (
            "[{level: Metadata, resources: [{resourceNames: [a]}]}]",
            "rules[0].resources.resourceNames: using resourceNames requires at least one resource",
        ),
    ] {
        assert_eq!(with(rules), Err(why.to_owned()));
    }
    for rules in
        ["[{}]", "[{level: Some}]", "[{level: None, user: [a]}]", "[{level: None, omitStages: [Never]}]"]
    {
        assert!(with(rules).is_err(), "{rules}");
    }
    let old = "{apiVersion: audit.k8s.io/v1beta1, kind: Policy, rules: [{level: None}]}";
    assert!(Policy::parse(old).is_err());
    assert!(Policy::load(Path::new("/nowhere")).is_err());
}
