//! What is missing where, and what the bindings look like.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::metrics::ControllerMetrics;

fn namespace(name: &str, going: bool) -> PartialObjectMeta<Namespace> {
    let deletion_timestamp = going.then_some(Time(jiff::Timestamp::UNIX_EPOCH));
    let metadata = ObjectMeta { name: Some(name.to_owned()), deletion_timestamp, ..ObjectMeta::default() };
    PartialObjectMeta { metadata, ..PartialObjectMeta::default() }
}

fn binding(namespace: &str, name: &str) -> PartialObjectMeta<RoleBinding> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    PartialObjectMeta { metadata, ..PartialObjectMeta::default() }
}

fn world() -> World {
    World::new(Queue::new(BACKOFF, ControllerMetrics::default()))
}

fn names(world: &World, namespace: &str) -> Vec<&'static str> {
    world.missing(namespace).into_iter().map(|wanted| wanted.binding).collect()
}

/// The namespaces that are due, sorted; they count as worked on.
async fn due(world: &World) -> Vec<String> {
    let stop = picoshift_machinery::drain::Drain::new();
    let seen = Mutex::new(Vec::new());
    let reconcile = |name: String| {
        seen.lock().push(name);
        async { Outcome::Done }
    };
    tokio::select! {
        () = world.queue.work(1, &stop, reconcile) => {}
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    let mut seen = seen.into_inner();
    seen.sort();
    seen
}

#[tokio::test(start_paused = true)]
async fn nothing_is_missing_before_everything_is_known() {
    let world = world();
    Namespaces(&world).replace(vec![namespace("a", false)]);
    assert!(names(&world, "a").is_empty());
    assert!(due(&world).await.is_empty());
    Bindings(&world).replace(vec![binding("a", "system:deployers"), binding("a", "admin")]);
    world.known().await;
    assert_eq!(names(&world, "a"), ["system:image-pullers", "system:image-builders"]);
    assert_eq!(due(&world).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_due_when_it_comes_and_when_it_loses_a_binding() {
    let world = world();
    Bindings(&world).replace(Vec::new());
    Namespaces(&world).replace(vec![namespace("a", true)]);
    assert!(due(&world).await.is_empty(), "it is going");
    Namespaces(&world).apply(namespace("b", false));
    assert_eq!(due(&world).await, ["b"]);
    for wanted in WANTED {
        Bindings(&world).apply(binding("b", wanted.binding));
    }
    // A change of what has everything is no work.
    Namespaces(&world).apply(namespace("b", false));
    Bindings(&world).apply(binding("b", "system:deployers"));
    Bindings(&world).delete(binding("b", "somebody-elses"));
    assert!(due(&world).await.is_empty());
    Bindings(&world).delete(binding("b", "system:deployers"));
    assert_eq!(names(&world, "b"), ["system:deployers"]);
    assert_eq!(due(&world).await, ["b"]);

    // While a namespace is emptied its bindings go one by one, and none comes back.
    Namespaces(&world).apply(namespace("b", true));
    Bindings(&world).delete(binding("b", "system:image-pullers"));
    assert!(due(&world).await.is_empty());
    Namespaces(&world).delete(namespace("b", true));
    assert!(names(&world, "b").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_read_anew_finds_what_went_meanwhile() {
    let world = world();
    Namespaces(&world).replace(vec![namespace("a", false), namespace("b", false)]);
    let all = |name| WANTED.map(|wanted| binding(name, wanted.binding));
    Bindings(&world).replace([all("a"), all("b")].concat());
    assert!(due(&world).await.is_empty());
    Bindings(&world).replace(all("a").to_vec());
    assert_eq!(due(&world).await, ["b"]);
    Namespaces(&world).replace(vec![namespace("a", false), namespace("c", false)]);
    assert_eq!(due(&world).await, ["c"]);
}

#[test]
fn the_bindings_are_openshift_s() {
    let shown = |index: usize| serde_json::to_value(WANTED[index].in_namespace("shop")).unwrap();
    let description = "Allows all pods in this namespace to pull images from this namespace.  It is auto-managed by \
        a controller; remove subjects to disable.";
    assert_eq!(
        shown(0),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "system:image-pullers", "namespace": "shop",
                "annotations": {"openshift.io/description": description}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:image-puller"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                "name": "system:serviceaccounts:shop"}],
        })
    );
    assert_eq!(
        shown(2)["subjects"],
        json!([{"kind": "ServiceAccount", "name": "deployer", "namespace": "shop"}])
    );
}

#[test]
fn what_cannot_be_helped_is_not_tried_again() {
    let failed = |status: serde_json::Value| {
        is_settled(&kube::Error::Api(Box::new(serde_json::from_value(status).unwrap())))
    };
    assert!(failed(json!({"code": 409, "reason": "AlreadyExists", "status": "Failure", "message": ""})));
    assert!(failed(json!({"code": 404, "reason": "NotFound", "status": "Failure", "message": ""})));
    let going = json!({"code": 403, "reason": "Forbidden", "status": "Failure", "message": "",
        "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace", "message": ""}]}});
    assert!(failed(going));
    assert!(!failed(json!({"code": 403, "reason": "Forbidden", "status": "Failure", "message": ""})));
    assert!(!failed(json!({"code": 500, "reason": "InternalError", "status": "Failure", "message": ""})));
}
