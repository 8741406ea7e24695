//! `imagesignatures`: a way to add a signature to an image, and to take one away; they are kept in the image
//! (`openshift-apiserver/pkg/image/apiserver/registry/imagesignature`).

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status};
use serde_json::{Value, json};

use super::GROUP;
use super::columns::IMAGE_SIGNATURES;
use super::images::validation;
use crate::registry::{Registry, metadata};
use crate::resource::Resource;
use crate::rest::{DeleteOptions, Deleted, GetOptions, Item, RequestContext, Storage, Updater, WriteOptions};

/// The resource as upstream's errors name it.
const SHOWN: &str = "imageSignatures";
/// What only the server says about a signature.
const SERVER_SIDE: [&str; 6] =
    ["conditions", "created", "imageIdentity", "issuedBy", "issuedTo", "signedClaims"];

/// The storage of `imagesignatures`.
pub(super) struct Signatures {
    pub(super) images: Arc<Registry>,
}

#[async_trait]
impl Storage for Signatures {
    fn resource(&self) -> &'static Resource {
        &IMAGE_SIGNATURES
    }

    async fn create(
        &self,
        cx: &RequestContext,
        mut object: Object,
        options: &WriteOptions,
    ) -> Result<Arc<Item>, Status> {
        if object.name().is_empty() {
            let name = object.generate_name().to_owned();
            object.set_metadata("name", name);
        }
        metadata::begin(&mut object, "", &uuid::Uuid::new_v4().to_string(), &metadata::now());
        object.set_metadata("generation", Value::Null);
        for field in SERVER_SIDE {
            object.0.remove(field);
        }
        let errors = validation::signature(&object);
        if !errors.is_empty() {
            return Err(Status::invalid(GROUP, IMAGE_SIGNATURES.gvk.kind, object.name(), &errors));
        }
        let Some((image, _)) = validation::split_name(object.name()) else {
            return Err(Status::bad_request("an image signature's name must be <imageName>@<signatureName>"));
        };
        let mut kept = object.clone();
        kept.0.remove("apiVersion");
        kept.0.remove("kind");
        self.images.update(cx, image, &Add(kept), options).await?;
        Ok(Arc::new(Item::new(&IMAGE_SIGNATURES, object, 0)))
    }

    async fn delete(
        &self,
        cx: &RequestContext,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let Some((image, _)) = validation::split_name(name) else {
            let why = "ImageSignatures must be accessed with <imageName>@<signatureName>";
            return Err(Status::bad_request(why));
        };
        // Upstream looks for the image first.
        self.images.get(cx, image, &GetOptions::default()).await?;
        let write = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
        self.images.update(cx, image, &Remove(name), &write).await?;
        Ok(Deleted::Gone(None))
    }
}

/// Adds a signature to an image.
struct Add(Object);

impl Updater for Add {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut image = current.clone();
        let mut signatures = signatures(&image);
        let same = |other: &Value| {
            let is = |field: &str| {
                let own = self.0.str_at(&[field]);
                other.get(field).and_then(Value::as_str) == Some(own)
            };
            name_of(other) == self.0.name() || (is("type") && is("content"))
        };
        if signatures.iter().any(same) {
            return Err(Status::already_exists(GROUP, SHOWN, self.0.name()));
        }
        signatures.push(json!(self.0));
        image.0.insert("signatures".to_owned(), signatures.into());
        Ok(image)
    }

    fn retries(&self) -> bool {
        true
    }
}

/// Takes a signature away from an image.
struct Remove<'a>(&'a str);

impl Updater for Remove<'_> {
    fn update(&self, current: &Object) -> Result<Object, Status> {
        let mut image = current.clone();
        let mut signatures = signatures(&image);
        let before = signatures.len();
        signatures.retain(|signature| name_of(signature) != self.0);
        if signatures.len() == before {
            return Err(Status::not_found(GROUP, SHOWN, self.0));
        }
        if signatures.is_empty() {
            image.0.remove("signatures");
        } else {
            image.0.insert("signatures".to_owned(), signatures.into());
        }
        Ok(image)
    }

    fn retries(&self) -> bool {
        true
    }
}

fn signatures(image: &Object) -> Vec<Value> {
    image.at(&["signatures"]).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn name_of(signature: &Value) -> &str {
    signature.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str).unwrap_or("")
}
