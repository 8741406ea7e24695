//! Who owns which field of a Route, write by write, as the real server answers.

use std::sync::Arc;

use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::ROUTES;
use super::tests::{Rules, context, strategy};
use crate::admission::Admission;
use crate::authz::Authorizer;
use crate::decode::{Configuration, decode_configuration};
use crate::registry::Registry;
use crate::rest::apply::Application;
use crate::rest::fields::{FieldManagers, Tracker};
use crate::rest::patch::{ParsedPatch, PatchUpdater, Replacement, parse};
use crate::rest::{RequestContext, Storage, Updated, WriteOptions};
use crate::schema::{self, FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

struct Fixture {
    _dir: tempfile::TempDir,
    routes: Arc<Registry>,
    schemas: Schemas,
    fields: FieldManagers,
    authorizer: Arc<dyn Authorizer>,
}

/// What an apply is besides its configuration.
#[derive(Clone, Copy)]
struct By {
    manager: &'static str,
    subresource: &'static str,
    force: bool,
    dry_run: bool,
}

fn by(manager: &'static str) -> By {
    By { manager, subresource: "", force: false, dry_run: false }
}

impl Fixture {
    async fn new(denied: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let admission = Arc::new(Admission::default());
        let routes = Registry::start(engine as Arc<dyn Engine>, Arc::new(strategy(&[])), admission);
        let routes = routes.await.unwrap();
        let schemas = Schemas::load().unwrap();
        let types = Arc::new(schema::merge_types().unwrap());
        let fields = FieldManagers::new(&types, &schemas, &ROUTES).unwrap();
        Self { _dir: dir, routes, schemas, fields, authorizer: Arc::new(Rules { denied }) }
    }

    fn options(&self, by: By) -> WriteOptions {
        let fields = Arc::clone(self.fields.of(by.subresource).unwrap());
        WriteOptions {
            dry_run: by.dry_run,
            subresource: by.subresource.to_owned(),
            tracker: Some(Tracker::new(fields, by.manager.to_owned())),
        }
    }

    fn decoded(&self, body: &Value) -> Object {
        let bytes = body.to_string();
        let validation = FieldValidation::Strict;
        crate::decode::decode_object(&self.schemas, &ROUTES, None, bytes.as_bytes(), validation)
            .unwrap()
            .object
    }

    async fn post(&self, manager: &'static str, body: &Value) -> Value {
        let options = self.options(by(manager));
        let item = self.routes.create(&context("demo", "create"), self.decoded(body), &options).await;
        serde_json::from_slice(&item.unwrap().bytes).unwrap()
    }

    async fn put(&self, by: By, body: &Value) -> Value {
        let object = self.decoded(body);
        let name = object.name().to_owned();
        let cx = context("demo", "update");
        let updated = self.routes.update(&cx, &name, &Replacement(object), &self.options(by)).await;
        json_of(updated.unwrap()).1
    }

    async fn merge(&self, manager: &'static str, name: &str, patch: &Value) -> Value {
        let kind = http::HeaderValue::from_static("application/merge-patch+json");
        let headers = http::HeaderMap::from_iter([(http::header::CONTENT_TYPE, kind)]);
        let patch = parse(&headers, patch.to_string().as_bytes()).unwrap();
        let check = |patch: &ParsedPatch, current: &Object| {
            let patched = &patch.apply(current)?;
            let checked = crate::decode::decode_patched(
                &self.schemas,
                &ROUTES,
                patched,
                Vec::new(),
                FieldValidation::Strict,
            )?;
            Ok(checked.0)
        };
        let updater = PatchUpdater::new(patch, check);
        let updated =
            self.routes.update(&context("demo", "patch"), name, &updater, &self.options(by(manager))).await;
        json_of(updated.unwrap()).1
    }

    fn context(&self, name: &str, subresource: &str) -> RequestContext {
        let mut cx = context("demo", "patch");
        cx.info.name = name.to_owned();
        cx.info.subresource = subresource.to_owned();
        cx
    }

    /// The answer's code and body.
    async fn apply(&self, by: By, name: &str, config: &Value) -> Result<(u16, Value), Status> {
        let config = Configuration { value: config.clone(), repeated: Vec::new() };
        let cx = self.context(name, by.subresource);
        self.apply_as(&cx, by, config, FieldValidation::Warn).await
    }

    async fn apply_as(
        &self,
        cx: &RequestContext,
        by: By,
        config: Configuration,
        validation: FieldValidation,
    ) -> Result<(u16, Value), Status> {
        let application = Application {
            fields: self.fields.of(by.subresource).unwrap(),
            schemas: &self.schemas,
            resource: &ROUTES,
            cx,
            authorizer: &*self.authorizer,
            config,
            manager: by.manager,
            force: by.force,
            validation,
        };
        let options = WriteOptions { tracker: None, ..self.options(by) };
        self.routes.update(cx, &cx.info.name, &application, &options).await.map(json_of)
    }
}

fn json_of(updated: Updated) -> (u16, Value) {
    let code = if matches!(updated, Updated::Created(_)) { 201 } else { 200 };
    (code, serde_json::from_slice(&updated.into_item().bytes).unwrap())
}

fn route(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": name}, "spec": spec})
}

fn labels(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": name, "labels": labels}})
}

/// Manager, operation and fields of each entry; all have this kind's version and a time, unless `timeless` names them.
fn owners(object: &Value, timeless: &[&str]) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let shown = entries.into_iter().map(|entry| {
        assert_eq!(
            (&entry["apiVersion"], &entry["fieldsType"]),
            (&json!("route.openshift.io/v1"), &json!("FieldsV1"))
        );
        let manager = entry["manager"].as_str().unwrap().to_owned();
        assert_eq!(entry.get("time").is_none(), timeless.contains(&manager.as_str()), "{entry}");
        let place = entry["subresource"].as_str().map(|s| format!("/{s}")).unwrap_or_default();
        json!([format!("{manager}{place} {}", entry["operation"].as_str().unwrap()), entry["fieldsV1"]])
    });
    shown.collect()
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

/// Entries of the real server (openshift-apiserver) for the same requests.
#[tokio::test]
async fn entries_are_those_of_the_real_server() {
    let f = Fixture::new(&[]).await;
    let tls = json!({"to": {"kind": "Service", "name": "web"},
        "tls": {"termination": "edge", "certificate": "junk", "key": "junk"}});
    let made = f.post("curl", &route("e7", &tls)).await;
    let target = json!({"f:kind": {}, "f:name": {}, "f:weight": {}});
    assert_eq!(
        owners(&made, &[]),
        json!([["curl Update", {"f:spec": {
            "f:tls": {".": {}, "f:certificate": {}, "f:key": {}, "f:termination": {}},
            "f:to": target, "f:wildcardPolicy": {}}}]])
    );

    let mut web =
        route("web", &json!({"to": {"kind": "Service", "name": "web"}, "port": {"targetPort": "8080-8080"}}));
    web["metadata"]["labels"] = json!({"app": "web"});
    f.post("oc", &web).await;
    f.merge("curl", "web", &json!({"metadata": {"labels": {"p": "strategic", "q": "json"}}})).await;
    let (code, applied) = f.apply(by("me"), "web", &labels("web", &json!({"a": "apply"}))).await.unwrap();
    assert_eq!(code, 200);
    assert_eq!(
        owners(&applied, &[]),
        json!([
            ["me Apply", {"f:metadata": {"f:labels": {"f:a": {}}}}],
            ["curl Update", {"f:metadata": {"f:labels": {"f:p": {}, "f:q": {}}}}],
            ["oc Update", {"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:port": {".": {}, "f:targetPort": {}}, "f:to": target, "f:wildcardPolicy": {}}}],
        ])
    );
    assert_eq!(applied["metadata"]["generation"], 1);
}

