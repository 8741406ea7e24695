//! The descriptions of what is stored or taken in: image streams, images, signatures and mappings
//! (`openshift-apiserver/pkg/image/printers`).

use picoshift_machinery::GroupVersionKind;

use super::GROUP;
use crate::resource::column::{NAME, text};
use crate::resource::{AnsweredKind, Resource, Subresource, Verb};

/// `imagestreams`.
pub static IMAGE_STREAMS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStream" },
    plural: "imagestreams",
    singular: "imagestream",
    namespaced: true,
    verbs: Verb::ALL,
    short_names: &["is"],
    categories: &["all"],
    subresources: &[
        Subresource {
            name: "layers",
            verbs: &[Verb::Get],
            answers: Some(AnsweredKind {
                kind: "ImageStreamLayers",
                schema: "com.github.openshift.api.image.v1.ImageStreamLayers",
            }),
        },
        Subresource {
            name: "secrets",
            verbs: &[Verb::Get],
            answers: Some(AnsweredKind {
                kind: "SecretList",
                schema: "com.github.openshift.api.image.v1.SecretList",
            }),
        },
        Subresource { name: "status", verbs: &[Verb::Get, Verb::Patch, Verb::Update], answers: None },
    ],
    columns: &[
        NAME,
        text(
            "Image Repository",
            "dockerImageRepository represents the effective location this stream may be accessed at. May be empty until the server determines where the repository is located",
        ),
        text("Tags", "Human readable list of tags."),
        text("Updated", "Last update time."),
    ],
    field_labels: &["spec.dockerImageRepository", "status.dockerImageRepository"],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageStream",
};

/// `images`.
pub static IMAGES: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "Image" },
    plural: "images",
    singular: "image",
    namespaced: false,
    verbs: Verb::ALL,
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        text("Image Reference", "dockerImageReference is the string that can be used to pull this image."),
    ],
    field_labels: &[],
    garbage_collected: false,
    bare: false,
    schema: "com.github.openshift.api.image.v1.Image",
};

/// `imagesignatures`.
pub static IMAGE_SIGNATURES: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageSignature" },
    plural: "imagesignatures",
    singular: "imagesignature",
    namespaced: false,
    verbs: &[Verb::Create, Verb::Delete],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageSignature",
};

/// `imagestreammappings`.
pub static IMAGE_STREAM_MAPPINGS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStreamMapping" },
    plural: "imagestreammappings",
    singular: "imagestreammapping",
    namespaced: true,
    verbs: &[Verb::Create],
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageStreamMapping",
};
