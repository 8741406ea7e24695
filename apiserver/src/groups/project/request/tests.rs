//! Golden: what OpenShift answers to project requests.

use super::*;

fn request(name: &str) -> Object {
    serde_json::from_value(json!({
        "apiVersion": "project.openshift.io/v1", "kind": "ProjectRequest", "metadata": {"name": name},
        "displayName": "Req One", "description": "d"
    }))
    .unwrap()
}

#[test]
fn reserved_names_are_forbidden_as_recorded() {
    for (name, why) in [
        ("kubernetes", "cannot request a project with the name \"kubernetes\""),
        ("kube", "cannot request a project with the name \"kube\""),
        ("openshift", "cannot request a project with the name \"openshift\""),
        ("kube-foo", "cannot request a project starting with \"kube-\""),
        ("openshift-foo", "cannot request a project starting with \"openshift-\""),
        ("kubernetes-foo", "cannot request a project starting with \"kubernetes-\""),
    ] {
        let status = check(&request(name)).unwrap_err();
        assert_eq!(status.message, format!("project.project.openshift.io \"{name}\" is forbidden: {why}"));
        assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    }
    for name in ["kubelike", "openshifted", "my-kube-thing"] {
        assert_eq!(check(&request(name)), Ok(()));
    }
}

#[test]
fn wrong_names_are_invalid_project_requests() {
    let status = check(&request("Bad_Name")).unwrap_err();
    assert_eq!(
        status.message,
        "ProjectRequest.project.openshift.io \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    );
    assert_eq!(status.details.unwrap().kind, "ProjectRequest");
}

#[test]
fn a_display_name_has_one_line_as_recorded() {
    let mut two_lines = request("nl");
    two_lines.0.insert("displayName".to_owned(), json!("a\nb"));
    let status = checked(namespace(&two_lines, "alice")).unwrap_err();
    assert_eq!(
        status.message,
        "Project.project.openshift.io \"nl\" is invalid: metadata.annotations[openshift.io/display-name]: Invalid value: \"a\\nb\": may not contain a new line or tab"
    );
    assert!(checked(namespace(&request("nl"), "alice")).is_ok());
}

#[test]
fn the_template_makes_namespace_and_admin() {
    let namespace = namespace(&request("req1"), "alice");
    let expected = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "req1", "annotations": {
            "openshift.io/description": "d", "openshift.io/display-name": "Req One", "openshift.io/requester": "alice"
        }}
    });
    assert_eq!(serde_json::to_value(&namespace).unwrap(), expected);
    let binding = admin_binding("req1", "alice");
    assert_eq!(binding["subjects"][0]["name"], "alice");
    assert_eq!(binding["roleRef"]["name"], "admin");
}

#[test]
fn who_may_not_is_told_so() {
    assert_eq!(
        denied(None).to_value(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "You may not request a new project via this API.", "reason": "Forbidden",
            "details": {"group": "project.openshift.io", "kind": "projectrequest"}, "code": 403
        })
    );
    assert_eq!(
        denied(Some("Ask Ann.")).to_value()["details"],
        json!({"kind": "ProjectRequest", "causes": [{"message": "Ask Ann."}]})
    );
    assert_eq!(
        Status::success(None).to_value(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
    );
}
