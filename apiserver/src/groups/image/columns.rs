//! The descriptions of what is stored or taken in: image streams, images, signatures and mappings
//! (`openshift-apiserver/pkg/image/printers`).

use picoshift_machinery::GroupVersionKind;

use super::GROUP;
use crate::resource::{AnsweredKind, Column, Resource, Subresource, Verb};

const FULL: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];

/// The column of names, as every table begins.
pub(super) const NAME: Column = Column {
    name: "Name",
    r#type: "string",
    format: "name",
    description: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
    priority: 0,
};

/// A column of texts that is always shown.
pub(super) const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, r#type: "string", format: "", description, priority: 0 }
}

/// `imagestreams`.
pub static IMAGE_STREAMS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStream" },
    plural: "imagestreams",
    singular: "imagestream",
    namespaced: true,
    verbs: FULL,
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
    schema: "com.github.openshift.api.image.v1.ImageStream",
};

/// `images`.
pub static IMAGES: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "Image" },
    plural: "images",
    singular: "image",
    namespaced: false,
    verbs: FULL,
    short_names: &[],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        text("Image Reference", "dockerImageReference is the string that can be used to pull this image."),
    ],
    field_labels: &[],
    garbage_collected: false,
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
    columns: &[NAME],
    field_labels: &[],
    garbage_collected: true,
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
    columns: &[NAME],
    field_labels: &[],
    garbage_collected: true,
    schema: "com.github.openshift.api.image.v1.ImageStreamMapping",
};
