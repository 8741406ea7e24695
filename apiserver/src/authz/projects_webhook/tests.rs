//! Tests of the webhook that decides about single projects.

use async_trait::async_trait;
use http_body_util::BodyExt;
use picoshift_machinery::UserInfo;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::authz::rbac::Rbac;
use crate::authz::{Authorizer, Scopes};
use crate::server::metrics::Metrics;

/// Jane, in her group, with her extra, may get in namespace p.
struct Jane;

#[async_trait]
impl Authorizer for Jane {
    async fn authorize(&self, user: &UserInfo, a: &Attributes) -> Result<Decision, Status> {
        if a.name == "broken" {
            return Err(Status::internal("no connection"));
        }
        let known =
            user.name == "jane" && user.in_group("team") && user.extra["k"] == ["v"] && user.uid == "u";
        let asked = a.verb == "get" && a.namespace == "p" && a.name == "p" && a.resource == "projects";
        let own = a.resource == "selfsubjectaccessreviews" && a.group == "authorization.k8s.io";
        Ok(if known && (asked || own) { Decision::Allow } else { Decision::Deny { reason: String::new() } })
    }
}

fn no_scopes() -> Scopes {
    Scopes::new(Arc::new(Rbac::new()))
}

async fn ask(attributes: Value) -> Value {
    let authorizer = CachedAuthorizer::new(Arc::new(Jane), no_scopes(), Arc::new(Metrics::new()));
    let review = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {
            "user": "jane", "uid": "u", "groups": ["team"], "extra": {"k": ["v"]},
            "resourceAttributes": attributes,
        },
    });
    let response = answer(&authorizer, &Memberships::new(), &Bytes::from(review.to_string())).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["kind"], "SubjectAccessReview");
    assert_ne!(answer["status"]["denied"], true, "never more than no opinion");
    answer["status"].clone()
}

fn project(verb: &str, name: &str) -> Value {
    json!({"group": "project.openshift.io", "version": "v1", "resource": "projects", "verb": verb, "name": name})
}

/// Whether the real groups let somebody in who is asked about without them.
#[tokio::test]
async fn counts_the_groups_that_the_user_is_in() {
    let memberships = Memberships::new();
    memberships.change("team", &[].into(), &["jane".into()].into());
    for (groups, allowed) in
        [(&["system:authenticated:oauth"][..], true), (&["system:authenticated"][..], false)]
    {
        let authorizer = CachedAuthorizer::new(Arc::new(Jane), no_scopes(), Arc::new(Metrics::new()));
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {
                "user": "jane", "uid": "u", "groups": groups, "extra": {"k": ["v"]},
                "resourceAttributes": project("get", "p"),
            },
        });
        let response = answer(&authorizer, &memberships, &Bytes::from(review.to_string())).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["status"]["allowed"], allowed, "{groups:?}");
        assert_eq!(answer["spec"]["groups"], json!(groups), "the question is not changed");
    }
}

#[tokio::test]
async fn decides_in_the_namespace_of_the_project() {
    assert_eq!(ask(project("get", "p")).await["allowed"], true);
    assert_eq!(ask(project("delete", "p")).await["allowed"], false);
    assert_eq!(ask(project("get", "q")).await["allowed"], false);
    let broken = ask(project("get", "broken")).await;
    assert_eq!(broken["allowed"], false);
    assert!(broken["evaluationError"].as_str().unwrap().contains("no connection"));
}

#[tokio::test]
async fn a_review_that_may_be_personal_counts_as_one() {
    let review = |resource: &str, version: &str| json!({"group": "authorization.openshift.io", "version": version, "resource": resource, "verb": "create"});
    assert_eq!(ask(review("subjectaccessreviews", "v1")).await["allowed"], true);
    assert_eq!(ask(review("localsubjectaccessreviews", "v1")).await["allowed"], true);
    assert_eq!(ask(review("subjectaccessreviews", "*")).await["allowed"], false, "our own question");
    assert_eq!(ask(review("resourceaccessreviews", "v1")).await["allowed"], false);
}

#[tokio::test]
async fn has_no_opinion_about_anything_else() {
    for (key, value) in [("namespace", "p"), ("group", ""), ("resource", "routes"), ("name", "")] {
        let mut other = project("get", "p");
        other[key] = value.into();
        assert_eq!(ask(other).await["allowed"], false, "{key}");
    }
    assert_eq!(ask(Value::Null).await["allowed"], false);
}

proptest! {
    #[test]
    fn any_body_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let authorizer = CachedAuthorizer::new(Arc::new(Jane), no_scopes(), Arc::new(Metrics::new()));
        let response = runtime.block_on(answer(&authorizer, &Memberships::new(), &Bytes::from(bytes)));
        prop_assert!(response.status() == 400 || response.status() == 200);
    }
}
