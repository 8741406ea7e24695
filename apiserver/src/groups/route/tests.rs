//! Routes as the registry drives them, and the harness of the other tests.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{FieldError, Object, Status, UserInfo};
use serde_json::{Value, json};

use super::strategy::RouteStrategy;
use super::{GROUP, ROUTES};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::registry::strategy::{Planned, Stored, Strategy};
use crate::rest::RequestContext;
use crate::secrets::SecretTypes;
use crate::store::Key;

/// Allows all but what is listed: `secrets`, or a verb before `routes/custom-host`; `broken` fails.
pub(super) struct Rules {
    pub(super) denied: &'static [&'static str],
}

#[async_trait]
impl Authorizer for Rules {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status> {
        if self.denied.contains(&"broken") {
            return Err(Status::internal("no answer"));
        }
        let asked = if attributes.resource == "secrets" {
            assert_eq!(user.name, "system:serviceaccount:openshift-ingress:router");
            "secrets".to_owned()
        } else {
            assert_eq!((&*user.name, &*attributes.group), ("alice", GROUP));
            format!("{} {}/{}", attributes.verb, attributes.resource, attributes.subresource)
        };
        if self.denied.contains(&asked.as_str()) {
            Ok(Decision::Deny { reason: String::new() })
        } else {
            Ok(Decision::Allow)
        }
    }
}

/// There are the secrets `certificate`, of the right type, and `opaque`.
#[async_trait]
impl SecretTypes for Rules {
    async fn secret_type(&self, namespace: &str, name: &str) -> Result<String, Status> {
        match name {
            "certificate" => Ok("kubernetes.io/tls".to_owned()),
            "opaque" => Ok("Opaque".to_owned()),
            "unreadable" => Err(Status::internal(namespace)),
            _ => Err(Status::not_found("", "secrets", name)),
        }
    }
}

pub(super) fn strategy_at(domain: &str, denied: &'static [&'static str]) -> RouteStrategy {
    let rules = Arc::new(Rules { denied });
    RouteStrategy::new(Arc::clone(&rules) as Arc<dyn Authorizer>, rules, domain)
}

pub(super) fn context(namespace: &str, verb: &str) -> RequestContext {
    let info = RequestInfo {
        is_resource: true,
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        resource: "routes".to_owned(),
        ..RequestInfo::default()
    };
    RequestContext::new(Arc::new(UserInfo { name: "alice".to_owned(), ..UserInfo::default() }), info)
}

fn refuse(object: &Object, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(GROUP, "Route", object.name(), errors)) }
}

/// A create as the registry does it, up to the write.
pub(super) async fn create(
    strategy: &RouteStrategy,
    cx: &RequestContext,
    mut object: Object,
) -> Result<Object, Status> {
    strategy.set_defaults(&mut object);
    object.set_metadata("namespace", cx.info.namespace.as_str());
    object.set_metadata("uid", "u");
    object.set_metadata("creationTimestamp", "2026-11-30T03:58:23Z");
    object.set_metadata("generation", 1);
    strategy.prepare_create(cx, &mut object);
    let errors = strategy.validate_create(cx, &mut object).await?;
    refuse(&object, &errors)?;
    Ok(object)
}

/// An update as the registry does it, up to the write.
pub(super) async fn update(
    strategy: &RouteStrategy,
    cx: &RequestContext,
    subresource: &str,
    mut object: Object,
    old: &Object,
) -> Result<Object, Status> {
    strategy.strip(&mut object);
    strategy.set_defaults(&mut object);
    strategy.prepare_update(cx, subresource, &mut object, old);
    let errors = strategy.validate_update(cx, subresource, &mut object, old).await?;
    refuse(&object, &errors)?;
    Ok(object)
}

pub(super) fn strategy(denied: &'static [&'static str]) -> RouteStrategy {
    strategy_at("apps.lab.example", denied)
}

pub(super) fn route(spec: &Value) -> Object {
    let mut object = Object::new("route.openshift.io/v1", "Route");
    object.set_metadata("name", "web");
    object.0.insert("spec".to_owned(), spec.clone());
    object
}

/// The messages of a refused create or update; empty where it is accepted.
fn messages(answer: Result<Object, Status>) -> Vec<String> {
    match answer {
        Ok(_) => Vec::new(),
        Err(status) => status
            .details
            .map(|details| {
                details
                    .causes
                    .into_iter()
                    .map(|cause| format!("{}: {}", cause.field, cause.message))
                    .collect()
            })
            .unwrap_or_default(),
    }
}

