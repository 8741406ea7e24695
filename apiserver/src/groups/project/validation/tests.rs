//! Golden: what OpenShift recorded for wrong Projects.

use picoshift_machinery::Status;
use serde_json::{Value, json};

use super::*;

fn project(metadata: Value) -> Object {
    let mut project = Object::new("project.openshift.io/v1", "Project");
    project.0.insert("metadata".to_owned(), metadata);
    project
}

fn message(name: &str, errors: &[FieldError]) -> String {
    Status::invalid("project.openshift.io", "Project", name, errors).message
}

#[test]
fn a_bare_replacement_is_refused_in_the_recorded_order() {
    let old = project(json!({
        "name": "demo", "uid": "fe93", "resourceVersion": "581", "creationTimestamp": "2026-11-30T03:57:50Z",
        "labels": {"kubernetes.io/metadata.name": "demo"},
        "annotations": {
            "openshift.io/description": "a demo",
            "openshift.io/display-name": "Demo",
            "openshift.io/requester": "system:admin"
        }
    }));
    let status = Status::invalid(
        "project.openshift.io",
        "Project",
        "demo",
        &update(&project(json!({"name": "demo"})), &old),
    );
    assert_eq!(
        status.message,
        "Project.project.openshift.io \"demo\" is invalid: [metadata.resourceVersion: Invalid value: \"\": must be specified for an update, metadata.uid: Invalid value: \"\": field is immutable, metadata.creationTimestamp: Invalid value: null: field is immutable, metadata.annotations[openshift.io/requester]: Invalid value: \"system:admin\": field is immutable, try updating the namespace, metadata.labels[kubernetes.io/metadata.name]: Invalid value: \"demo\": field is immutable, try updating the namespace]"
    );
    let causes: Vec<_> =
        status.details.unwrap().causes.into_iter().map(|c| (c.reason, c.message, c.field)).collect();
    assert_eq!(causes.len(), 5);
    assert_eq!(
        causes[2],
        (
            "FieldValueInvalid".into(),
            "Invalid value: null: field is immutable".into(),
            "metadata.creationTimestamp".into()
        )
    );
}

#[test]
fn names_and_selectors_are_refused_as_recorded() {
    for (metadata, expected) in [
        (
            json!({"name": "a"}),
            "Project.project.openshift.io \"a\" is invalid: metadata.name: Invalid value: \"a\": must be at least 2 characters long",
        ),
        (
            json!({"generateName": "gen-"}),
            "Project.project.openshift.io \"\" is invalid: [metadata.generateName: Invalid value: \"gen-\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), metadata.name: Required value: name or generateName is required]",
        ),
        (
            json!({"name": "seltest", "annotations": {"openshift.io/node-selector": "a=b,=c"}}),
            "Project.project.openshift.io \"seltest\" is invalid: nodeSelector: Invalid value: \"a=b,=c\": must be a valid label selector",
        ),
        (
            json!({"name": "ab", "annotations": {"openshift.io/display-name": "a\tb"}}),
            "Project.project.openshift.io \"ab\" is invalid: metadata.annotations[openshift.io/display-name]: Invalid value: \"a\\tb\": may not contain a new line or tab",
        ),
    ] {
        let project = project(metadata);
        assert_eq!(message(project.name(), &create(&project)), expected);
    }
    assert_eq!(create(&project(json!({"name": "a.b"})))[0].detail, "must not contain dots");
    assert_eq!(create(&project(json!({"name": "a/b"})))[0].detail, "may not contain '/'");
    assert_eq!(create(&project(json!({"name": "ab"}))), []);
}

#[test]
fn node_selectors_are_terms_of_equality() {
    for good in ["", " ", "a=b", "a = b , c/d=e", "a="] {
        assert!(is_node_selector(good), "{good:?}");
    }
    for bad in ["a", "a==b", "a!=b", "=c", "a=b,", ",a=b", "a b=c", "a in (b)", "a=b c"] {
        assert!(!is_node_selector(bad), "{bad:?}");
    }
}

#[test]
fn only_name_and_description_shown_to_people_may_change() {
    let metadata = |annotations: Value, labels: Value| {
        project(json!({"name": "ab", "resourceVersion": "1", "annotations": annotations, "labels": labels,
            "finalizers": ["x/y"], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}))
    };
    let old = project(json!({
        "name": "ab", "resourceVersion": "1", "annotations": {"openshift.io/display-name": "a", "k": "v"},
        "labels": {"l": "v"}
    }));
    let described = json!({"openshift.io/description": "d", "k": "v"});
    assert_eq!(update(&metadata(described.clone(), json!({"l": "v"})), &old), []);
    let fields = |errors: Vec<FieldError>| {
        errors.into_iter().map(|e| (e.field, e.shown.unwrap_or_default())).collect::<Vec<_>>()
    };
    let pair = |field: &str, shown: &str| (field.to_owned(), shown.to_owned());
    assert_eq!(
        fields(update(&metadata(json!({"k": "w", "n": "x"}), json!({"l": "w", "team": "x"})), &old)),
        [
            pair("metadata.annotations[k]", "\"w\""),
            pair("metadata.annotations[n]", "\"x\""),
            pair("metadata.labels[l]", "\"w\""),
            pair("metadata.labels[team]", "\"x\"")
        ]
    );
    assert_eq!(
        fields(update(&metadata(json!({}), json!({})), &old)),
        [pair("metadata.annotations[k]", "\"v\""), pair("metadata.labels[l]", "\"v\"")]
    );
    let labelled = update(&metadata(described, json!({"l": "v", "team": "x"})), &old);
    assert_eq!(
        message("ab", &labelled),
        "Project.project.openshift.io \"ab\" is invalid: metadata.labels[team]: Invalid value: \"x\": field is immutable, try updating the namespace"
    );
}

#[test]
fn metadata_is_checked_as_for_every_kind() {
    let deleting =
        project(json!({"name": "ab", "resourceVersion": "1", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["a/b"]}));
    let more =
        project(json!({"name": "ab", "resourceVersion": "1", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["a/b", "c/d"]}));
    assert_eq!(
        update(&more, &deleting)[0].to_string(),
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"c/d\"}"
    );
    let wrong = create(&project(json!({
        "name": "ab", "generation": -1, "labels": {"-": "x", "a": "-"}, "annotations": {"a b": "x"},
        "finalizers": ["orphan", "foregroundDeletion", "?"],
        "ownerReferences": [
            {"apiVersion": "apps/", "kind": "", "name": "n", "uid": "", "controller": true},
            {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u", "controller": true}
        ]
    })));
    let fields: Vec<&str> = wrong.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "metadata.generation",
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.ownerReferences.apiVersion",
            "metadata.ownerReferences.kind",
            "metadata.ownerReferences.uid",
            "metadata.ownerReferences",
            "metadata.ownerReferences",
            "metadata.finalizers",
            "metadata.finalizers"
        ]
    );
}
