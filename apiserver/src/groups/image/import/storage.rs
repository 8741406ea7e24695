//! The storage of `imagestreamimports`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::pull::{Found, Pulled, PulledAll, PulledRepository, Puller};
use super::request::{self, Wanted};
use super::{IMAGE_STREAM_IMPORTS, failure, pull_secrets, record};
use crate::admission::{Admission, Operation, Review};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::groups::image::{Access, GROUP, Part, streams};
use crate::object_meta;
use crate::oci::{Client, Keyring};
use crate::registry::metadata::now;
use crate::resource::Resource;
use crate::rest::{GetOptions, Item, RequestContext, Storage, WriteOptions};

/// Time of a whole import, whatever the registries do.
const TOTAL: Duration = Duration::from_secs(15 * 60);

/// Imports that run at a time; more are asked to come again.
const AT_A_TIME: usize = 16;
/// Seconds after which they may.
const COME_AGAIN: u32 = 5;

/// What imports need.
pub(crate) struct Parts {
    /// Reads and changes streams and images.
    pub(crate) access: Arc<Access>,
    /// `imagestreams`, for its `secrets`.
    pub(crate) streams: Arc<dyn Storage>,
    /// Who may what.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// What else may refuse an import.
    pub(crate) admission: Arc<Admission>,
    /// The client of registries.
    pub(crate) client: Arc<Client>,
    /// Tags of one repository that are imported at once; `None` for all.
    pub(crate) max_tags: Option<usize>,
}

/// See the module.
pub(crate) struct ImageStreamImports {
    parts: Parts,
    room: Semaphore,
}

#[async_trait]
impl Storage for ImageStreamImports {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAM_IMPORTS
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut import: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        // The version of the stream that is meant, for those who say one.
        let given = import.resource_version().to_owned();
        self.begin(cx, &mut import, options).await?;
        let stream = self.stream(cx, import.name(), &given).await?;
        let started = now();
        let empty = new_stream(&import);
        let _place = self.room.try_acquire().map_err(|_| busy())?;
        let keyring = self.keyring(cx, import.name()).await?;
        let puller = Puller {
            client: &self.parts.client,
            keyring: &keyring,
            deadline: Instant::now() + TOTAL,
            max_tags: self.parts.max_tags,
            now: &started,
            records: request::records(&import),
            bytes: &AtomicUsize::new(0),
        };
        let mut pulled = puller.pull(&import, stream.as_ref().unwrap_or(&empty)).await;
        let mut status = json!({});
        if request::records(&import) {
            self.create_images(cx, &import, &mut pulled, options.dry_run).await?;
            let written = self.write_stream(cx, &import, stream.as_ref(), &pulled, options.dry_run).await?;
            status["import"] = without_kind(written);
        }
        show(&pulled, &mut status);
        import.0.insert("status".to_owned(), status);
        // It is not stored: what shows is what was sent.
        let version = given.parse().unwrap_or(0);
        Ok(Arc::new(Item::new(&IMAGE_STREAM_IMPORTS, import, version)))
    }
}

