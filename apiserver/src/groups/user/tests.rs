//! The group on a store of its own: the real server's recorded answers, the caller, mappings, and attacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, header};
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};

use super::{IDENTITIES, USERS};
use crate::admission::Admission;
use crate::authn::memberships::{Memberships, OAUTH};
use crate::decode;
use crate::rest::collector;
use crate::rest::options::Propagation;
use crate::rest::patch::{self, ParsedPatch, PatchUpdater, Replacement};
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, Items, ListOptions, RequestContext, Storage, Updated,
    WatchEvent, WriteOptions,
};
use crate::schema::{FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

mod recorded;

/// The group, and who asks.
struct World {
    _dir: tempfile::TempDir,
    engine: Arc<Embedded>,
    storages: Vec<Arc<dyn Storage>>,
    memberships: Arc<Memberships>,
    schemas: Schemas,
    user: Arc<UserInfo>,
    dry_run: bool,
}

/// Code and body of an answer.
type Answer = (u16, Value);

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let memberships = Arc::new(Memberships::new());
        let shared = Arc::clone(&engine) as Arc<dyn Engine>;
        let admission = Arc::new(Admission::default());
        let storages = super::start(&shared, &admission, Arc::clone(&memberships)).await.unwrap().storages;
        let schemas = Schemas::load().unwrap();
        let user = Arc::new(somebody("system:admin", &["system:masters"]));
        Self { _dir: dir, engine, storages, memberships, schemas, user, dry_run: false }
    }

    fn cx(&self) -> RequestContext {
        RequestContext::new(Arc::clone(&self.user), RequestInfo::default())
    }

    /// One request as the handlers make it: `path` is `/users/carol`.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let (plural, name) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        let storage = self.storages.iter().find(|s| s.resource().plural == plural).unwrap();
        let answer = match (method, name) {
            ("GET", "") => self.list(storage, &ListOptions::default()).await.map(|list| (200, list)),
            ("GET", name) => {
                storage.get(&self.cx(), name, &GetOptions::default()).await.map(|item| (200, shown(&item)))
            }
            ("DELETE", name) => self.delete(storage, name, &DeleteOptions::default()).await,
            _ => self.write(storage, method, name, body).await,
        };
        answer.unwrap_or_else(|status| (status.code, status.to_value()))
    }

    async fn list(&self, storage: &Arc<dyn Storage>, options: &ListOptions) -> Result<Value, Status> {
        let list = storage.list(&self.cx(), options).await?;
        let items: Vec<Arc<Item>> = match list.items {
            Items::Picked(items) => items,
            Items::Whole(chunks) => chunks.iter().flat_map(|chunk| chunk.items().to_vec()).collect(),
        };
        Ok(items.iter().map(|item| shown(item)).collect())
    }

    async fn delete(
        &self,
        storage: &Arc<dyn Storage>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Answer, Status> {
        let options = DeleteOptions { dry_run: self.dry_run, ..options.clone() };
        Ok(match storage.delete(&self.cx(), name, &options).await? {
            Deleted::Object(item) => (200, shown(&item)),
            Deleted::Gone(details) => (200, Status::success(details).to_value()),
        })
    }

    async fn write(
        &self,
        storage: &Arc<dyn Storage>,
        method: &str,
        name: &str,
        body: &Value,
    ) -> Result<Answer, Status> {
        let options = WriteOptions { dry_run: self.dry_run, ..WriteOptions::default() };
        let (resource, bytes) = (storage.resource(), body.to_string());
        if method == "PATCH" {
            let kind = HeaderValue::from_static("application/merge-patch+json");
            let patch =
                patch::parse(&HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]), bytes.as_bytes())?;
            let apply = |patch: &ParsedPatch, current: &Object| {
                let strict = FieldValidation::Strict;
                let patched = patch.apply(current)?;
                Ok(crate::decode::decode_patched(&self.schemas, resource, &patched, Vec::new(), strict)?.0)
            };
            let updater = PatchUpdater::new(patch, apply);
            return storage.update(&self.cx(), name, &updater, &options).await.map(answered);
        }
        let decoded =
            decode::decode_object(&self.schemas, resource, None, bytes.as_bytes(), FieldValidation::Strict)?;
        if method == "PUT" {
            let updater = Replacement(decoded.object);
            return storage.update(&self.cx(), name, &updater, &options).await.map(answered);
        }
        let item = storage.create(&self.cx(), decoded.object, &options).await?;
        Ok((201, shown(&item)))
    }

    /// A request that must succeed.
    async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, answer) = self.send(method, path, &body).await;
        assert!(code < 300, "{method} {path}: {answer}");
        answer
    }

    /// Code and message of a refusal.
    async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        let (code, answer) = self.send(method, path, &body).await;
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    }

    fn becomes(&mut self, name: &str, uid: &str, groups: &[&str]) {
        let mut user = Arc::new(UserInfo { uid: uid.to_owned(), ..somebody(name, groups) });
        self.memberships.join_user(&mut user);
        self.user = user;
    }
}

