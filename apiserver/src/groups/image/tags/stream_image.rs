//! `imagestreamimages`: an image by its digest, in a stream whose history or whose manifest lists name it.

use std::sync::Arc;

use async_trait::async_trait;
use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::columns::IMAGE_STREAM_IMAGES;
use super::storage::{Images, own_words};
use super::{Sources, embedded, row};
use crate::groups::image::GROUP;
use crate::groups::image::model::status_tags;
use crate::groups::image::model::status_tags::items;
use crate::groups::image::names::{join_stream_image, parse_stream_image};
use crate::groups::image::reference::image_matches;
use crate::resource::Resource;
use crate::rest::{GetOptions, Item, RequestContext, Storage};

/// The storage.
pub(super) struct StreamImages {
    streams: Arc<dyn Storage>,
    images: Images,
}

impl StreamImages {
    pub(super) fn new(sources: &Sources) -> Self {
        Self { streams: Arc::clone(&sources.streams), images: Images(Arc::clone(&sources.images)) }
    }

    /// The image of a stream that `id` means; of several the first by name.
    async fn find(&self, cx: &RequestContext, stream: &Object, id: &str) -> Result<Option<String>, Status> {
        let mut names: Vec<&str> = status_tags(stream)
            .iter()
            .flat_map(items)
            .filter_map(|event| event.get("image")?.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        names.dedup();
        if let Some(found) = names.iter().find(|name| image_matches(name, id)) {
            return Ok(Some((*found).to_owned()));
        }
        let mut found: Option<String> = None;
        for name in names {
            let Some(image) = self.images.find(cx, name).await? else { continue };
            let manifests = image.0.get("dockerImageManifests").and_then(Value::as_array);
            for manifest in manifests.into_iter().flatten() {
                let digest = manifest.get("digest").and_then(Value::as_str).unwrap_or("");
                if image_matches(digest, id) && found.as_deref().is_none_or(|first| digest < first) {
                    found = Some(digest.to_owned());
                }
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl Storage for StreamImages {
    fn resource(&self) -> &'static Resource {
        &IMAGE_STREAM_IMAGES
    }

    fn row(&self, object: &Object) -> Vec<Value> {
        row::stream_image(object, jiff::Timestamp::now())
    }

    async fn get(&self, cx: &RequestContext, name: &str, _: &GetOptions) -> Result<Arc<Item>, Status> {
        let (stream_name, id) = parse_stream_image(name)
            .map_err(|_| Status::bad_request("ImageStreamImages must be retrieved with <name>@<id>"))?;
        let plural = IMAGE_STREAM_IMAGES.plural;
        let stream = self.streams.get(cx, stream_name, &GetOptions::default()).await;
        let stream =
            stream.map_err(|status| own_words(status, plural))?.object().map_err(Status::internal)?;
        let Some(found) = self.find(cx, &stream, id).await? else {
            return Err(Status::not_found(GROUP, IMAGE_STREAM_IMAGES.singular, name));
        };
        let Some(image) = self.images.find(cx, &found).await? else {
            return Err(Status::not_found(GROUP, plural, &found));
        };
        let mut object = Object::new(&IMAGE_STREAM_IMAGES.gvk.api_version(), IMAGE_STREAM_IMAGES.gvk.kind);
        object.set_metadata("name", join_stream_image(stream_name, id));
        object.set_metadata("namespace", stream.namespace());
        object.set_metadata(
            "creationTimestamp",
            image.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default(),
        );
        object.set_metadata(
            "annotations",
            stream.at(&["metadata", "annotations"]).cloned().unwrap_or_default(),
        );
        object.0.insert("image".to_owned(), embedded::image(&image).into());
        // It has no version of its own.
        Ok(Arc::new(Item::new(&IMAGE_STREAM_IMAGES, object, 0)))
    }
}