#[tokio::test]
async fn an_apply_makes_what_is_not_there() {
    let f = Fixture::new(&[]).await;
    let config = route("new", &json!({"to": {"name": "web"}}));
    let dry = By { dry_run: true, ..by("one") };
    assert_eq!(f.apply(dry, "new", &config).await.unwrap().0, 201);
    let (code, made) = f.apply(by("one"), "new", &config).await.unwrap();
    assert_eq!((code, &made["metadata"]["namespace"]), (201, &json!("demo")));
    assert_eq!(owners(&made, &[]), json!([["one Apply", {"f:spec": {"f:to": {"f:name": {}}}}]]));
    assert_eq!(made["spec"]["to"], json!({"kind": "Service", "name": "web", "weight": 100}));
    assert_eq!(made["status"]["ingress"][0]["routerName"], "default");
    assert_eq!(f.apply(by("one"), "new", &config).await.unwrap(), (200, made));

    let mut with_uid = route("other", &json!({"to": {"name": "web"}}));
    with_uid["metadata"]["uid"] = "u".into();
    let refused = f.apply(by("one"), "other", &with_uid).await.unwrap_err();
    assert_eq!((refused.code, &*refused.reason), (409, "Conflict"));
    let why = "uid mismatch: the provided object specified uid u, and no existing object was found";
    assert!(refused.message.ends_with(why), "{}", refused.message);
    // Subresources create nothing.
    let status = By { subresource: "status", ..by("one") };
    let refused = f.apply(status, "other", &route("other", &json!({}))).await.unwrap_err();
    assert_eq!((refused.code, &*refused.message), (404, r#"routes.route.openshift.io "other" not found"#));

    let f = Fixture::new(&["create routes/"]).await;
    let refused = f.apply(by("one"), "new", &config).await.unwrap_err();
    assert_eq!(refused.code, 403);
    let why = "User \"alice\" cannot create resource \"routes\" in API group \"route.openshift.io\" in the namespace \"demo\"";
    assert_eq!(refused.message, format!("routes.route.openshift.io \"new\" is forbidden: {why}"));
}

#[tokio::test]
async fn others_fields_are_conflicts() {
    let f = Fixture::new(&[]).await;
    f.apply(by("one"), "web", &route("web", &json!({"to": {"name": "a", "weight": 1}, "path": "/a"})))
        .await
        .unwrap();
    let other = route("web", &json!({"to": {"name": "b"}, "path": "/b"}));
    let refused = f.apply(by("two"), "web", &other).await.unwrap_err();
    assert_eq!(
        refused.to_value(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Conflict",
            "code": 409,
            "message": "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.path\n- .spec.to.name",
            "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.path"},
                {"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.to.name"}]}})
    );
    let forced = f.apply(By { force: true, ..by("two") }, "web", &other).await.unwrap().1;
    assert_eq!(
        owners(&forced, &[]),
        json!([["one Apply", {"f:spec": {"f:to": {"f:weight": {}}}}],
            ["two Apply", {"f:spec": {"f:path": {}, "f:to": {"f:name": {}}}}]])
    );
    // What is left out of an apply, and nobody else's, goes.
    let left = f.apply(by("two"), "web", &route("web", &json!({"to": {"name": "b"}}))).await.unwrap().1;
    assert_eq!((left["spec"].get("path"), &left["spec"]["to"]["name"]), (None, &json!("b")));
    // An update takes what it changes.
    let mut put = left.clone();
    put["spec"]["to"]["name"] = "c".into();
    f.put(by("edit"), &put).await;
    let refused = f.apply(by("two"), "web", &route("web", &json!({"to": {"name": "b"}}))).await.unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"edit\" using route.openshift.io/v1: .spec.to.name"
    );
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() {
    let f = Fixture::new(&[]).await;
    let config = route("web", &json!({"to": {"name": "a"}}));
    let made = f.apply(by("one"), "web", &config).await.unwrap().1;
    assert_eq!(f.apply(by("one"), "web", &config).await.unwrap().1, made);
    assert_eq!(f.put(by("edit"), &made).await, made);
    let mut bare = made.clone();
    bare["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(f.put(by("edit"), &bare).await, made);
    assert_eq!(f.merge("edit", "web", &json!({"spec": {"to": {"name": "a"}}})).await, made);
    // To own what another owns too is a change, though of nothing else.
    let shared = f.apply(by("two"), "web", &config).await.unwrap().1;
    assert_ne!(version(&shared), version(&made));
    assert_eq!(
        owners(&shared, &["two"]),
        json!([["two Apply", {"f:spec": {"f:to": {"f:name": {}}}}],
            ["one Apply", {"f:spec": {"f:to": {"f:name": {}}}}]])
    );
    assert_eq!(shared["spec"], made["spec"]);
}

#[tokio::test]
async fn what_is_computed_is_nobodys() {
    let f = Fixture::new(&[]).await;
    let made = f.post("curl", &route("web", &json!({"to": {"name": "a"}}))).await;
    assert_eq!(made["status"]["ingress"][0]["routerName"], "default");
    // Sent back as it was read, with everything.
    let mut back = made.clone();
    back["metadata"].as_object_mut().unwrap().remove("managedFields");
    let applied = f.apply(by("copy"), "web", &back).await.unwrap().1;
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    let copy = entries.iter().find(|entry| entry["manager"] == "copy").unwrap();
    assert!(copy["fieldsV1"]["f:spec"].is_object() && copy["fieldsV1"].get("f:status").is_none(), "{copy}");
    // What a router of another name writes is its own.
    let mut status = applied.clone();
    let theirs = json!({"routerName": "other", "host": "h", "wildcardPolicy": "None"});
    status["status"]["ingress"].as_array_mut().unwrap().push(theirs.clone());
    let router = By { subresource: "status", ..by("router") };
    let written = f.put(router, &status).await;
    assert!(written["status"]["ingress"].as_array().unwrap().contains(&theirs), "{written}");
    let entries = written["metadata"]["managedFields"].as_array().unwrap();
    let router = entries.iter().find(|entry| entry["manager"] == "router").unwrap();
    assert_eq!(
        (&router["subresource"], &router["fieldsV1"]),
        (&json!("status"), &json!({"f:status": {"f:ingress": {}}}))
    );
    // A whole object, made anew under another name, owns nothing computed either.
    back["metadata"] = json!({"name": "copied"});
    let copied = f.post("curl", &back).await;
    let text = copied["metadata"]["managedFields"].to_string();
    assert!(!text.contains("f:status"), "{text}");
}

#[tokio::test]
async fn clients_may_say_who_owns_what() {
    let f = Fixture::new(&[]).await;
    let made = f.post("curl", &route("web", &json!({"to": {"name": "a"}}))).await;
    for reset in [json!([]), json!([{}])] {
        let patched = f.merge("curl", "web", &json!({"metadata": {"managedFields": reset}})).await;
        assert_eq!(patched["metadata"].get("managedFields"), None);
        // Nobody is noted until somebody applies.
        let labelled = f
            .merge(
                "curl",
                "web",
                &json!({"metadata": {"labels": {"x": reset.to_string().len().to_string()}}}),
            )
            .await;
        assert_eq!(labelled["metadata"].get("managedFields"), None);
        let applied = f.apply(by("one"), "web", &labels("web", &json!({"y": "1"}))).await.unwrap().1;
        let names: Vec<Value> =
            owners(&applied, &[]).as_array().unwrap().iter().map(|entry| entry[0].clone()).collect();
        assert_eq!(names, [json!("one Apply"), json!("before-first-apply Update")]);
        f.apply(by("one"), "web", &labels("web", &json!({}))).await.unwrap();
    }
    let long = json!([{"manager": "m".repeat(129), "operation": "Apply", "apiVersion": "route.openshift.io/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:path": {}}}}]);
    let mut put = made;
    put["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    put["metadata"]["name"] = "long".into();
    put["metadata"]["managedFields"] = long;
    let options = f.options(by("curl"));
    let refused = f.routes.create(&context("demo", "create"), f.decoded(&put), &options).await.unwrap_err();
    let why = "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes";
    assert!(refused.code == 422 && refused.message.contains(why), "{}", refused.message);
}