impl ImageStreamImports {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts, room: Semaphore::new(AT_A_TIME) }
    }

    /// Makes the import complete, and refuses a wrong one.
    async fn begin(
        &self,
        cx: &RequestContext,
        import: &mut Object,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            import.set_metadata(field, Value::Null);
        }
        import.set_metadata("uid", uuid::Uuid::new_v4().to_string());
        import.set_metadata("creationTimestamp", now());
        import.set_metadata("namespace", cx.info.namespace.as_str());
        import.0.insert("status".to_owned(), json!({}));
        request::set_defaults(import);
        options.track(None, import);
        let resource = &IMAGE_STREAM_IMPORTS;
        let review = Review { operation: Operation::Create, object: &*import, old: None, resource };
        self.parts.admission.mutate(cx, &review).await?;
        object_meta::check_generated(import)?;
        let errors = request::validate(import);
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, resource.gvk.kind, import.name(), &errors));
        }
        let review = Review { operation: Operation::Create, object: &*import, old: None, resource };
        self.parts.admission.validate(cx, &review).await
    }

    /// The stream, if it is there and the one that is meant.
    async fn stream(&self, cx: &RequestContext, name: &str, given: &str) -> Result<Option<Object>, Status> {
        let found = match self.parts.access.stream(&cx.info.namespace, name).await {
            Err(status) if status.is("NotFound") && given.is_empty() => None,
            // As upstream: it is the import that is not found.
            Err(status) if status.is("NotFound") => {
                return Err(Status::not_found(GROUP, IMAGE_STREAM_IMPORTS.plural, name));
            }
            found => Some(found?),
        };
        let Some(stream) = &found else { return Ok(None) };
        let version = stream.resource_version();
        if !given.is_empty() && given != version {
            let why = format!("the image stream was updated from {given:?} to {version:?}");
            return Err(Status::conflict(GROUP, "imagestream", name, &why));
        }
        Ok(found)
    }

    /// The credentials of the namespace, if the caller may use them; nobody's otherwise.
    async fn keyring(&self, cx: &RequestContext, stream: &str) -> Result<Keyring, Status> {
        let question = Attributes {
            verb: "get".to_owned(),
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            resource: IMAGE_STREAMS.plural.to_owned(),
            subresource: "secrets".to_owned(),
            namespace: cx.info.namespace.clone(),
            name: stream.to_owned(),
            ..Attributes::default()
        };
        match self.parts.authorizer.authorize(&cx.user, &question).await? {
            Decision::Deny { .. } => Ok(Keyring::default()),
            Decision::Allow => {
                let user = Arc::clone(&cx.user);
                let context = streams::context_of(user, &cx.info.namespace, "get", "secrets");
                let secrets = self.parts.streams.get(&context, stream, &GetOptions::default()).await?;
                Ok(pull_secrets::keyring(&secrets.object().map_err(Status::internal)?))
            }
        }
    }

    /// Stores the Images that a tag will point to. Those that are there stay as they are.
    async fn create_images(
        &self,
        cx: &RequestContext,
        import: &Object,
        pulled: &mut PulledAll,
        dry_run: bool,
    ) -> Result<(), Status> {
        let wanted = Wanted::images(import);
        let images = pulled.images.iter_mut().zip(&wanted);
        let images = images.filter(|(_, wanted)| wanted.to().is_some()).map(|(pulled, _)| pulled);
        let listed = pulled.repository.iter_mut().flat_map(|repository| &mut repository.images);
        let mut stored: HashMap<String, Object> = HashMap::new();
        for Found { image, manifests } in
            listed.chain(images).filter_map(|pulled| pulled.outcome.as_mut().ok())
        {
            for image in manifests.iter_mut().chain([image]) {
                if let Some(known) = stored.get(image.name()) {
                    *image = known.clone();
                    continue;
                }
                let (mut created, new) =
                    self.parts.access.create_image(&cx.user, image.clone(), dry_run).await?;
                // As upstream: one that was there is answered as it was found.
                if new {
                    created.0.remove("kind");
                    created.0.remove("apiVersion");
                    *image = created;
                }
                stored.insert(image.name().to_owned(), image.clone());
            }
        }
        Ok(())
    }

    /// Records what was found. A stream that was changed meanwhile gets it too.
    async fn write_stream(
        &self,
        cx: &RequestContext,
        import: &Object,
        began: Option<&Object>,
        pulled: &PulledAll,
        dry_run: bool,
    ) -> Result<Object, Status> {
        let (recorded, access) = (now(), &self.parts.access);
        let empty = new_stream(import);
        if began.is_none() {
            let mut stream = empty.clone();
            record::record(&mut stream, &empty, import, pulled, &recorded);
            match access.create_stream(&cx.user, stream, Part::Both, dry_run).await {
                Err(status) if status.is("AlreadyExists") => {}
                created => return created,
            }
        }
        let change = |stream: &mut Object| {
            if began.is_some_and(|began| began.uid() != stream.uid()) {
                return Err(Status::not_found(GROUP, "imagestream", import.name()));
            }
            record::record(stream, began.unwrap_or(&empty), import, pulled, &recorded);
            Ok(())
        };
        access.change_stream(&cx.user, &cx.info.namespace, import.name(), Part::Both, dry_run, &change).await
    }
}

fn busy() -> Status {
    let why = "too many images are being imported, please try again later";
    let mut status = Status::failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", why);
    status.details.get_or_insert_default().retry_after_seconds = COME_AGAIN;
    status
}

/// The stream that an import makes where there is none.
fn new_stream(import: &Object) -> Object {
    let mut stream = Object::new(&format!("{GROUP}/v1"), IMAGE_STREAMS.gvk.kind);
    stream.set_metadata("name", import.name());
    stream.set_metadata("namespace", import.namespace());
    stream.set_metadata("generation", 0);
    stream
}

fn without_kind(mut stream: Object) -> Value {
    stream.0.remove("kind");
    stream.0.remove("apiVersion");
    Value::Object(stream.0)
}

/// Fills in the status that the caller sees.
fn show(pulled: &PulledAll, status: &mut Value) {
    let images: Vec<Value> = pulled.images.iter().map(shown).collect();
    if !images.is_empty() {
        status["images"] = images.into();
    }
    if let Some(PulledRepository { status: inner, images, additional }) = &pulled.repository {
        let mut repository = json!({"status": failure::inner(inner)});
        let images: Vec<Value> = images.iter().map(shown).collect();
        if !images.is_empty() {
            repository["images"] = images.into();
        }
        if !additional.is_empty() {
            repository["additionalTags"] = json!(additional);
        }
        status["repository"] = repository;
    }
}

fn shown(pulled: &Pulled) -> Value {
    let mut shown = match &pulled.outcome {
        Err(status) => json!({"status": failure::inner(status)}),
        Ok(found) => {
            let mut shown = json!({"status": failure::inner(&Status::success(None)), "image": found.image});
            if !found.manifests.is_empty() {
                shown["manifests"] = json!(found.manifests);
            }
            shown
        }
    };
    if !pulled.tag.is_empty() {
        shown["tag"] = pulled.tag.as_str().into();
    }
    shown
}