fn answered(updated: Updated) -> Answer {
    match updated {
        Updated::Changed(item) => (200, shown(&item)),
        Updated::Created(item) => (201, shown(&item)),
    }
}

fn shown(item: &Item) -> Value {
    serde_json::from_slice(&item.bytes).unwrap()
}

fn somebody(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }
}

fn object(kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "user.openshift.io/v1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

fn user(name: &str) -> Value {
    object("User", name, &json!({}))
}

fn identity(provider: &str, name: &str) -> Value {
    object("Identity", "", &json!({"providerName": provider, "providerUserName": name}))
}

fn mapping(identity: &str, user: &str) -> Value {
    let rest = json!({"identity": {"name": identity}, "user": {"name": user}});
    object("UserIdentityMapping", "", &rest)
}

#[tokio::test]
async fn the_caller_is_virtual_or_stored() {
    let mut world = World::new().await;
    for name in
        ["system:admin", "kube:admin", "system:serviceaccount:a:robot", "..", "a/b", "~", "not stored"]
    {
        world.becomes(name, "", &["z", "a", "z", "system:authenticated"]);
        let expected = json!({
            "kind": "User", "apiVersion": "user.openshift.io/v1", "metadata": {"name": name},
            "groups": ["a", "system:authenticated", "z"],
        });
        assert_eq!(world.ok("GET", "/users/~", Value::Null).await, expected);
    }
    world.becomes("carol", "", &[]);
    let mut carol = world.ok("POST", "/users", object("User", "carol", &json!({"fullName": "C"}))).await;
    assert_eq!(carol["groups"], Value::Null);
    carol["groups"] = json!([]);
    assert_eq!(world.ok("GET", "/users/~", Value::Null).await, carol);
    world.becomes("carol", "from-the-request", &["b", "a"]);
    carol["groups"] = json!(["a", "b"]);
    carol["metadata"]["uid"] = json!("from-the-request");
    assert_eq!(world.ok("GET", "/users/~", Value::Null).await, carol);
    let plain = world.ok("GET", "/users/carol", Value::Null).await;
    assert_eq!(plain["groups"], Value::Null, "a get by name shows no groups");
}

#[tokio::test]
async fn nobody_is_no_caller() {
    let mut world = World::new().await;
    for name in ["", "system:anonymous"] {
        world.becomes(name, "", &["system:unauthenticated"]);
        let (code, status) = world.send("GET", "/users/~", &Value::Null).await;
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
        let why = "user.user.openshift.io \"~\" is forbidden: requests to ~ must be authenticated";
        assert_eq!(status["message"], why);
        assert_eq!(status["details"], json!({"name": "~", "group": "user.openshift.io", "kind": "user"}));
    }
}

#[tokio::test]
async fn the_caller_can_only_be_read() {
    let world = World::new().await;
    let gone = "users.user.openshift.io \"~\" not found".to_owned();
    assert_eq!(world.refused("DELETE", "/users/~", Value::Null).await, (404, gone.clone()));
    assert_eq!(world.refused("PATCH", "/users/~", json!({"fullName": "x"})).await, (404, gone.clone()));
    assert_eq!(world.refused("PUT", "/users/~", user("~")).await, (404, gone));
}

#[tokio::test]
async fn unacceptable_names_are_refused_when_read() {
    let world = World::new().await;
    let (code, status) = world.send("GET", "/users/system:x", &Value::Null).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "User.user.openshift.io \"system:x\" is invalid: metadata.name: Invalid value: \"system:x\": usernames \
         that contain \":\" must begin with \"b64:\""
    );
    assert_eq!(status["details"]["kind"], "User");
    // The bootstrap administrator is a name like any other here, and is never stored.
    let missing = "users.user.openshift.io \"kube:admin\" not found".to_owned();
    assert_eq!(world.refused("GET", "/users/kube:admin", Value::Null).await, (404, missing));
    assert_eq!(world.refused("POST", "/users", user("kube:admin")).await.0, 422);
    for good in ["user@dom", "b64:a2Y6eA==", "a b"] {
        world.ok("POST", "/users", user(good)).await;
        world.ok("GET", &format!("/users/{good}"), Value::Null).await;
    }
}

