//! Conversion, rows, bodies of reviews and discovery, against what the real server does.

use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::*;
use crate::authz::Attributes;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn recorded_binding() -> Object {
    object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "rb1", "namespace": "demo", "resourceVersion": "718"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dave"}],
    }))
}

#[test]
fn a_binding_is_shown_as_recorded() {
    let shown = convert::binding_from_rbac(recorded_binding()).unwrap();
    assert_eq!(
        Value::from(shown.0.clone()),
        json!({
            "kind": "RoleBinding", "apiVersion": "authorization.openshift.io/v1",
            "metadata": {"name": "rb1", "namespace": "demo", "resourceVersion": "718"},
            "userNames": ["dave"], "groupNames": null,
            "subjects": [{"kind": "User", "name": "dave"}],
            "roleRef": {"name": "view"},
        })
    );
    assert_eq!(convert::binding_to_rbac(shown, false).unwrap(), recorded_binding());
}

#[test]
fn subjects_of_every_kind_are_told_apart() {
    let mut binding = recorded_binding();
    let subject =
        |kind: &str, name: &str, namespace: &str| json!({"kind": kind, "name": name, "namespace": namespace});
    let subjects = json!([
        subject("User", "system:admin", ""),
        subject("User", "b64:eA", ""),
        subject("Group", "team", ""),
        subject("Group", "system:masters", ""),
        subject("ServiceAccount", "robot", ""),
        subject("ServiceAccount", "other", "elsewhere"),
    ]);
    binding.0.insert("subjects".to_owned(), subjects);
    binding.0.insert("roleRef".to_owned(), json!({"kind": "Role", "name": "own"}));
    let shown = convert::binding_from_rbac(binding).unwrap();
    assert_eq!(
        shown.0["subjects"],
        json!([
            {"kind": "SystemUser", "name": "system:admin"},
            {"kind": "User", "name": "b64:eA"},
            {"kind": "Group", "name": "team"},
            {"kind": "SystemGroup", "name": "system:masters"},
            {"kind": "ServiceAccount", "name": "robot"},
            {"kind": "ServiceAccount", "name": "other", "namespace": "elsewhere"},
        ])
    );
    assert_eq!(
        shown.0["userNames"],
        json!([
            "system:admin",
            "b64:eA",
            "system:serviceaccount:demo:robot",
            "system:serviceaccount:elsewhere:other"
        ])
    );
    assert_eq!(shown.0["groupNames"], json!(["team", "system:masters"]));
    assert_eq!(shown.0["roleRef"], json!({"name": "own", "namespace": "demo"}));
    assert_eq!(
        printing::binding_row(&shown),
        [
            json!("rb1"),
            json!("demo/own"),
            json!("system:admin, b64:eA"),
            json!("team, system:masters"),
            json!("robot, elsewhere/other"),
            json!(""),
        ]
    );
}

#[test]
fn long_lists_are_cut_in_tables() {
    let subjects: Vec<Value> = (0..7).map(|n| json!({"kind": "User", "name": format!("u{n}")})).collect();
    let binding = object(json!({"metadata": {"name": "b"}, "subjects": subjects, "roleRef": {"name": "r"}}));
    let row = printing::binding_row(&binding);
    assert_eq!((&row[1], &row[2]), (&json!("/r"), &json!("u0, u1, u2, u3, u4 (2 more)")));
}

fn sent(changes: &Value) -> Object {
    let mut binding = json!({
        "apiVersion": "authorization.openshift.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "rb", "namespace": "demo"},
        "userNames": null, "groupNames": null, "subjects": [], "roleRef": {"name": "view"},
    });
    for (field, value) in changes.as_object().unwrap() {
        binding[field] = value.clone();
    }
    object(binding)
}

#[test]
fn old_lists_of_names_count_before_subjects() {
    let changes = json!({
        "userNames": ["jane", "system:serviceaccount:a:robot", "system:serviceaccount:bad_one"],
        "groupNames": ["team"],
        "subjects": [{"kind": "User", "name": "ignored"}],
    });
    let written = convert::binding_to_rbac(sent(&changes), false).unwrap();
    let group = "rbac.authorization.k8s.io";
    assert_eq!(
        written.0["subjects"],
        json!([
            {"apiGroup": group, "kind": "User", "name": "jane"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "a"},
            {"apiGroup": group, "kind": "User", "name": "system:serviceaccount:bad_one"},
            {"apiGroup": group, "kind": "Group", "name": "team"},
        ])
    );
    let empty = json!({"userNames": [], "subjects": [{"kind": "User", "name": "ignored"}]});
    assert_eq!(convert::binding_to_rbac(sent(&empty), false).unwrap().0["subjects"], json!([]));
    let subjects = json!({"subjects": [{"kind": "SystemUser", "name": "system:admin"}, {"kind": "SystemGroup", "name": "g"}]});
    let written = convert::binding_to_rbac(sent(&subjects), false).unwrap();
    assert_eq!(written.0["subjects"][0], json!({"apiGroup": group, "kind": "User", "name": "system:admin"}));
    assert_eq!(written.0["roleRef"], json!({"apiGroup": group, "kind": "ClusterRole", "name": "view"}));
    let own = json!({"roleRef": {"name": "r", "namespace": "demo"}});
    assert_eq!(convert::binding_to_rbac(sent(&own), false).unwrap().0["roleRef"]["kind"], "Role");
}

