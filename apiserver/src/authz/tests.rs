//! Tests of attributes and of the 403's words.

use http::Method;

use super::*;

fn attributes(method: &Method, path: &str) -> Attributes {
    Attributes::from(&RequestInfo::parse(method, path, false, None).unwrap())
}

fn denied(attributes: &Attributes, reason: &str) -> Status {
    forbidden(&UserInfo { name: "u".to_owned(), ..UserInfo::default() }, attributes, reason)
}

#[test]
fn a_denial_says_who_what_and_where() {
    let get = attributes(&Method::GET, "/apis/route.openshift.io/v1/namespaces/ns/routes/x");
    let status = denied(&get, "");
    assert_eq!(
        status.message,
        "routes.route.openshift.io \"x\" is forbidden: User \"u\" cannot get resource \"routes\" in API \
         group \"route.openshift.io\" in the namespace \"ns\""
    );
    let details = status.details.unwrap();
    assert_eq!((&*details.name, &*details.group, &*details.kind), ("x", "route.openshift.io", "routes"));

    let list = attributes(&Method::GET, "/apis/route.openshift.io/v1/routes");
    assert_eq!(
        denied(&list, "because").message,
        "routes.route.openshift.io is forbidden: User \"u\" cannot list resource \"routes\" in API group \
         \"route.openshift.io\" at the cluster scope: because"
    );
    let status = attributes(&Method::PUT, "/apis/route.openshift.io/v1/namespaces/ns/routes/x/status");
    assert!(denied(&status, "").message.contains("cannot update resource \"routes/status\" in"));
}

#[test]
fn a_denied_path_has_empty_details_and_no_markup() {
    let status = denied(&attributes(&Method::GET, "/<a>&"), "");
    assert_eq!(status.message, "forbidden: User \"u\" cannot get path \"/&lt;a&gt;&amp;\"");
    assert_eq!(status.to_value()["details"], serde_json::json!({}));
}

#[test]
fn a_project_s_namespace_is_its_name() {
    let get = attributes(&Method::GET, "/apis/project.openshift.io/v1/projects/p");
    assert_eq!((get.namespace.as_str(), get.name.as_str()), ("p", "p"));
    let list = attributes(&Method::GET, "/apis/project.openshift.io/v1/projects");
    assert_eq!(list.namespace, "");
    let other = attributes(&Method::GET, "/apis/config.openshift.io/v1/projects/p");
    assert_eq!(other.namespace, "");
}

#[test]
fn one_user_asks_about_tokens_and_nothing_else() {
    let info = |method: &Method, path: &str| RequestInfo::parse(method, path, false, None).unwrap();
    let reviewer = UserInfo { name: TOKEN_REVIEWER.to_owned(), ..UserInfo::default() };
    let reviews = "/apis/oauth.openshift.io/v1/tokenreviews";
    assert!(is_token_review(&reviewer, &info(&Method::POST, reviews)));
    for (method, path) in [
        (Method::GET, reviews),
        (Method::POST, "/apis/oauth.openshift.io/v1/tokenreviews/x/y"),
        (Method::POST, "/apis/oauth.openshift.io/v1/namespaces/a/tokenreviews"),
        (Method::POST, "/apis/oauth.openshift.io/v1/oauthaccesstokens"),
        (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews"),
        (Method::POST, "/tokenreviews"),
    ] {
        assert!(!is_token_review(&reviewer, &info(&method, path)), "{method} {path}");
    }
    let other =
        UserInfo { name: "system:serviceaccount:other:openshift-authenticator".to_owned(), ..reviewer };
    assert!(!is_token_review(&other, &info(&Method::POST, reviews)));
}