async fn refused_create(denied: &'static [&'static str], spec: Value) -> Vec<String> {
    messages(create(&strategy(denied), &context("demo", "create"), route(&spec)).await)
}

async fn refused_update(denied: &'static [&'static str], old: Value, new: Value) -> Vec<String> {
    let old = create(&strategy(&[]), &context("demo", "create"), route(&old)).await.unwrap();
    let mut object = route(&new);
    object.set_metadata("namespace", "demo");
    messages(update(&strategy(denied), &context("demo", "update"), "", object, &old).await)
}

#[tokio::test]
async fn hosts_are_generated_with_dots_as_dashes_and_only_where_none_is_chosen() {
    let make = |mut object: Object| async move {
        object.set_metadata("name", "a.b");
        create(&strategy(&[]), &context("demo", "create"), object).await.unwrap()
    };
    let made = make(route(&json!({"host": "", "to": {"name": "s"}}))).await;
    assert_eq!(made.str_at(&["spec", "host"]), "a-b-demo.apps.lab.example");
    assert_eq!(made.annotation("openshift.io/host.generated"), Some("true"));
    for chosen in
        [json!({"host": "x.y", "to": {"name": "s"}}), json!({"subdomain": "x", "to": {"name": "s"}})]
    {
        let made = make(route(&chosen)).await;
        assert_eq!(made.at(&["spec", "host"]), chosen.get("host"));
        assert_eq!(made.annotation("openshift.io/host.generated"), None);
    }
}

#[tokio::test]
async fn choosing_a_host_or_certificates_needs_create_on_custom_host() {
    const DENIED: &[&str] = &["create routes/custom-host"];
    let to = json!({"name": "s"});
    assert_eq!(refused_create(DENIED, json!({"to": to})).await, Vec::<String>::new());
    assert_eq!(refused_create(DENIED, json!({"to": to, "subdomain": "x"})).await, Vec::<String>::new());
    assert_eq!(
        refused_create(DENIED, json!({"to": to, "host": "x.y", "tls": {"key": "k"}})).await,
        ["spec.host: Forbidden: you do not have permission to set the host field of the route"]
    );
    for tls in [
        json!({"key": "k"}),
        json!({"caCertificate": "c"}),
        json!({"externalCertificate": {"name": "certificate"}}),
    ] {
        assert_eq!(
            refused_create(DENIED, json!({"to": to, "tls": tls})).await,
            ["spec.tls: Forbidden: you do not have permission to set certificate fields on the route"]
        );
    }
    assert_eq!(
        refused_create(DENIED, json!({"to": {}, "host": "x.y"})).await,
        [
            "spec.host: Forbidden: you do not have permission to set the host field of the route",
            "spec.to.name: Required value",
        ]
    );
    assert_eq!(
        refused_create(&["broken"], json!({"to": to, "host": "x.y"})).await,
        ["spec.host: Internal error: ".to_owned() + &Status::internal("no answer").message]
    );
}

