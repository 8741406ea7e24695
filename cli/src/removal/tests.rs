//! What goes and what stays.

use serde_json::json;

use super::*;

fn kind(group: &str, kind: &str, namespaced: bool) -> Kind {
    Kind { resource: ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)), namespaced }
}

/// A plan over objects: kind, namespace, name, whether it is ours, who wrote it.
fn plan(objects: &[(usize, Option<&str>, &str, bool, &str)]) -> Removal {
    let kinds = vec![
        kind("", "Namespace", false),
        kind("apiextensions.k8s.io", "CustomResourceDefinition", false),
        kind("", "ConfigMap", true),
        kind("console.openshift.io", "ConsoleLink", false),
    ];
    let mut plan = Removal { kinds, ..Removal::default() };
    for (at, namespace, name, ours, manager) in objects {
        let labels = if *ours { json!({"app.kubernetes.io/managed-by": "picoshift"}) } else { json!({}) };
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": *name, "labels": labels,
            "managedFields": [{"manager": manager}],
        });
        let resource = plan.kinds[*at].resource.clone();
        plan.sort(*at, &resource, serde_json::from_value(metadata).unwrap());
    }
    plan.forget_what_is_used();
    plan
}

fn names(plan: &Removal) -> Vec<&str> {
    plan.ours.iter().map(|ours| ours.name.as_str()).collect()
}

#[test]
fn only_what_is_ours_goes() {
    let plan = plan(&[
        (0, None, "a", true, MANAGER),
        (0, None, "b", false, "kubectl"),
        (2, Some("b"), "c", true, MANAGER),
    ]);
    assert_eq!(names(&plan), ["a", "c"]);
    assert_eq!(plan.kept().count(), 0);
}

#[test]
fn a_namespace_with_somebodys_object_stays() {
    let plan = plan(&[
        (0, None, "used", true, MANAGER),
        (0, None, "unused", true, MANAGER),
        (2, Some("used"), "theirs", false, "kubectl"),
        (2, Some("used"), "ours", true, MANAGER),
        (2, Some("unused"), "kube-root-ca.crt", false, "kube-controller-manager"),
        (2, Some("unused"), "oauth-serving-cert", false, "unknown"),
    ]);
    assert_eq!(names(&plan), ["unused", "ours"]);
    assert_eq!(
        plan.kept().collect::<Vec<_>>(),
        ["namespaces/used stays: ConfigMap used/theirs is somebody else's"]
    );
}

#[test]
fn a_definition_with_somebodys_object_stays() {
    let definition = "consolelinks.console.openshift.io";
    let ours = (1, None, definition, true, MANAGER);
    assert_eq!(names(&plan(&[ours, (3, None, "ours", true, MANAGER)])), [definition, "ours"]);
    let kept = plan(&[ours, (3, None, "theirs", false, "kubectl")]);
    assert!(names(&kept).is_empty());
    assert_eq!(
        kept.kept().collect::<Vec<_>>(),
        [format!("{definition} stays: ConsoleLink theirs is somebody else's")]
    );
}

#[test]
fn each_kind_is_looked_at_in_one_version() {
    let resource = |name: &str, verbs: Value| json!({"resource": name, "responseKind": {"kind": "Kind"}, "scope": "Namespaced", "verbs": verbs});
    let all = || json!(["list", "delete"]);
    let group = json!({"versions": [
        {"version": "v2", "resources": [resource("a", all()), resource("b", json!(["list"]))]},
        {"version": "v1", "resources": [resource("a", all()), resource("c", all())]},
    ]});
    let kinds = kinds_of("g", &group);
    let found: Vec<_> =
        kinds.iter().map(|kind| (kind.resource.plural.as_str(), kind.resource.version.as_str())).collect();
    assert_eq!(found, [("a", "v2"), ("c", "v1")]);
}
