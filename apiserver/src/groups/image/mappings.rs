//! `imagestreammappings`: how a registry says that an image was pushed to a tag. Creates the image where it is not
//! there, and records an event of the tag (`openshift-apiserver/pkg/image/apiserver/registry/imagestreammapping`).

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use picoshift_machinery::{FieldError, Object, Status};
use serde_json::{Value, json};

use super::GROUP;
use super::access::{Access, Part, StreamChange};
use super::columns::{IMAGE_STREAM_MAPPINGS, IMAGE_STREAMS};
use super::docker_image;
use super::hostnames::Hostnames;
use super::images::{self, validation};
use super::model::provisional::is_provisional;
use super::model::{DEFAULT_TAG, Event, MANAGED, latest_event, record_import};
use super::reference::Reference;
use crate::admission::{Admission, Operation, Review};
use crate::object_meta;
use crate::registry::metadata;
use crate::resource::Resource;
use crate::rest::{Item, RequestContext, Storage, WriteOptions};

/// The storage of `imagestreammappings`.
pub(super) struct Mappings {
    pub(super) access: Arc<Access>,
    pub(super) admission: Arc<Admission>,
    pub(super) hostnames: Hostnames,
}

#[async_trait]
impl Storage for Mappings {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAM_MAPPINGS
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        let namespace = cx.info.namespace.as_str();
        metadata::begin(&mut object, namespace, &uuid::Uuid::new_v4().to_string(), &metadata::now());
        let resource = &IMAGE_STREAM_MAPPINGS;
        let review = Review { operation: Operation::Create, object: &object, old: None, resource };
        self.admission.mutate(cx, &review).await?;
        object_meta::check_generated(&object)?;
        let image = self.image(&mut object)?;
        let errors = validate(&object, &image);
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, resource.gvk.kind, object.name(), &errors));
        }
        let review = Review { operation: Operation::Create, object: &object, old: None, resource };
        self.admission.validate(cx, &review).await?;
        let stream = self.access.stream(namespace, object.name()).await.map_err(|status| {
            // As upstream: it is the mapping that is not found.
            let lost = status.is("NotFound");
            if lost { Status::not_found(GROUP, resource.plural, object.name()) } else { status }
        })?;
        let (made, created) = self.access.create_image(&cx.user, image.clone(), options.dry_run).await?;
        let mut reference = made.str_at(&["dockerImageReference"]).to_owned();
        if !created {
            reference = image.str_at(&["dockerImageReference"]).to_owned();
            // The cluster's registry has it already, for another stream: this one has its own name for it.
            if image.annotation(MANAGED) == Some("true")
                && let Some(own) = own_reference(&stream, image.name())
            {
                reference = own;
            }
        }
        let tag = object.str_at(&["tag"]);
        let event = Event {
            created: metadata::now(),
            docker_image_reference: reference,
            image: image.name().to_owned(),
            generation: 0,
        };
        let change =
            Push { tag: if tag.is_empty() { DEFAULT_TAG } else { tag }, event, first: Mutex::default() };
        let part = Part::Status;
        self.access.change_stream(&cx.user, namespace, object.name(), part, options.dry_run, &change).await?;
        let mut status = Object::new("v1", "Status");
        status.0.insert("status".to_owned(), json!("Success"));
        status.0.insert("code".to_owned(), json!(201));
        Ok(Arc::new(Item::new(resource, status, 0)))
    }
}

impl Mappings {
    /// The image of a mapping, complete; without a pull spec it gets the one of the cluster's registry.
    fn image(&self, mapping: &mut Object) -> Result<Object, Status> {
        let image = mapping.0.get("image").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut image = Object(image);
        image.0.entry("metadata").or_insert_with(|| json!({}));
        images::check_metadata(&image)?;
        // It was checked just above.
        let _ = docker_image::complete(&mut image);
        image.0.remove("signatures");
        if image.str_at(&["dockerImageReference"]).is_empty()
            && let Some(own) =
                self.hostnames.internal_image(mapping.namespace(), mapping.name(), image.name())
        {
            image.0.insert("dockerImageReference".to_owned(), own.into());
        }
        mapping.0.insert("image".to_owned(), json!(image));
        Ok(image)
    }
}

fn validate(mapping: &Object, image: &Object) -> Vec<FieldError> {
    let mut errors = object_meta::create(mapping, true, object_meta::path_name);
    if mapping.name().is_empty() {
        errors.push(FieldError::required("name", ""));
        errors.push(FieldError::required("dockerImageRepository", ""));
    }
    if mapping.str_at(&["tag"]).is_empty() {
        errors.push(FieldError::required("tag", ""));
    }
    errors.extend(validation::image_at("image", image));
    errors
}

/// The pull spec of an image in a stream's own repository, where it has one.
fn own_reference(stream: &Object, image: &str) -> Option<String> {
    let repository = [["status", "dockerImageRepository"], ["spec", "dockerImageRepository"]]
        .iter()
        .map(|path| stream.str_at(path))
        .find(|text| !text.is_empty())?;
    let repository = Reference::parse(repository).ok()?;
    Some(Reference { id: image.to_owned(), ..repository }.exact())
}

/// Records a push. Where another write came first, it is tried again only while the tag still means what it did.
struct Push<'a> {
    tag: &'a str,
    event: Event,
    /// What the tag meant when the push came, once it is known.
    first: Mutex<Option<Option<Event>>>,
}

impl StreamChange for Push<'_> {
    fn change(&self, stream: &mut Object) -> Result<(), Status> {
        // For other writers a tag that awaits its import means nothing yet.
        let now = latest_event(stream, self.tag).filter(|_| !is_provisional(stream, self.tag));
        let first = self.first.lock().get_or_insert_with(|| now.clone()).clone();
        if let Some(first) = first
            && !now.is_some_and(|now| now.means(&first))
        {
            let why =
                "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Status::conflict(GROUP, IMAGE_STREAMS.plural, stream.name(), why));
        }
        let generation = stream.generation().unwrap_or(0);
        record_import(stream, self.tag, &Event { generation, ..self.event.clone() });
        Ok(())
    }
}
