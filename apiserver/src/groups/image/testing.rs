//! The group over a store of its own, for tests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use kube::{Client, Config};
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};

use super::{Group, Hostnames, Ingredients, Part};
use crate::admission::Admission;
use crate::authz::{Attributes, Authorizer, Decision};
use crate::decode::decode_object;
use crate::oci::{self, Limits, Trust};
use crate::rest::patch::Replacement;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, ListOptions, RequestContext, Storage, WatchEvent, WriteOptions,
};
use crate::schema::{FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

/// Denies the pull of the streams that are listed as `namespace/name`.
struct Rules(&'static [&'static str]);

#[async_trait]
impl Authorizer for Rules {
    async fn authorize(&self, _user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status> {
        assert_eq!((&*attributes.verb, &*attributes.subresource), ("get", "layers"));
        let asked = format!("{}/{}", attributes.namespace, attributes.name);
        if self.0.contains(&asked.as_str()) {
            return Ok(Decision::Deny { reason: "no".to_owned() });
        }
        Ok(Decision::Allow)
    }
}

pub(super) struct Fixture {
    dir: tempfile::TempDir,
    pub(super) engine: Arc<Embedded>,
    pub(super) group: Group,
    schemas: Schemas,
    denied: &'static [&'static str],
}

pub(super) fn registry() -> Hostnames {
    Hostnames { internal: "registry.svc:5000".to_owned(), external: String::new() }
}