#[test]
fn what_rbac_cannot_say_is_refused_in_upstream_s_words() {
    let refused =
        |changes: &Value, cluster: bool| convert::binding_to_rbac(sent(changes), cluster).unwrap_err();
    let status = refused(&json!({"roleRef": {"name": "r", "namespace": "other"}}), false);
    assert_eq!(
        status.message,
        "invalid origin role binding rb: attempts to reference role in namespace \"other\" instead of current namespace \"demo\""
    );
    assert_eq!((status.code, status.reason.as_str()), (500, ""));
    let status = refused(&json!({"roleRef": {"name": "r", "namespace": "demo"}}), true);
    assert_eq!(
        status.message,
        "invalid origin cluster role binding rb: attempts to reference role in namespace \"demo\" instead of cluster scope"
    );
    let status = refused(&json!({"subjects": [{"kind": "Robot", "name": "x"}]}), false);
    assert_eq!(status.message, "invalid kind for origin subject: \"Robot\"");
}

#[test]
fn rules_and_annotations_are_turned_both_ways() {
    let role = object(json!({
        "apiVersion": "authorization.openshift.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r", "annotations": {"openshift.io/reconcile-protect": "true", "a": "b"}},
        "rules": [
            {"verbs": ["list", "get", "get"], "resources": ["pods"], "attributeRestrictions": null},
            {"verbs": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "resources": ["secrets"], "attributeRestrictions": {"kind": "IsPersonalSubjectAccessReview"}},
            {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["a"], "nonResourceURLs": ["/x"]},
            {"verbs": ["get"], "resources": [], "nonResourceURLs": ["/y"]},
        ],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
    }));
    let written = convert::role_to_rbac(role);
    assert_eq!(
        Value::from(written.0.clone()),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r", "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false", "a": "b"}},
            "rules": [
                {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["a"]},
                {"verbs": ["get"], "nonResourceURLs": ["/x"]},
                {"verbs": ["get"], "nonResourceURLs": ["/y"]},
            ],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
        })
    );
    let shown = convert::role_from_rbac(written);
    assert_eq!(shown.annotation("openshift.io/reconcile-protect"), Some("true"));
    assert_eq!(
        shown.0["rules"][0],
        json!({"verbs": ["get", "list"], "attributeRestrictions": null, "apiGroups": [""], "resources": ["pods"]})
    );
    assert_eq!(
        shown.0["rules"][4],
        json!({"verbs": ["get"], "attributeRestrictions": null, "resources": [], "nonResourceURLs": ["/y"]})
    );
    let odd = json!({"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "maybe"}}});
    assert_eq!(convert::role_from_rbac(object(odd)).annotations().len(), 1);
}

fn review(changes: &Value) -> Object {
    let mut review = json!({
        "metadata": {}, "namespace": "", "verb": "get", "resourceAPIGroup": "", "resourceAPIVersion": "",
        "resource": "pods/log", "resourceName": "", "path": "", "isNonResourceURL": false, "content": null,
    });
    for (field, value) in changes.as_object().unwrap() {
        review[field] = value.clone();
    }
    object(review)
}

#[test]
fn bodies_are_checked_as_upstream_does() {
    let check =
        |changes: &Value, local: bool| -> Option<Status> { action::check(&review(changes), local).err() };
    assert_eq!(check(&json!({}), false), None);
    assert_eq!(check(&json!({"metadata": {"creationTimestamp": null}}), false), None);
    assert_eq!(check(&json!({"metadata": {"namespace": "x"}}), true), None);
    assert!(check(&json!({"metadata": {"namespace": "x"}}), false).is_some());
    assert!(check(&json!({"metadata": {"name": "x"}}), true).is_some());
    let status = check(&json!({"verb": "", "resource": ""}), false).unwrap();
    assert_eq!(
        status.message,
        ".authorization.openshift.io \"\" is invalid: [verb: Required value, resource: Required value]"
    );
    let status = check(&json!({"isNonResourceURL": true, "resourceAPIGroup": "g"}), true).unwrap();
    assert_eq!(
        status.message,
        ".authorization.openshift.io \"\" is invalid: [path: Required value, resource: Invalid value: \"pods/log\": \
         resource may not be specified with non resource URLs, group: Invalid value: \"g\": group may not be specified \
         with non resource URLs]"
    );
}

#[test]
fn a_body_says_what_is_asked() {
    let asked = action::attributes(
        &review(&json!({"resourceAPIVersion": "v1", "resourceName": "p"})),
        "ns".to_owned(),
    );
    let expected = Attributes {
        verb: "get".to_owned(),
        version: "v1".to_owned(),
        resource: "pods".to_owned(),
        subresource: "log".to_owned(),
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        ..Attributes::default()
    };
    assert_eq!(asked, expected);
    let path = action::attributes(&review(&json!({"isNonResourceURL": true, "path": "/x"})), "ns".to_owned());
    assert_eq!(path, Attributes { verb: "get".to_owned(), path: "/x".to_owned(), ..Attributes::default() });
    let namespace =
        |given: &str, local| action::namespace(&review(&json!({"namespace": given})), local, "own");
    assert_eq!(namespace("x", false).unwrap(), "x");
    assert_eq!(namespace("", true).unwrap(), "own");
    assert_eq!(namespace("own", true).unwrap(), "own");
    assert_eq!(
        namespace("x", true).unwrap_err().message,
        "namespace: Invalid value: \"x\": namespace must be: own"
    );
}