#[tokio::test]
async fn changing_a_host_needs_update_and_certificates_alone_need_create() {
    const NO_UPDATE: &[&str] = &["update routes/custom-host"];
    const NEITHER: &[&str] = &["update routes/custom-host", "create routes/custom-host"];
    let plain = json!({"to": {"name": "s"}, "host": "x.y"});
    let with = |tls: Value| json!({"to": {"name": "s"}, "host": "x.y", "tls": tls});
    let none = Vec::<String>::new();
    assert_eq!(refused_update(NEITHER, plain.clone(), json!({"to": {"name": "t"}})).await, none);
    assert_eq!(
        refused_update(NEITHER, plain.clone(), json!({"to": {"name": "s"}, "subdomain": "z"})).await,
        [
            "spec.subdomain: Invalid value: \"z\": you do not have permission to set the subdomain field of the route"
        ]
    );
    // A stanza without material, and taking material away, are free.
    assert_eq!(refused_update(NEITHER, plain.clone(), with(json!({"termination": "edge"}))).await, none);
    let edge = with(json!({"termination": "edge", "certificate": "c", "key": "k"}));
    assert_eq!(refused_update(NEITHER, edge.clone(), plain.clone()).await, none);
    // New material.
    let other = with(json!({"termination": "edge", "certificate": "d<", "key": "l"}));
    assert_eq!(refused_update(NO_UPDATE, edge.clone(), other.clone()).await, none);
    assert_eq!(
        refused_update(NEITHER, edge, other.clone()).await,
        [
            "spec.tls.certificate: Invalid value: \"d<\": you do not have permission to set certificate fields on the route",
            "spec.tls.key: Invalid value: \"redacted key data\": you do not have permission to set certificate fields on the route",
        ]
    );
    assert_eq!(
        refused_update(NEITHER, plain, other).await,
        [
            "spec.tls: Invalid value: {\"termination\":\"edge\",\"certificate\":\"d\\u003c\",\"key\":\"redacted key data\"}: you do not have permission to set certificate fields on the route"
        ]
    );
    // An external certificate counts as changed at every update.
    let external = with(json!({"termination": "edge", "externalCertificate": {"name": "certificate"}}));
    assert_eq!(
        refused_update(NEITHER, external.clone(), external).await,
        [
            "spec.tls.externalCertificate: Invalid value: {\"name\":\"certificate\"}: you do not have permission to set certificate fields on the route"
        ]
    );
}

#[tokio::test]
async fn updates_keep_what_old_routes_got_away_with() {
    let label = "a".repeat(64);
    let long = format!("{label}.example");
    let none = Vec::<String>::new();
    let mut old =
        route(&json!({"host": long, "path": "/a b", "to": {"name": "s"}, "wildcardPolicy": "None"}));
    strategy(&[]).set_defaults(&mut old);
    let run = |new: Value| {
        let old = old.clone();
        async move {
            let object = route(&new);
            messages(update(&strategy(&[]), &context("demo", "update"), "", object, &old).await)
        }
    };
    assert_eq!(run(json!({"path": "/a b", "to": {"name": "t"}})).await, none);
    assert_eq!(
        run(json!({"host": format!("{label}.other"), "path": "/a b", "to": {"name": "s"}})).await,
        none
    );
    assert_eq!(
        run(json!({"path": "/#", "wildcardPolicy": "Subdomain", "to": {"name": "s"}})).await,
        [
            "spec.wildcardPolicy: Invalid value: \"Subdomain\": field is immutable",
            "spec.path: Invalid value: \"/#\": cannot contain # or spaces",
        ]
    );
}

