//! The computed half of the group: `imagestreamtags`, `imagetags` and `imagestreamimages`. None of them is stored:
//! each is read from a stream and its images, and a write is a write of the stream.
//!
//! Behaviour: `openshift-apiserver/pkg/image/apiserver/registry/{imagestreamtag,imagetag,imagestreamimage}`. One
//! thing differs by design: a tag of a pull spec that was not imported (yet) is there at once, with its pull spec and
//! without an image, so that nobody waits for a registry.

pub mod columns;

mod edits;
mod embedded;
mod image_tag;
mod kind;
mod list;
mod row;
mod storage;
mod stream_image;
mod stream_tag;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::image_tag::ImageTags;
use self::storage::TagStorage;
use self::stream_image::StreamImages;
use self::stream_tag::StreamTags;
use crate::admission::Admission;
use crate::authz::Authorizer;
use crate::rest::Storage;

/// What the computed resources are made from.
#[derive(Clone)]
pub struct Sources {
    /// Storage of `imagestreams`.
    pub streams: Arc<dyn Storage>,
    /// Storage of `images`.
    pub images: Arc<dyn Storage>,
    /// What admits writes of tags; the streams' own admission runs as well.
    pub admission: Arc<Admission>,
    /// Asked when an update of a tag creates its stream.
    pub authorizer: Arc<dyn Authorizer>,
}

/// The storages of `imagestreamtags`, `imagetags` and `imagestreamimages`.
#[must_use]
pub fn storages(sources: &Sources) -> Vec<Arc<dyn Storage>> {
    vec![
        Arc::new(TagStorage::new(Box::new(StreamTags), sources.clone())),
        Arc::new(TagStorage::new(Box::new(ImageTags), sources.clone())),
        Arc::new(StreamImages::new(sources)),
    ]
}
