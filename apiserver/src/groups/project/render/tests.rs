//! Golden: the Project that OpenShift recorded for a Namespace.

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn metadata() -> Value {
    json!({
        "name": "req1",
        "uid": "673f540f-ee09-4f47-9e6f-0b1a5ee2ea02",
        "resourceVersion": "589",
        "creationTimestamp": "2026-11-30T03:57:56Z",
        "labels": {"kubernetes.io/metadata.name": "req1"},
        "annotations": {
            "openshift.io/description": "d",
            "openshift.io/display-name": "Req One",
            "openshift.io/requester": "system:admin"
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}],
        "finalizers": ["a/b"],
        "deletionTimestamp": "2026-11-30T04:00:00Z",
        "managedFields": [{
            "manager": "openshift-apiserver", "operation": "Update", "apiVersion": "v1",
            "time": "2026-11-30T03:57:56Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:finalizers": {}}}
        }]
    })
}

fn namespace() -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": metadata(),
        "spec": {"finalizers": ["openshift.io/origin", "kubernetes"]},
        "status": {"phase": "Terminating", "conditions": [{"type": "NamespaceDeletionContentFailure", "status": "False"}]}
    }))
}

#[test]
fn a_project_has_all_of_its_namespace() {
    let expected = json!({
        "apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": metadata(),
        "spec": {"finalizers": ["openshift.io/origin", "kubernetes"]},
        "status": {"phase": "Terminating", "conditions": [{"type": "NamespaceDeletionContentFailure", "status": "False"}]}
    });
    assert_eq!(project(namespace()), object(expected.clone()));
    let item = item(namespace()).unwrap();
    assert_eq!(item.object().unwrap(), object(expected));
    assert_eq!((&*item.name, item.revision, &*item.fields[0]), ("req1", 589, "Terminating"));
    assert_eq!(row(&item.object().unwrap()), [json!("req1"), json!("Req One"), json!("Terminating")]);
}

#[test]
fn spec_and_status_are_there_even_when_empty() {
    let bare = object(json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"finalizers": []}}));
    let shown = project(bare.clone());
    assert_eq!((&shown.0["spec"], &shown.0["status"]), (&json!({}), &json!({})));
    assert_eq!(row(&shown), [json!("a"), json!(""), json!("")]);
    assert_eq!(item(bare).unwrap().revision, 1);
    assert!(item(object(json!({"metadata": {"name": "a"}}))).is_none());
    assert!(item(object(json!({"metadata": {"resourceVersion": "1"}}))).is_none());
}

#[test]
fn a_dry_run_shows_no_revision() {
    let made = unsaved_item(object(json!({"metadata": {"name": "a"}})));
    assert_eq!(made.object().unwrap().resource_version(), "");
    assert_eq!(made.object().unwrap().kind(), "Project");
}

#[test]
fn a_new_namespace_has_no_finalizer_without_an_owner() {
    let namespace = new_namespace(&object(json!({
        "apiVersion": "project.openshift.io/v1", "kind": "Project",
        "metadata": {"name": "a", "namespace": "x", "labels": {"l": "v"}},
        "spec": {"finalizers": ["openshift.io/origin", "example.com/mine"]}, "status": {"phase": "Active"}
    })));
    let expected = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "a", "labels": {"l": "v"}, "annotations": {"openshift.io/display-name": ""}},
        "spec": {"finalizers": ["example.com/mine"]}
    });
    assert_eq!(namespace, object(expected));
    let plain = new_namespace(&object(json!({"metadata": {"name": "a"}})));
    assert!(!plain.0.contains_key("spec"));
}

#[test]
fn a_change_reaches_metadata_only() {
    let mut changed = project(namespace());
    changed.set_annotation(DISPLAY_NAME, "New");
    changed.set_metadata("finalizers", json!(["c/d"]));
    changed.object_mut("spec").insert("finalizers".to_owned(), json!([]));
    changed.object_mut("status").insert("phase".to_owned(), json!("Active"));
    let mut expected = namespace();
    expected.set_annotation(DISPLAY_NAME, "New");
    expected.set_metadata("finalizers", json!(["c/d"]));
    assert_eq!(changed_namespace(&changed, &namespace()), expected);
}
