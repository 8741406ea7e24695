//! `imagestreamimports`: what registries have, looked up and recorded in image streams.
//!
//! Behaviour: `openshift-apiserver/pkg/image/apiserver/{importer,registry/imagestreamimport}`. Not as upstream: failures
//! that may pass are tried again, images of a request are looked up at the same time, a stream that changed while the
//! registry was asked gets the result nevertheless (but for tags that were changed or asked for again), and
//! `dryRun` is honoured.

mod content;
mod failure;
mod plan;
mod pull;
mod pull_secrets;
mod record;
mod request;
mod storage;
mod tag_order;
#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::content::read_untrusted;
pub(super) use self::storage::{ImageStreamImports, Parts};

use picoshift_machinery::GroupVersionKind;

use super::GROUP;
use crate::resource::{Resource, Verb};

/// `imagestreamimports`.
pub static IMAGE_STREAM_IMPORTS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStreamImport" },
    plural: "imagestreamimports",
    singular: "imagestreamimport",
    namespaced: true,
    verbs: &[Verb::Create],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageStreamImport",
};
