//! Answers that the real server gave, replayed.

use picoshift_machinery::Object;
use serde_json::{Value, json};

use super::tests::{context, create, strategy, update};

/// Requests and answers of the real server, whose caller was an administrator.
const RECORDED: &str = include_str!("testdata/recorded.json");

fn object(value: Value) -> Object {
    Object::from_value(value).expect("an object")
}

#[tokio::test]
async fn creates_answer_as_the_real_server() {
    let recorded: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 21);
    for case in recorded {
        let name = case["request"]["metadata"]["name"].as_str().unwrap().to_owned();
        let strategy = strategy(&["secrets"]);
        let answer = create(&strategy, &context("demo", "create"), object(case["request"].clone())).await;
        let wanted = case["answer"].clone();
        match answer {
            Ok(mut made) => {
                assert_eq!(case["code"], 201, "{name}");
                for field in ["uid", "creationTimestamp"] {
                    made.set_metadata(field, Value::Null);
                }
                assert_eq!(Value::Object(made.0), wanted, "{name}");
            }
            Err(status) => {
                let got = serde_json::to_value(&status).unwrap();
                for field in ["status", "message", "reason", "details", "code"] {
                    assert_eq!(got[field], wanted[field], "{name}: {field}");
                }
            }
        }
    }
}

#[tokio::test]
async fn hosts_that_are_no_dns_names_are_refused_twice() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    for host in ["Bad_Host.example", "a..b"] {
        let route = object(json!({"metadata": {"name": "bad"}, "spec": {"host": host, "to": {"name": "web"},
            "tls": {"termination": "edge"}}}));
        let status = create(&strategy(&[]), &context("demo", "create"), route).await.unwrap_err();
        assert_eq!(
            status.message,
            format!(
                "Route.route.openshift.io \"bad\" is invalid: [spec.host: Invalid value: \"{host}\": host must conform to DNS 952 subdomain conventions, spec.host: Invalid value: \"{host}\": {label}]"
            )
        );
    }
}

#[tokio::test]
async fn insecure_policies_are_checked_by_termination() {
    for (termination, policy, accepted) in [
        ("edge", "Nope", "None, Allow, Redirect, or empty"),
        ("passthrough", "Allow", "None, Redirect, or empty"),
    ] {
        let route = object(json!({"metadata": {"name": "bad"}, "spec": {"to": {"name": "web"},
            "tls": {"termination": termination, "insecureEdgeTerminationPolicy": policy}}}));
        let status = create(&strategy(&[]), &context("demo", "create"), route).await.unwrap_err();
        assert_eq!(
            status.message,
            format!(
                "Route.route.openshift.io \"bad\" is invalid: spec.tls.insecureEdgeTerminationPolicy: Invalid value: \"{policy}\": invalid value for InsecureEdgeTerminationPolicy option, acceptable values are {accepted}"
            )
        );
    }
}

#[tokio::test]
async fn a_namespace_admin_cannot_change_a_host() {
    let strategy = strategy(&["update routes/custom-host"]);
    let old = create(
        &strategy,
        &context("alice-1", "create"),
        object(json!({"metadata": {"name": "web"}, "spec": {"to": {"name": "web"}}})),
    )
    .await
    .unwrap();
    let mut new = old.clone();
    new.object_mut("spec").insert("host".to_owned(), json!("changed.example.com"));
    let status = update(&strategy, &context("alice-1", "patch"), "", new, &old).await.unwrap_err();
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({
            "status": "Failure",
            "message": "Route.route.openshift.io \"web\" is invalid: spec.host: Invalid value: \"changed.example.com\": you do not have permission to set the host field of the route",
            "reason": "Invalid",
            "details": {
                "name": "web",
                "group": "route.openshift.io",
                "kind": "Route",
                "causes": [{
                    "reason": "FieldValueInvalid",
                    "message": "Invalid value: \"changed.example.com\": you do not have permission to set the host field of the route",
                    "field": "spec.host"
                }]
            },
            "code": 422
        })
    );
}