impl Fixture {
    pub(super) async fn new(hostnames: Hostnames, denied: &'static [&'static str]) -> Self {
        Self::open(tempfile::tempdir().unwrap(), hostnames, denied).await
    }

    pub(super) async fn bare() -> Self {
        Self::new(Hostnames::default(), &[]).await
    }

    async fn open(dir: tempfile::TempDir, hostnames: Hostnames, denied: &'static [&'static str]) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let nowhere = Config::new("http://127.0.0.1:1".parse().unwrap());
        let group = super::start(Ingredients {
            client: Client::try_from(nowhere).unwrap(),
            engine: Arc::clone(&engine) as Arc<dyn Engine>,
            authorizer: Arc::new(Rules(denied)),
            admission: Arc::new(Admission::default()),
            hostnames,
            registries: oci::Client::new(&Trust { system: false, extra: Vec::new() }, Limits::default())
                .unwrap(),
            max_tags: Some(50),
        })
        .await
        .unwrap();
        Self { dir, engine, group, schemas: Schemas::load().unwrap(), denied }
    }

    /// The group again, from what was stored.
    pub(super) async fn restart(self, hostnames: Hostnames) -> Self {
        drop(self.group);
        self.engine.shutdown().unwrap();
        drop(self.engine);
        Self::open(self.dir, hostnames, self.denied).await
    }

    pub(super) fn storage(&self, plural: &str) -> Arc<dyn Storage> {
        let found = self.group.storages.iter().find(|storage| storage.resource().plural == plural);
        Arc::clone(found.unwrap())
    }

    /// A body, decoded as the handler does.
    pub(super) fn decode(&self, plural: &str, body: &Value) -> Result<Object, Status> {
        let (storage, bytes) = (self.storage(plural), body.to_string());
        let resource = storage.resource();
        decode_object(&self.schemas, resource, None, bytes.as_bytes(), FieldValidation::Strict)
            .map(|decoded| decoded.object)
    }

    /// POST.
    pub(super) async fn post(&self, plural: &str, namespace: &str, body: &Value) -> Result<Value, Status> {
        let object = self.decode(plural, body)?;
        let cx = cx(namespace, plural, "");
        let item = self.storage(plural).create(&cx, object, &WriteOptions::default()).await?;
        Ok(serde_json::from_slice(&item.bytes).unwrap())
    }

    /// PUT of an object that may have changed since.
    pub(super) async fn put(&self, plural: &str, object: &Value) -> Result<Value, Status> {
        let object = self.decode(plural, object)?;
        let cx = cx(object.namespace(), plural, "");
        let name = object.name().to_owned();
        let options = WriteOptions::default();
        let item = self.storage(plural).update(&cx, &name, &Replacement(object), &options).await?.into_item();
        Ok(serde_json::from_slice(&item.bytes).unwrap())
    }

    pub(super) async fn delete(&self, plural: &str, namespace: &str, name: &str) -> Value {
        let cx = cx(namespace, plural, "");
        match self.storage(plural).delete(&cx, name, &DeleteOptions::default()).await.unwrap() {
            Deleted::Gone(details) => Status::success(details).to_value(),
            Deleted::Object(_) => Value::Null,
        }
    }

    /// Creates a stream with these spec tags.
    pub(super) async fn stream(&self, at: &str, tags: Value) -> Result<Object, Status> {
        let (namespace, name) = at.split_once('/').unwrap();
        let body = json!({"metadata": {"name": name}, "spec": {"tags": tags}});
        self.post("imagestreams", namespace, &body).await.map(|value| Object::from_value(value).unwrap())
    }

    pub(super) async fn get(&self, at: &str) -> Object {
        let (namespace, name) = at.split_once('/').unwrap();
        self.group.access.stream(namespace, name).await.unwrap()
    }

    /// The bytes that a stream is served with.
    pub(super) async fn bytes(&self, at: &str) -> bytes::Bytes {
        let (namespace, name) = at.split_once('/').unwrap();
        let cx = cx(namespace, "imagestreams", "");
        let item = self.storage("imagestreams").get(&cx, name, &GetOptions::default()).await.unwrap();
        item.bytes.clone()
    }

    /// Changes a stream.
    pub(super) async fn change(
        &self,
        at: &str,
        part: Part,
        change: impl Fn(&mut Object) + Send + Sync,
    ) -> Result<Object, Status> {
        let (namespace, name) = at.split_once('/').unwrap();
        let change = |stream: &mut Object| {
            change(stream);
            Ok(())
        };
        self.group.access.change_stream(&alice(), namespace, name, part, false, &change).await
    }

    /// A push: an image in a tag of a stream.
    pub(super) async fn push(&self, at: &str, tag: &str, image: &str) {
        let (namespace, name) = at.split_once('/').unwrap();
        let body = json!({
            "metadata": {"name": name}, "tag": tag,
            "image": {"metadata": {"name": image}, "dockerImageReference": format!("quay.io/lab/{image}")},
        });
        self.post("imagestreammappings", namespace, &body).await.unwrap();
    }

    /// The first events of a watch from a revision.
    pub(super) async fn watched(&self, namespace: &str, revision: &str, count: usize) -> Vec<String> {
        let options = ListOptions { resource_version: revision.parse().ok(), ..ListOptions::default() };
        let cx = cx(namespace, "imagestreams", "");
        let mut watch = self.storage("imagestreams").watch(&cx, &options).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < count {
            let batch = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.unwrap().unwrap();
            seen.extend(batch.iter().map(|event| match event {
                WatchEvent::Added(item) => format!("ADDED {}", item.name),
                WatchEvent::Modified(item) => format!("MODIFIED {}", item.name),
                WatchEvent::Deleted(item) => format!("DELETED {}", item.name),
                other => format!("{other:?}"),
            }));
        }
        seen
    }
}

pub(super) fn alice() -> Arc<UserInfo> {
    Arc::new(UserInfo { name: "alice".to_owned(), ..UserInfo::default() })
}

pub(super) fn cx(namespace: &str, plural: &str, subresource: &str) -> RequestContext {
    let info = RequestInfo {
        is_resource: true,
        group: super::GROUP.to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        resource: plural.to_owned(),
        subresource: subresource.to_owned(),
        ..RequestInfo::default()
    };
    RequestContext::new(alice(), info)
}