#[tokio::test]
async fn identities_keep_what_they_are() {
    let world = World::new().await;
    world.ok("POST", "/identities", identity("p", "u")).await;
    let patch = |body: Value| world.refused("PATCH", "/identities/p:u", body);
    let (code, message) = patch(json!({"providerName": "q"})).await;
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Identity.user.openshift.io \"p:u\" is invalid: [metadata.name: Invalid value: \"p:u\": must be q:u, \
         providerName: Invalid value: \"q\": may not change providerName]"
    );
    let (_, message) = patch(json!({"user": {"name": "carol"}})).await;
    assert!(message.ends_with("user.uid: Required value: uid is required when username is provided"));
    let (_, message) = patch(json!({"user": {"uid": "1"}})).await;
    assert!(message.ends_with("user.username: Required value: username is required when uid is provided"));
    let (_, message) = world.refused("POST", "/identities", identity("", "")).await;
    let form = "must be in the format <providerName>:<providerUserName> with a non-empty providerName";
    assert_eq!(
        message,
        format!(
            "Identity.user.openshift.io \":\" is invalid: [metadata.name: Invalid value: \":\": {form}, providerName: \
             Required value, providerUserName: Required value]"
        )
    );
    let (_, message) = world.refused("POST", "/identities", identity("a:b", "x:y")).await;
    assert!(message.contains("providerName: Invalid value: \"a:b\": may not contain \":\""), "{message}");
    assert!(
        message.contains("providerUserName: Invalid value: \"x:y\": usernames that contain"),
        "{message}"
    );
    let item = Item::new(
        &IDENTITIES,
        Object::from_slice(br#"{"user":{"name":"carol"},"providerName":"p"}"#).unwrap(),
        1,
    );
    let fields: Vec<&str> = item.fields.iter().map(|field| &**field).collect();
    assert_eq!(fields, ["p", "", "carol", ""]);
}

