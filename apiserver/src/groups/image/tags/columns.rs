//! The descriptions of the computed resources (`openshift-apiserver/pkg/image/printers`).

use picoshift_machinery::GroupVersionKind;

use crate::groups::image::GROUP;
use crate::resource::column::{NAME, text, wide};
use crate::resource::{Column, Resource, Verb};

const TAG_VERBS: &[Verb] = &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update];
const UPDATED: Column = text("Updated", "Last update time.");
const REFERENCE: &str = "dockerImageReference is the string that can be used to pull this image.";

/// `imagestreamtags`.
pub static IMAGE_STREAM_TAGS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStreamTag" },
    plural: "imagestreamtags",
    singular: "imagestreamtag",
    namespaced: true,
    verbs: TAG_VERBS,
    short_names: &["istag"],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        text("Image Reference", REFERENCE),
        UPDATED,
        wide("Image Name", "image associated with the ImageStream and tag."),
    ],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageStreamTag",
};

/// `imagetags`.
pub static IMAGE_TAGS: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageTag" },
    plural: "imagetags",
    singular: "imagetag",
    namespaced: true,
    verbs: TAG_VERBS,
    short_names: &["itag"],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        text(
            "Spec",
            "spec is the spec tag associated with this image stream tag, and it may be null if only pushes have occurred to this image stream.",
        ),
        text(
            "Status",
            "status is the status tag details associated with this image stream tag, and it may be null if no push or import has been performed.",
        ),
        Column {
            name: "History",
            r#type: "number",
            format: "",
            description: "Number of history entries",
            priority: 0,
        },
        text("Updated", "Last updated at"),
    ],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageTag",
};

/// `imagestreamimages`.
pub static IMAGE_STREAM_IMAGES: Resource = Resource {
    gvk: GroupVersionKind { group: GROUP, version: "v1", kind: "ImageStreamImage" },
    plural: "imagestreamimages",
    singular: "imagestreamimage",
    namespaced: true,
    verbs: &[Verb::Get],
    short_names: &["isimage"],
    categories: &[],
    subresources: &[],
    columns: &[
        NAME,
        UPDATED,
        wide("Image Reference", REFERENCE),
        wide("Image Name", "image associated with the ImageStream and image name."),
    ],
    field_labels: &[],
    garbage_collected: true,
    bare: false,
    schema: "com.github.openshift.api.image.v1.ImageStreamImage",
};