#[tokio::test]
async fn a_patch_leaves_no_owner_reference_twice() {
    let f = Fixture::new(&[]).await;
    f.post("curl", &route("web", &json!({"to": {"name": "a"}}))).await;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
    let patched = f.merge("curl", "web", &json!({"metadata": {"ownerReferences": [owner, owner]}})).await;
    assert_eq!(patched["metadata"]["ownerReferences"], json!([owner]));
}

#[tokio::test]
async fn numbers_become_what_the_go_type_holds() {
    let f = Fixture::new(&[]).await;
    for (weight, port, taken) in [
        (json!(100.0), json!(8080.0), json!([100, 8080])),
        (json!(1e2), json!(8080), json!([100, 8080])),
        (json!(4_294_967_297_i64), json!("http"), json!([1, "http"])),
    ] {
        let spec =
            json!({"to": {"kind": "Service", "name": "a", "weight": weight}, "port": {"targetPort": port}});
        let (_, applied) = f.apply(by("one"), "web", &route("web", &spec)).await.unwrap();
        let spec = &applied["spec"];
        assert_eq!(json!([spec["to"]["weight"], spec["port"]["targetPort"]]), taken);
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_as_upstream() {
    let f = Fixture::new(&[]).await;
    f.post("curl", &route("web", &json!({"to": {"name": "a"}}))).await;
    let kind = "route.openshift.io/v1, Kind=Route";
    for (config, code, message) in [
        (
            route("web", &json!({"nosuch": 1})),
            500,
            format!(
                "failed to create typed patch object (/web; {kind}): .spec.nosuch: field not declared in schema"
            ),
        ),
        (
            route("web", &json!({"port": {"targetPort": {"a": 1}}})),
            500,
            format!(
                "failed to convert new object (demo/web; {kind}) to proper version: unable to convert unstructured object to {kind}: json: cannot unmarshal object into Go value of type int32"
            ),
        ),
        (json!({"kind": "Route"}), 400, "invalid object type: /, Kind=Route".to_owned()),
        (json!(null), 400, "invalid object type: /, Kind=".to_owned()),
        (
            json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "web", "managedFields": []}}),
            400,
            "metadata.managedFields must be nil".to_owned(),
        ),
        (
            route("other", &json!({})),
            400,
            "the name of the object (other) does not match the name on the URL (web)".to_owned(),
        ),
    ] {
        let refused = f.apply(by("one"), "web", &config).await.unwrap_err();
        assert_eq!((refused.code, &*refused.message), (code, &*message), "{config}");
        assert_eq!(refused.reason, if code == 400 { "BadRequest" } else { "" });
    }
    let mut old = route("web", &json!({}));
    old["metadata"]["resourceVersion"] = "1".into();
    let refused = f.apply(by("one"), "web", &old).await.unwrap_err();
    assert_eq!((refused.code, &*refused.reason), (409, "Conflict"));
    assert!(refused.message.contains("the object has been modified"), "{}", refused.message);
}

