//! The group on a store of its own: the real server's recorded answers, who sees which tokens, and how tokens end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use picoshift_machinery::bootstrap_user::BootstrapUser;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::selector::FieldSelector;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};

use super::{BootstrapSecret, Config, Ingredients, OAuth, ServiceAccounts, start};
use crate::admission::Admission;
use crate::authn::memberships::Memberships;
use crate::decode;
use crate::groups::user;
use crate::rest::patch::{self, ParsedPatch, PatchUpdater, Replacement};
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, ListOptions, RequestContext, Storage, Updated, WatchEvent,
    WriteOptions, collector,
};
use crate::schema::{FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

mod objects;
mod recorded;
mod reviews;

/// Longest time that anything may take.
const SOON: Duration = Duration::from_secs(20);

/// One service account that is a client, and one that is none.
struct Accounts;

#[async_trait]
impl ServiceAccounts for Accounts {
    async fn service_account(&self, _namespace: &str, name: &str) -> Result<Object, Status> {
        let annotations = match name {
            "client" => json!({"serviceaccounts.openshift.io/oauth-redirecturi.x": "https://x/cb"}),
            "plain" => json!({}),
            _ => return Err(Status::not_found("", "serviceaccounts", name)),
        };
        Ok(Object::from_value(json!({"metadata": {"annotations": annotations}})).unwrap())
    }
}

/// What the Secret of the bootstrap administrator comes to.
#[derive(Default)]
struct Secret(Mutex<Option<Result<BootstrapUser, String>>>);

#[async_trait]
impl BootstrapSecret for Secret {
    async fn bootstrap_user(&self) -> Result<Option<BootstrapUser>, String> {
        self.0.lock().clone().transpose()
    }
}

/// The group, with users beside it, and who asks.
struct World {
    dir: tempfile::TempDir,
    engine: Arc<Embedded>,
    users: Vec<Arc<dyn Storage>>,
    oauth: OAuth,
    secret: Arc<Secret>,
    schemas: Schemas,
    user: UserInfo,
}

impl World {
    async fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap()).await
    }

    /// On what an earlier one has left.
    async fn on(dir: tempfile::TempDir) -> Self {
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let shared = Arc::clone(&engine) as Arc<dyn Engine>;
        let admission = Arc::new(Admission::default());
        let memberships = Arc::new(Memberships::new());
        let users = user::start(&shared, &admission, Arc::clone(&memberships)).await.unwrap();
        let accounts = Arc::new(Accounts);
        let find_route = Box::new(|_: &str, _: &str| None);
        let secret = Arc::new(Secret::default());
        let audiences = vec!["https://kubernetes.default.svc".to_owned()];
        let ingredients = Ingredients {
            engine: shared,
            admission,
            accounts,
            find_route,
            users: users.users,
            memberships,
            bootstrap: Arc::clone(&secret) as Arc<dyn BootstrapSecret>,
            config: Config { audiences, inactivity_seconds: 0 },
        };
        let (oauth, users) = (start(ingredients).await.unwrap(), users.storages);
        let user = UserInfo { name: "system:admin".to_owned(), ..UserInfo::default() };
        Self { dir, engine, users, oauth, secret, schemas: Schemas::load().unwrap(), user }
    }

    /// Ends everything and begins anew on the same data.
    async fn restarted(self) -> Self {
        let Self { dir, engine, users, oauth, .. } = self;
        drop((users, oauth));
        engine.shutdown().unwrap();
        drop(engine);
        Self::on(dir).await
    }

    fn becomes(&mut self, name: &str) {
        self.user = UserInfo { name: name.to_owned(), ..UserInfo::default() };
    }

    fn cx(&self) -> RequestContext {
        RequestContext::new(Arc::new(self.user.clone()), RequestInfo::default())
    }

    fn storage(&self, plural: &str) -> &Arc<dyn Storage> {
        let mut all = self.users.iter().chain(&self.oauth.storages);
        all.find(|storage| storage.resource().plural == plural).unwrap()
    }

    /// One request as the handlers make it: `path` is `/oauthclients/c`.
    async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (plural, name) = path.trim_start_matches('/').split_once('/').unwrap_or((&path[1..], ""));
        let storage = self.storage(plural);
        let answer = match method {
            "GET" => {
                storage.get(&self.cx(), name, &GetOptions::default()).await.map(|item| (200, shown(&item)))
            }
            "DELETE" => storage.delete(&self.cx(), name, &DeleteOptions::default()).await.map(|deleted| {
                (
                    200,
                    match deleted {
                        Deleted::Object(item) => shown(&item),
                        Deleted::Gone(details) => Status::success(details).to_value(),
                    },
                )
            }),
            _ => self.write(storage, method, name, body).await,
        };
        answer.unwrap_or_else(|status| (status.code, status.to_value()))
    }

    async fn write(
        &self,
        storage: &Arc<dyn Storage>,
        method: &str,
        name: &str,
        body: &Value,
    ) -> Result<(u16, Value), Status> {
        let (options, strict) = (WriteOptions::default(), FieldValidation::Strict);
        let (resource, bytes) = (storage.resource(), body.to_string());
        let answered = |updated: Updated| match updated {
            Updated::Changed(item) => (200, shown(&item)),
            Updated::Created(item) => (201, shown(&item)),
        };
        if method == "PATCH" {
            let kind = HeaderValue::from_static("application/merge-patch+json");
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
            let apply = |patch: &ParsedPatch, current: &Object| {
                let patched = patch.apply(current)?;
                Ok(decode::decode_patched(&self.schemas, resource, &patched, Vec::new(), strict)?.0)
            };
            let updater = PatchUpdater::new(patch::parse(&headers, bytes.as_bytes())?, apply);
            return storage.update(&self.cx(), name, &updater, &options).await.map(answered);
        }
        let object = decode::decode_object(&self.schemas, resource, None, bytes.as_bytes(), strict)?.object;
        if method == "PUT" {
            return storage.update(&self.cx(), name, &Replacement(object), &options).await.map(answered);
        }
        Ok((201, shown(&*storage.create(&self.cx(), object, &options).await?)))
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

    /// The names in a list.
    async fn names(&self, plural: &str, fields: &str) -> Vec<String> {
        let options = ListOptions { fields: FieldSelector::parse(fields).unwrap(), ..ListOptions::default() };
        let list = self.storage(plural).list(&self.cx(), &options).await.unwrap();
        list.items.iter().map(|item| item.name.to_string()).collect()
    }

    /// A user; answers the uid.
    async fn new_user(&self, name: &str) -> String {
        let body = json!({"apiVersion": "user.openshift.io/v1", "kind": "User", "metadata": {"name": name}});
        self.ok("POST", "/users", body).await["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    async fn new_client(&self, name: &str, with: Value) {
        let mut body = object("OAuthClient", name, &json!({"grantMethod": "auto"}));
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        self.ok("POST", "/oauthclients", body).await;
    }
}

fn object(kind: &str, name: &str, with: &Value) -> Value {
    let mut object = json!({"apiVersion": "oauth.openshift.io/v1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    object
}

/// An access token of client `c`, by the letter that its name is made of.
fn token(letter: char, user: &str, with: &Value) -> Value {
    let fields = json!({"clientName": "c", "userName": user, "userUID": "1", "scopes": ["user:full"],
        "redirectURI": "https://x/cb", "expiresIn": 86400});
    let mut token = object("OAuthAccessToken", &name_of(letter), &fields);
    token.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    token
}

fn name_of(letter: char) -> String {
    format!("sha256~{}", letter.to_string().repeat(43))
}

fn shown(item: &Item) -> Value {
    serde_json::from_slice(&item.bytes).unwrap()
}