#[tokio::test]
async fn rules_of_single_fields() {
    let actions = |list: Value| json!({"to": {"name": "s"}, "httpHeaders": {"actions": {"request": list}}});
    let del = |name: &str| json!({"name": name, "action": {"type": "Delete"}});
    let many: Vec<Value> = (0..21).map(|i| del(&format!("h{i}"))).collect();
    let cases: Vec<(Value, Vec<String>)> = vec![
        (actions(json!([del("A"), del("a"), del("A")])), vec![
            "spec.httpHeaders.actions.request[2].name: Duplicate value: \"A\"".to_owned(),
        ]),
        (actions(json!([{"name": "", "action": {"type": "Add", "set": {"value": ""}}}])), vec![
            "spec.httpHeaders.actions.request[0].name: Required value".to_owned(),
            "spec.httpHeaders.actions.request[0].action.type: Invalid value: \"Add\": type must be \"Set\" or \"Delete\"".to_owned(),
            "spec.httpHeaders.actions.request[0].action.set: Required value: set is required when type is Set, and forbidden otherwise".to_owned(),
            "spec.httpHeaders.actions.request[0].action.set.value: Required value".to_owned(),
        ]),
        (actions(json!(many)), vec![format!(
            "spec.httpHeaders.actions.request: Invalid value: [{}]: request headers list can't exceed 20 items",
            (0..21).map(|i| format!("{{\"name\":\"h{i}\",\"action\":{{\"type\":\"Delete\"}}}}")).collect::<Vec<_>>().join(",")
        )]),
        (json!({"to": {"name": "s"}, "tls": {"termination": "edge", "certificate": "c", "externalCertificate": {"name": "s"}}}), vec![
            "spec.tls.externalCertificate: Invalid value: \"s\": cannot specify both tls.certificate and tls.externalCertificate".to_owned(),
        ]),
        (json!({"to": {"name": "s"}, "tls": {"termination": "edge", "externalCertificate": {"name": "certificate"}}}), vec![]),
        (json!({"to": {"name": "s"}, "tls": {"termination": "edge", "externalCertificate": {"name": "opaque"}}}), vec![
            "spec.tls.externalCertificate: Invalid value: \"opaque\": secret of type \"kubernetes.io/tls\" required".to_owned(),
        ]),
        (json!({"to": {"name": "s"}, "tls": {"termination": "reencrypt", "externalCertificate": {"name": "nosuch"}}}), vec![
            "spec.tls.externalCertificate: Not found: \"secrets \\\"nosuch\\\" not found\"".to_owned(),
        ]),
        (json!({"to": {"name": "s"}, "path": "a b"}), vec![
            "spec.path: Invalid value: \"a b\": cannot contain # or spaces".to_owned(),
            "spec.path: Invalid value: \"a b\": path must begin with /".to_owned(),
        ]),
        (json!({"to": {"name": "s"}, "subdomain": "a.-"}), vec![
            format!("spec.subdomain: Invalid value: \"-\": {}", picoshift_machinery::names::dns1123_label("-").join(", ")),
        ]),
        (json!({"to": {"name": "s"}, "port": {}}), vec!["spec.port.targetPort: Required value".to_owned()]),
        (json!({"to": {"name": "s", "weight": 0}, "tls": {"termination": "Reencrypt", "destinationCACertificate": "c"}}), vec![]),
        (json!({"to": {"name": "s"}, "tls": {"destinationCACertificate": "c"}}), vec![
            "spec.tls.termination: Unsupported value: \"\": supported values: \"edge\", \"passthrough\", \"reencrypt\"".to_owned(),
        ]),
    ];
    for (spec, wanted) in cases {
        assert_eq!(refused_create(&[], spec.clone()).await, wanted, "{spec}");
    }
    let mut annotated = route(&json!({"host": format!("{}.example", "a".repeat(64)), "to": {"name": "s"}}));
    annotated.set_annotation("route.openshift.io/allow-non-dns-compliant-host", "true");
    annotated.set_metadata("finalizers", json!(["orphan", "mine", "a.b/c"]));
    assert_eq!(
        messages(create(&strategy(&[]), &context("demo", "create"), annotated).await),
        [
            "metadata.finalizers[1]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let strategy = strategy(&[]);
    let cx = context("demo", "update");
    let mut sent = route(&json!({"to": {"name": "s"}, "tls": {"termination": "reencrypt",
        "destinationCACertificate": "-----BEGIN COMMENT-----\nThis is an empty PEM file created to provide backwards compatibility\nfor reencrypt routes that have no destinationCACertificate. This \ncontent will only appear for routes accessed via /oapi/v1/routes.\n-----END COMMENT-----\n"}}));
    sent.0.insert("status".to_owned(), json!({"ingress": [{"routerName": "mine"}]}));
    let old = create(&strategy, &cx, sent).await.unwrap();
    assert_eq!(old.at(&["status"]), Some(&json!({})));
    assert_eq!(old.at(&["spec", "tls", "destinationCACertificate"]), None);

    let mut sent = old.clone();
    sent.object_mut("spec").insert("path".to_owned(), json!("/x"));
    sent.0.insert(
        "status".to_owned(),
        json!({"ingress": [{"routerName": "default", "host": "evil"}, {"routerName": "mine"}]}),
    );
    let written = update(&strategy, &cx, "status", sent.clone(), &old).await.unwrap();
    assert_eq!(written.at(&["spec"]), old.at(&["spec"]));
    assert_eq!(
        written.at(&["status"]),
        Some(&json!({"ingress": [{"routerName": "mine", "wildcardPolicy": "None"}]}))
    );
    let written = update(&strategy, &cx, "", sent, &written).await.unwrap();
    assert_eq!(written.str_at(&["spec", "path"]), "/x");
    assert_eq!(
        written.at(&["status"]),
        Some(&json!({"ingress": [{"routerName": "mine", "wildcardPolicy": "None"}]}))
    );
}

#[test]
fn both_host_and_subdomain_warn() {
    let warnings = strategy(&[]).warnings(&route(&json!({"host": "a", "subdomain": "b"})));
    assert_eq!(warnings, ["spec.host is set; spec.subdomain may be ignored"]);
    assert!(strategy(&[]).warnings(&route(&json!({"host": "a"}))).is_empty());
}

#[test]
fn rows_show_hosts_services_and_termination() {
    let entry = |host: &str, status: &str| json!({"host": host, "conditions": [{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed"}]});
    let host = |ingress: Value| {
        let mut object = route(&json!({"host": "w", "to": {"name": "s", "weight": 100}}));
        object.0.insert("status".to_owned(), json!({"ingress": ingress}));
        strategy(&[]).row(&object)[1].clone()
    };
    assert_eq!(host(Value::Null), "w");
    assert_eq!(host(json!([])), "Pending");
    assert_eq!(host(json!([entry("x", "True")])), "x");
    assert_eq!(host(json!([entry("x", "True"), entry("w", "True"), entry("y", "True")])), "w ... 2 more");
    assert_eq!(host(json!([entry("x", "True"), entry("w", "False")])), "x ... 1 rejected");
    assert_eq!(host(json!([entry("w", "False"), entry("w", "Unknown")])), "HostAlreadyClaimed");

    let cells = |spec: Value| strategy(&[]).row(&route(&spec));
    let cells_of = cells(json!({"to": {"name": "a1", "weight": 20},
        "alternateBackends": [{"name": "b2", "weight": 10}, {"name": "c3", "weight": 0}],
        "port": {"targetPort": 8080}, "path": "/p", "wildcardPolicy": "None",
        "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}}));
    assert_eq!(
        json!(cells_of),
        json!(["web", "", "/p", "a1(66%),b2(33%),c3(0%)", "8080", "edge/Redirect", "None"])
    );
    assert_eq!(cells_of.len(), ROUTES.columns.len());
    assert_eq!(cells(json!({"to": {"name": "a", "weight": 0}}))[3], "a(0%)");
    assert_eq!(cells(json!({"to": {"name": "a"}}))[4], "<all>");
    assert_eq!(cells(json!({"tls": {"insecureEdgeTerminationPolicy": "Allow"}}))[5], "default/Allow");
}

#[test]
fn the_entry_of_the_router_shows_why_and_since_when() {
    let strategy = strategy(&[]);
    let plan = |spec: Value, old: Option<&Stored>, now: &str| {
        let key = Key::from("routes.route.openshift.io/demo/web");
        let mut object = route(&spec);
        strategy.set_defaults(&mut object);
        let write = Planned {
            key: &key,
            old,
            new: Some(&object),
            computed: None,
            create_revision: None,
            touch: false,
        };
        let computed = strategy.plan(write, now).computed;
        Stored { object, computed }
    };
    let entry = |stored: &Stored| strategy.present(stored).at(&["status", "ingress"]).unwrap()[0].clone();
    let admitted = plan(json!({"subdomain": "a", "to": {"name": "s"}}), None, "t1");
    assert_eq!(
        entry(&admitted),
        json!({"host": "a.apps.lab.example", "routerName": "default", "wildcardPolicy": "None",
            "routerCanonicalHostname": "router-default.apps.lab.example",
            "conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": "t1"}]})
    );
    let same = plan(json!({"subdomain": "a", "path": "/p", "to": {"name": "s"}}), Some(&admitted), "t2");
    assert_eq!(same.computed, admitted.computed);
    let moved = plan(json!({"subdomain": "b", "to": {"name": "s"}}), Some(&admitted), "t2");
    assert_eq!(moved.computed.since, "t2");
    for (spec, reason, message) in [
        (
            json!({"wildcardPolicy": "Subdomain", "host": "a.b"}),
            "RouteNotAdmitted",
            "wildcard routes are not allowed",
        ),
        (json!({}), "NoHostValue", "no host value was defined for the route"),
    ] {
        let condition = entry(&plan(spec, None, "t3"))["conditions"][0].clone();
        assert_eq!(
            condition,
            json!({"type": "Admitted", "status": "False", "reason": reason, "message": message, "lastTransitionTime": "t3"})
        );
    }
    let long = format!("{}.b", "a".repeat(64));
    let condition = entry(&plan(json!({"host": long}), None, "t4"))["conditions"][0].clone();
    assert_eq!(condition["reason"], "InvalidHost");
    assert_eq!(
        condition["message"],
        format!(
            "host name validation errors: spec.host: Invalid value: \"{long}\": must be no more than 63 characters"
        )
    );
}