#[tokio::test]
async fn keys_that_come_twice_are_told() {
    let f = Fixture::new(&[]).await;
    let text = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: web\nspec:\n  path: /a\n  path: /b\n  to:\n    name: a\n";
    let config = decode_configuration(text.as_bytes()).unwrap();
    let cx = f.context("web", "");
    let refused = f.apply_as(&cx, by("one"), config.clone(), FieldValidation::Strict).await.unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (
            400,
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"path\" already set in map"
        )
    );
    let (_, made) = f.apply_as(&cx, by("one"), config.clone(), FieldValidation::Warn).await.unwrap();
    assert_eq!(made["spec"]["path"], "/b");
    assert_eq!(cx.take_warnings(), ["line 7: key \"path\" already set in map"]);
    f.apply_as(&cx, by("one"), config, FieldValidation::Ignore).await.unwrap();
    assert!(cx.take_warnings().is_empty());
    for (body, message) in [
        (
            "[1]",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("{", "error decoding YAML: error converting YAML to JSON: yaml: "),
    ] {
        let refused = decode_configuration(body.as_bytes()).unwrap_err();
        assert!(refused.code == 400 && refused.message.starts_with(message), "{}", refused.message);
    }
    let json = decode_configuration(br#"{"a":1,"a":2}"#).unwrap();
    assert_eq!((json.value, json.repeated.len()), (json!({"a": 2}), 1));
}

#[tokio::test]
async fn client_side_apply_is_taken_over() {
    let f = Fixture::new(&[]).await;
    let config = route("web", &json!({"to": {"name": "a"}, "path": "/a"}));
    let mut first = config.clone();
    let last = json!({"kubectl.kubernetes.io/last-applied-configuration": config.to_string()});
    first["metadata"]["annotations"] = last;
    f.post("kubectl-client-side-apply", &first).await;
    let changed = route("web", &json!({"to": {"name": "b"}, "path": "/a"}));
    assert!(f.apply(by("someone"), "web", &changed).await.is_err());
    let taken = f.apply(by("kubectl"), "web", &changed).await.unwrap().1;
    assert_eq!(taken["spec"]["to"]["name"], "b");
    let last = &taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert_eq!(serde_json::from_str::<Value>(last.as_str().unwrap()).unwrap(), changed);
}