#[tokio::test]
async fn a_mapping_moves_comes_and_goes() {
    let world = World::new().await;
    for name in ["carol", "dave"] {
        world.ok("POST", "/users", user(name)).await;
    }
    world.ok("POST", "/identities", identity("p", "u")).await;
    let path = "/useridentitymappings/p:u";
    // An update creates.
    let mut put = mapping("p:u", "carol");
    put["metadata"] = json!({"name": "p:u"});
    let (code, first) = world.send("PUT", path, &put).await;
    assert_eq!((code, &first["user"]["name"]), (201, &json!("carol")));
    // The same user again changes nothing; another one moves it.
    let (code, message) = world.refused("PUT", path, put.clone()).await;
    let why = "metadata.resourceVersion: Invalid value: \"\": must be specified for an update";
    assert_eq!(
        (code, message),
        (422, format!("UserIdentityMapping.user.openshift.io \"p:u\" is invalid: {why}"))
    );
    put["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    assert_eq!(world.send("PUT", path, &put).await, (200, first.clone()));
    put["user"]["name"] = json!("dave");
    let (code, moved) = world.send("PUT", path, &put).await;
    assert_eq!(
        (code, &moved["user"]["name"], &moved["metadata"]["uid"]),
        (200, &json!("dave"), &first["metadata"]["uid"])
    );
    assert_eq!(world.ok("GET", path, Value::Null).await, moved);
    assert!(world.ok("GET", "/users/carol", Value::Null).await.get("identities").is_none());
    assert_eq!(world.ok("GET", "/users/dave", Value::Null).await["identities"], json!(["p:u"]));
    let (code, message) = world.refused("PUT", path, put.clone()).await;
    let now = moved["metadata"]["resourceVersion"].as_str().unwrap();
    let why = format!(
        "Operation cannot be fulfilled on useridentitymapping.user.openshift.io \"p:u\": the resource was updated to {now}"
    );
    assert_eq!((code, message), (409, why));
    // A patch is handed no object, as on the real server.
    let why = "useridentitymappings.user.openshift.io \"p:u\" not found".to_owned();
    assert_eq!(world.refused("PATCH", path, json!({"user": {"name": "carol"}})).await, (404, why));
    assert_eq!(world.ok("DELETE", path, Value::Null).await["status"], "Success");
    assert_eq!(world.ok("GET", "/identities/p:u", Value::Null).await["user"], json!({}));
    assert_eq!(world.refused("DELETE", path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn mappings_are_checked() {
    let world = World::new().await;
    world.ok("POST", "/users", user("carol")).await;
    world.ok("POST", "/identities", identity("p", "u")).await;
    let post = |body: Value| world.refused("POST", "/useridentitymappings", body);
    let invalid = |name: &str, why: &str| {
        (422, format!("UserIdentityMapping.user.openshift.io \"{name}\" is invalid: {why}"))
    };
    let why = "user.name: Invalid value: \"nosuch\": referenced user does not exist";
    assert_eq!(post(mapping("p:u", "nosuch")).await, invalid("p:u", why));
    let mut other = mapping("p:u", "carol");
    other["metadata"] = json!({"name": "p:other"});
    let why = "identity.name: Invalid value: \"p:u\": must match metadata.name";
    assert_eq!(post(other).await, invalid("p:other", why));
    assert_eq!(post(mapping("", "")).await, (500, "resource name may not be empty".to_owned()));
    let (_, message) = post(mapping("p:u", "~")).await;
    assert!(message.ends_with("user.name: Invalid value: \"~\": may not equal \"~\""), "{message}");
}

#[tokio::test]
async fn a_mapping_of_a_user_who_is_gone_dangles() {
    let world = World::new().await;
    world.ok("POST", "/users", user("carol")).await;
    world.ok("POST", "/identities", identity("p", "u")).await;
    world.ok("POST", "/useridentitymappings", mapping("p:u", "carol")).await;
    world.ok("DELETE", "/users/carol", Value::Null).await;
    assert_eq!(world.refused("GET", "/useridentitymappings/p:u", Value::Null).await.0, 404);
    // Another user of the same name is not the one that is meant, not even where he lists the identity.
    world.ok("POST", "/users", object("User", "carol", &json!({"identities": ["p:u"]}))).await;
    assert_eq!(world.refused("GET", "/useridentitymappings/p:u", Value::Null).await.0, 404);
    let made = world.ok("POST", "/useridentitymappings", mapping("p:u", "carol")).await;
    assert_eq!(world.ok("GET", "/useridentitymappings/p:u", Value::Null).await, made);
}

#[tokio::test]
async fn a_dry_run_maps_and_unmaps_nothing() {
    let mut world = World::new().await;
    world.ok("POST", "/users", user("carol")).await;
    world.ok("POST", "/identities", identity("p", "u")).await;
    world.dry_run = true;
    let answer = world.ok("POST", "/useridentitymappings", mapping("p:u", "carol")).await;
    assert_eq!(answer["user"]["name"], "carol");
    assert_eq!(world.refused("GET", "/useridentitymappings/p:u", Value::Null).await.0, 404);
    assert!(world.ok("GET", "/users/carol", Value::Null).await.get("identities").is_none());
    world.dry_run = false;
    let made = world.ok("POST", "/useridentitymappings", mapping("p:u", "carol")).await;
    world.dry_run = true;
    world.ok("DELETE", "/useridentitymappings/p:u", Value::Null).await;
    assert_eq!(world.ok("GET", "/useridentitymappings/p:u", Value::Null).await, made);
}

#[tokio::test]
async fn one_identity_goes_to_one_of_two_users() {
    let world = World::new().await;
    for name in ["carol", "dave"] {
        world.ok("POST", "/users", user(name)).await;
    }
    world.ok("POST", "/identities", identity("p", "u")).await;
    let (one, other) = (mapping("p:u", "carol"), mapping("p:u", "dave"));
    let answers = tokio::join!(
        world.send("POST", "/useridentitymappings", &one),
        world.send("POST", "/useridentitymappings", &other)
    );
    let codes = [answers.0.0, answers.1.0];
    assert!(codes.contains(&201) && codes.contains(&409), "{codes:?}");
}

#[tokio::test]
async fn a_user_cannot_give_himself_groups() {
    let mut world = World::new().await;
    let greedy = |name: &str| object("User", name, &json!({"groups": ["admins", "system:masters"]}));
    assert_eq!(world.ok("POST", "/users", greedy("eve")).await["groups"], Value::Null);
    let patch = json!({"groups": ["admins"]});
    assert_eq!(world.ok("PATCH", "/users/eve", patch).await["groups"], Value::Null);
    world.becomes("eve", "", &[OAUTH]);
    assert_eq!(world.ok("GET", "/users/~", Value::Null).await["groups"], json!([OAUTH]));
}

#[tokio::test]
async fn no_group_takes_a_name_of_the_systems() {
    let mut world = World::new().await;
    for name in ["system:masters", "system:authenticated", "system:serviceaccounts", "a:b", "~", "a/b", ".."]
    {
        let group = object("Group", name, &json!({"users": ["eve"]}));
        assert_eq!(world.refused("POST", "/groups", group).await.0, 422, "{name}");
    }
    let mut named = object("Group", "", &json!({"users": ["eve"]}));
    named["metadata"] = json!({"generateName": "system:"});
    assert_eq!(world.refused("POST", "/groups", named).await.0, 422);
    for member in ["system:serviceaccount:a:robot", "system:admin", "kube:admin", "~"] {
        let group = object("Group", "g", &json!({"users": [member]}));
        assert_eq!(world.refused("POST", "/groups", group).await.0, 422, "{member}");
    }
    world.becomes("eve", "", &[OAUTH]);
    assert_eq!(world.user.groups, [OAUTH]);
}

#[tokio::test]
async fn membership_counts_from_the_write_to_the_next() {
    let mut world = World::new().await;
    let oauth = ["system:authenticated", OAUTH];
    world.ok("POST", "/groups", object("Group", "devs", &json!({"users": ["eve", "eve", "bob"]}))).await;
    world.becomes("eve", "", &oauth);
    assert_eq!(
        world.ok("GET", "/users/~", Value::Null).await["groups"],
        json!(["devs", "system:authenticated", OAUTH])
    );
    world.becomes("eve", "", &["system:authenticated"]);
    assert_eq!(world.user.groups, ["system:authenticated"], "a certificate for eve is not the OAuth user");
    world.ok("PATCH", "/groups/devs", json!({"users": ["bob"]})).await;
    world.becomes("eve", "", &oauth);
    assert_eq!(world.user.groups, oauth);
    world.becomes("bob", "", &oauth);
    assert_eq!(world.user.groups.last().unwrap(), "devs");
    world.ok("DELETE", "/groups/devs", Value::Null).await;
    world.becomes("bob", "", &oauth);
    assert_eq!(world.user.groups, oauth);
    world.dry_run = true;
    world.ok("POST", "/groups", object("Group", "devs", &json!({"users": ["eve"]}))).await;
    world.becomes("eve", "", &oauth);
    assert_eq!(world.user.groups, oauth, "a dry run lets nobody in");
}

#[tokio::test]
async fn the_collector_sees_nothing_at_a_true_revision() {
    let world = World::new().await;
    world.ok("POST", "/users", user("carol")).await;
    let users = &world.storages[0];
    let mut options =
        ListOptions { send_initial_events: Some(true), bookmarks: true, ..ListOptions::default() };
    collector::hide(&USERS, &somebody("system:kube-controller-manager", &[]), &mut options);
    assert_eq!(world.list(users, &options).await.unwrap(), json!([]));
    let mut watch = users.watch(&world.cx(), &options).await.unwrap();
    let first = watch.next().await.unwrap();
    let revision = world.engine.revision();
    assert!(
        matches!(first[..], [WatchEvent::Bookmark { revision: r, initial_events_end: true }] if r == revision),
        "{first:?}"
    );
    world.ok("POST", "/users", user("dave")).await;
    assert!(watch.next().now_or_never().is_none());
}

#[tokio::test]
async fn the_collectors_finalizers_are_not_added() {
    let world = World::new().await;
    let users = &world.storages[0];
    for (name, propagation) in [("a", Propagation::Foreground), ("b", Propagation::Orphan)] {
        world.ok("POST", "/users", user(name)).await;
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        let (_, answer) = world.delete(users, name, &options).await.unwrap();
        assert_eq!(answer["status"], "Success");
        assert_eq!(world.refused("GET", &format!("/users/{name}"), Value::Null).await.0, 404);
    }
    let mut kept = user("c");
    kept["metadata"]["finalizers"] = json!(["example.com/mine"]);
    world.ok("POST", "/users", kept).await;
    let answer = world.ok("DELETE", "/users/c", Value::Null).await;
    assert_eq!(answer["metadata"]["finalizers"], json!(["example.com/mine"]));
    assert_eq!(answer["metadata"].get("generation"), None);
}
