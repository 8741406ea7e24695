//! The computed resources over real storages of streams and images, in a store of their own.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::request_info::RequestInfo;
use picoshift_machinery::{Object, Status, UserInfo};
use serde_json::{Value, json};

use super::super::columns::{IMAGE_STREAM_IMAGES, IMAGE_STREAM_TAGS, IMAGE_TAGS};
use super::super::{Sources, storages};
use crate::admission::Admission;
use crate::authz::{Attributes, Authorizer, Decision};
use crate::decode;
use crate::groups::image::{Hostnames, images, streams};
use crate::registry::Registry;
use crate::rest::patch::Replacement;
use crate::rest::{
    DeleteOptions, Deleted, GetOptions, Item, ListOptions, Preconditions, RequestContext, Storage, Updated,
    Updater, WriteOptions,
};
use crate::schema::{FieldValidation, Schemas};
use crate::store::Engine;
use crate::store::embedded::{Embedded, Options};

pub(super) const REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000";

/// Allows everything but creating to a user `updater`.
struct Rules;

#[async_trait]
impl Authorizer for Rules {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes) -> Result<Decision, Status> {
        if user.name == "updater" && attributes.verb == "create" {
            return Ok(Decision::Deny { reason: String::new() });
        }
        Ok(Decision::Allow)
    }
}

/// See the module.
pub(super) struct Fixture {
    _dir: tempfile::TempDir,
    pub(super) streams: Arc<Registry>,
    pub(super) images: Arc<Registry>,
    pub(super) istags: Arc<dyn Storage>,
    pub(super) itags: Arc<dyn Storage>,
    pub(super) isimages: Arc<dyn Storage>,
    schemas: Schemas,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Embedded::open(&dir.path().join("store.redb"), Options::default()).unwrap();
        let engine: Arc<dyn Engine> = engine;
        let admission = Arc::new(Admission::default());
        let authorizer: Arc<dyn Authorizer> = Arc::new(Rules);
        let hostnames = Hostnames { internal: REGISTRY.to_owned(), external: String::new() };
        let images = images::start(Arc::clone(&engine), Arc::clone(&admission)).await.unwrap();
        let streams =
            streams::start(engine, Arc::clone(&admission), Arc::clone(&authorizer), hostnames).await.unwrap();
        let made = storages(&Sources {
            streams: Arc::clone(&streams) as Arc<dyn Storage>,
            images: Arc::clone(&images) as Arc<dyn Storage>,
            admission,
            authorizer,
        });
        let of = |plural: &str| {
            Arc::clone(made.iter().find(|storage| storage.resource().plural == plural).unwrap())
        };
        Self {
            _dir: dir,
            streams,
            images,
            istags: of(IMAGE_STREAM_TAGS.plural),
            itags: of(IMAGE_TAGS.plural),
            isimages: of(IMAGE_STREAM_IMAGES.plural),
            schemas: Schemas::load().unwrap(),
        }
    }

    /// A body as the handler decodes it.
    pub(super) fn decoded(&self, storage: &dyn Storage, body: &Value) -> Object {
        let resource = storage.resource();
        let mut body = body.clone();
        body["kind"] = resource.gvk.kind.into();
        body["apiVersion"] = resource.gvk.api_version().into();
        let bytes = serde_json::to_vec(&body).unwrap();
        decode::decode_object(&self.schemas, resource, None, &bytes, FieldValidation::Strict).unwrap().object
    }

    pub(super) async fn post(&self, storage: &Arc<dyn Storage>, body: Value) -> Result<Object, Status> {
        let object = self.decoded(&**storage, &body);
        let cx = context(storage, "demo", "create");
        read(storage.create(&cx, object, &WriteOptions::default()).await)
    }

    /// A PUT; whether it created, and what.
    pub(super) async fn put(
        &self,
        storage: &Arc<dyn Storage>,
        body: Value,
    ) -> Result<(bool, Object), Status> {
        let object = self.decoded(&**storage, &body);
        let name = object.name().to_owned();
        self.change(storage, &name, &Replacement(object)).await
    }

    pub(super) async fn change(
        &self,
        storage: &Arc<dyn Storage>,
        name: &str,
        updater: &dyn Updater,
    ) -> Result<(bool, Object), Status> {
        let cx = context(storage, "demo", "update");
        let updated = storage.update(&cx, name, updater, &WriteOptions::default()).await?;
        let created = matches!(updated, Updated::Created(_));
        Ok((created, updated.into_item().object().unwrap()))
    }

    pub(super) async fn get(&self, storage: &Arc<dyn Storage>, name: &str) -> Result<Object, Status> {
        read(storage.get(&context(storage, "demo", "get"), name, &GetOptions::default()).await)
    }

    pub(super) async fn delete(
        &self,
        storage: &Arc<dyn Storage>,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Deleted, Status> {
        let preconditions = Preconditions { uid: uid.map(str::to_owned), resource_version: None };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        storage.delete(&context(storage, "demo", "delete"), name, &options).await
    }

    pub(super) async fn stream(&self, name: &str) -> Object {
        let streams = Arc::clone(&self.streams) as Arc<dyn Storage>;
        self.get(&streams, name).await.unwrap()
    }

    /// Creates a stream of a namespace with tags of pull specs.
    pub(super) async fn make(&self, namespace: &str, name: &str, labels: Value, tags: &[&str]) {
        let streams = Arc::clone(&self.streams) as Arc<dyn Storage>;
        let tags: Vec<Value> = tags
            .iter()
            .map(|tag| json!({"name": tag, "from": {"kind": "DockerImage", "name": format!("quay.io/a:{tag}")}}))
            .collect();
        let body = json!({"metadata": {"name": name, "labels": labels}, "spec": {"tags": tags}});
        let object = self.decoded(&*streams, &body);
        let cx = context(&streams, namespace, "create");
        streams.create(&cx, object, &WriteOptions::default()).await.unwrap();
    }

    /// Lists tags of a namespace, or of all; names, the token for more, and the revision.
    pub(super) async fn list(
        &self,
        storage: &Arc<dyn Storage>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<(Vec<String>, String, u64), Status> {
        let found = storage.list(&context(storage, namespace, "list"), options).await?;
        let crate::rest::Items::Picked(items) = found.items else { panic!("picked items") };
        let names = items.iter().map(|item| format!("{}/{}", item.namespace, item.name)).collect();
        Ok((names, found.continue_token, found.revision))
    }
}

pub(super) fn context(storage: &Arc<dyn Storage>, namespace: &str, verb: &str) -> RequestContext {
    context_of("admin", storage, namespace, verb)
}

pub(super) fn context_of(
    user: &str,
    storage: &Arc<dyn Storage>,
    namespace: &str,
    verb: &str,
) -> RequestContext {
    let resource = storage.resource();
    let info = RequestInfo {
        is_resource: true,
        verb: verb.to_owned(),
        group: resource.gvk.group.to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        resource: resource.plural.to_owned(),
        ..RequestInfo::default()
    };
    RequestContext::new(Arc::new(UserInfo { name: user.to_owned(), ..UserInfo::default() }), info)
}

fn read(item: Result<Arc<Item>, Status>) -> Result<Object, Status> {
    Ok(item?.object().unwrap())
}

/// A tag of a pull spec, as a body.
pub(super) fn docker_tag(name: &str, pull_spec: &str) -> Value {
    let (_, tag) = name.split_once(':').unwrap_or((name, name));
    json!({"metadata": {"name": name}, "tag": {"name": tag, "from": {"kind": "DockerImage", "name": pull_spec}}})
}
