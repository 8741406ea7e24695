//! SCCs as they are stored and shown, and reviews, on a store of their own with a cluster that is made up.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use picoshift_scc_engine::Namespace;
use picoshift_scc_engine::namespace::{MCS, UID_RANGE};
use serde_json::{Value, json};

use super::{Facts, storages};
use crate::admission::Admission;
use crate::authz::{Attributes, Authorizer, Decision};
use crate::decode;
use crate::rest::patch::Replacement;
use crate::rest::{RequestContext, Storage, Updated, WriteOptions};
use crate::schema::{FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

/// `restricted` for whoever has logged in, by RBAC.
struct Rbac;

#[async_trait]
impl Authorizer for Rbac {
    async fn authorize(&self, user: &UserInfo, asked: &Attributes) -> Result<Decision, Status> {
        assert_eq!((asked.verb.as_str(), asked.group.as_str()), ("use", "security.openshift.io"));
        assert_eq!(
            (asked.resource.as_str(), asked.namespace.as_str()),
            ("securitycontextconstraints", "demo")
        );
        if user.in_group("system:authenticated") && asked.name == "restricted" {
            return Ok(Decision::Allow);
        }
        Ok(Decision::Deny { reason: String::new() })
    }
}

struct Demo;

#[async_trait]
impl Facts for Demo {
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>, Status> {
        let annotations =
            [(UID_RANGE, "1000/10"), (MCS, "s0:c1,c0")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        Ok((name == "demo").then(|| Namespace { name: name.to_owned(), annotations: annotations.into() }))
    }

    async fn has_service_account(&self, _namespace: &str, name: &str) -> Result<bool, Status> {
        Ok(name == "default" || name == "robot")
    }
}

struct World {
    _dir: tempfile::TempDir,
    storages: Vec<Arc<dyn Storage>>,
    schemas: Schemas,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine: Arc<dyn Engine> =
            Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let (admission, rbac) = (Arc::new(Admission::default()), Arc::new(Rbac) as Arc<dyn Authorizer>);
        let storages = storages(Arc::new(Demo), &engine, &admission, &rbac).await.unwrap();
        Self { _dir: dir, storages, schemas: Schemas::load().unwrap() }
    }

    fn storage(&self, plural: &str) -> &Arc<dyn Storage> {
        self.storages.iter().find(|storage| storage.resource().plural == plural).unwrap()
    }

    fn decoded(&self, plural: &str, mut body: Value) -> Object {
        let resource = self.storage(plural).resource();
        body["apiVersion"] = "security.openshift.io/v1".into();
        body["kind"] = resource.gvk.kind.into();
        let strict = FieldValidation::Strict;
        decode::decode_object(&self.schemas, resource, None, body.to_string().as_bytes(), strict)
            .unwrap()
            .object
    }

    fn cx(namespace: &str) -> RequestContext {
        let groups = vec!["system:authenticated".to_owned()];
        let user = UserInfo { name: "dev".to_owned(), groups, ..UserInfo::default() };
        let info = RequestInfo { namespace: namespace.to_owned(), ..RequestInfo::default() };
        RequestContext::new(Arc::new(user), info)
    }

    async fn create(&self, plural: &str, body: Value) -> Result<Value, Status> {
        let namespace = if self.storage(plural).resource().namespaced { "demo" } else { "" };
        let object = self.decoded(plural, body);
        let item =
            self.storage(plural).create(&Self::cx(namespace), object, &WriteOptions::default()).await?;
        Ok(serde_json::from_slice(&item.bytes).unwrap())
    }

    async fn sccs(&self) {
        let strategies = json!({
            "runAsUser": {"type": "MustRunAsRange"}, "seLinuxContext": {"type": "MustRunAs"},
            "fsGroup": {"type": "MustRunAs"}, "volumes": ["secret"],
        });
        for (name, more) in [
            ("restricted", json!({})),
            (
                "open",
                json!({"users": ["system:serviceaccount:demo:robot", "boss"], "groups": ["wheel"],
                "runAsUser": {"type": "RunAsAny"}, "priority": 5}),
            ),
        ] {
            let mut scc = strategies.clone();
            scc["metadata"] = json!({"name": name});
            for (field, value) in more.as_object().unwrap() {
                scc[field] = value.clone();
            }
            self.create("securitycontextconstraints", scc).await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_scc_is_completed_counted_and_shown() {
    let world = World::new().await;
    let given = json!({
        "metadata": {"name": "x"}, "runAsUser": {"type": "RunAsAny"}, "seLinuxContext": {"type": "MustRunAs"},
        "allowHostDirVolumePlugin": true, "volumes": ["secret", "configMap"], "allowedCapabilities": ["KILL"],
    });
    let mut made = world.create("securitycontextconstraints", given).await.unwrap();
    assert_eq!(made["metadata"]["generation"], 1);
    for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields", "generation"] {
        made["metadata"].as_object_mut().unwrap().remove(field);
    }
    assert_eq!(
        made,
        json!({
            "apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints",
            "metadata": {"name": "x"},
            "allowHostDirVolumePlugin": true, "allowHostIPC": false, "allowHostNetwork": false,
            "allowHostPID": false, "allowHostPorts": false, "allowPrivilegeEscalation": true,
            "allowPrivilegedContainer": false, "allowedCapabilities": ["KILL"], "defaultAddCapabilities": null,
            "fsGroup": {"type": "RunAsAny"}, "groups": [], "priority": null, "readOnlyRootFilesystem": false,
            "requiredDropCapabilities": null, "runAsUser": {"type": "RunAsAny"},
            "seLinuxContext": {"type": "MustRunAs"}, "supplementalGroups": {"type": "RunAsAny"}, "users": [],
            "volumes": ["configMap", "hostPath", "secret"],
        })
    );
    let storage = world.storage("securitycontextconstraints");
    let object = Object::from_value(made.clone()).unwrap();
    assert_eq!(
        json!(storage.row(&object)),
        json!([
            "x",
            "false",
            "[\"KILL\"]",
            "MustRunAs",
            "RunAsAny",
            "RunAsAny",
            "RunAsAny",
            "<no value>",
            "false",
            "[\"configMap\",\"hostPath\",\"secret\"]"
        ])
    );
    let found = storage.get(&World::cx(""), "x", &crate::rest::GetOptions::default()).await.unwrap();
    let mut changed = found.object().unwrap();
    changed.0.insert("users".to_owned(), json!(["u"]));
    let Updated::Changed(updated) =
        storage.update(&World::cx(""), "x", &Replacement(changed), &WriteOptions::default()).await.unwrap()
    else {
        panic!("it was made anew")
    };
    assert_eq!(updated.object().unwrap().generation(), Some(2));
}

#[tokio::test]
async fn a_wrong_scc_is_refused_with_every_reason() {
    let world = World::new().await;
    let given = json!({"metadata": {"name": "x"}, "priority": -1, "runAsUser": {"type": "Never"},
        "seLinuxContext": {"type": "MustRunAs"}});
    let status = world.create("securitycontextconstraints", given).await.unwrap_err();
    assert_eq!(
        status.message,
        "SecurityContextConstraints.security.openshift.io \"x\" is invalid: [priority: Invalid value: -1: priority \
         cannot be negative, runAsUser.type: Invalid value: \"Never\": invalid strategy type.  Valid values are \
         MustRunAs, MustRunAsNonRoot, MustRunAsRange, RunAsAny]"
    );
}

#[tokio::test]
async fn ranges_are_shown_in_hexadecimal() {
    let world = World::new().await;
    let given =
        json!({"metadata": {"name": "scc-uid"}, "range": "1000000000-1999999999/10000", "data": "AP8="});
    let made = world.create("rangeallocations", given).await.unwrap();
    let row = world.storage("rangeallocations").row(&Object::from_value(made).unwrap());
    assert_eq!(json!(row), json!(["scc-uid", "1000000000-1999999999/10000", "0x00ff"]));
}

fn template(account: &str, uid: i64) -> Value {
    json!({"spec": {"serviceAccountName": account,
        "containers": [{"name": "c", "image": "x", "securityContext": {"runAsUser": uid}}]}})
}

#[tokio::test]
async fn reviews_name_the_scc_that_admits() {
    let world = World::new().await;
    world.sccs().await;
    let own = |template: Value| {
        world.create("podsecuritypolicyselfsubjectreviews", json!({"spec": {"template": template}}))
    };
    let fits = own(template("", 1005)).await.unwrap()["status"].clone();
    assert_eq!(
        (&fits["allowedBy"]["name"], &fits["allowedBy"]["kind"]),
        (&json!("restricted"), &json!("SecurityContextConstraints"))
    );
    assert_eq!(fits["template"], json!({"metadata": {}, "spec": {"containers": null}}));
    let not = own(template("", 0)).await.unwrap()["status"].clone();
    assert_eq!(not["reason"], "CantAssignSecurityContextConstraintProvider");
    assert_eq!(not["allowedBy"], Value::Null);
    // The template's service account counts too, and only then is the template shown as it would be.
    let robot = own(template("robot", 0)).await.unwrap()["status"].clone();
    assert_eq!(robot["allowedBy"]["name"], "open");
    assert_eq!(robot["template"]["spec"]["securityContext"]["fsGroup"], 1000);

    let subject = |spec: Value| world.create("podsecuritypolicysubjectreviews", json!({"spec": spec}));
    for (user, groups, by) in [
        ("boss", json!([]), json!("open")),
        ("x", json!(["wheel"]), json!("open")),
        ("x", json!([]), Value::Null),
    ] {
        let spec = json!({"template": template("", 0), "user": user, "groups": groups});
        assert_eq!(subject(spec).await.unwrap()["status"]["allowedBy"]["name"], by, "{user} {groups}");
    }
    let nobody = subject(json!({"template": template("", 0)})).await.unwrap_err();
    assert_eq!(
        nobody.message,
        "PodSecurityPolicySubjectReview \"\" is invalid: spec.user: Required value: at least one of user, groups or \
         serviceAccountName must be specified"
    );
}

#[tokio::test]
async fn reviews_of_service_accounts_name_every_scc() {
    let world = World::new().await;
    world.sccs().await;
    let review = |spec: Value| world.create("podsecuritypolicyreviews", json!({"spec": spec}));
    let both = review(json!({"template": template("", 1000), "serviceAccountNames": ["robot", "default"]}))
        .await
        .unwrap();
    let allowed = both["status"]["allowedServiceAccounts"].as_array().unwrap();
    // A service account is asked about without the group of all who have logged in, as on OpenShift.
    assert_eq!(allowed.len(), 1);
    assert_eq!((&allowed[0]["name"], &allowed[0]["allowedBy"]["name"]), (&json!("robot"), &json!("open")));
    let none = review(json!({"template": template("", 1000)})).await.unwrap();
    assert_eq!(none["status"], json!({"allowedServiceAccounts": null}));
    let missing = review(json!({"template": template("ghost", 0)})).await.unwrap_err();
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (400, "unable to retrieve ServiceAccount ghost: serviceaccount \"ghost\" not found")
    );
    let empty = review(json!({"template": {"spec": {"containers": []}}})).await.unwrap_err();
    assert_eq!(
        empty.message,
        "PodSecurityPolicyReview \"\" is invalid: spec.template.spec.containers: Required value"
    );
}
