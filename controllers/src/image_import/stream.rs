//! What the controller reads of an ImageStream: little, so that a thousand of them are cheap to remember.

use kube::api::{ApiResource, ObjectMeta};
use kube::core::{GroupVersionKind, Object};
use serde::Deserialize;
use serde_json::Value;

/// When the repository of a stream was last imported as a whole.
pub const REPOSITORY_CHECK: &str = "openshift.io/image.dockerRepositoryCheck";
/// `true` for a repository that is reached without TLS or with a certificate that cannot be verified.
pub const INSECURE: &str = "openshift.io/image.insecureRepository";
/// The kind that refers to an image in a registry.
pub const DOCKER_IMAGE: &str = "DockerImage";

/// An ImageStream as far as it is read.
pub type ImageStream = Object<Spec, Status>;

/// Its resource.
#[must_use]
pub fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("image.openshift.io", "v1", "ImageStream"))
}

/// `spec`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// The repository that is imported as a whole.
    pub docker_image_repository: Option<String>,
    /// The tags that somebody asked for.
    pub tags: Option<Vec<Tag>>,
}

/// `spec.tags[]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// What it is to be.
    pub from: Option<From>,
    /// Only a pointer: never imported.
    pub reference: Option<bool>,
    /// The stream's generation when it was last changed.
    pub generation: Option<i64>,
    /// Passed on as it is.
    pub import_policy: Value,
    /// Passed on as it is.
    pub reference_policy: Value,
}

/// `spec.tags[].from`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct From {
    /// `DockerImage`, `ImageStreamTag` or `ImageStreamImage`.
    pub kind: String,
    /// The pull spec, for a `DockerImage`.
    pub name: String,
}

/// `status`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// What the tags were.
    pub tags: Option<Vec<TagEvents>>,
}

/// `status.tags[]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TagEvents {
    /// The tag's name.
    pub tag: String,
    /// What it was, newest first.
    pub items: Option<Vec<TagEvent>>,
    /// How its last import went.
    pub conditions: Option<Vec<Condition>>,
}

/// `status.tags[].items[]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TagEvent {
    /// The generation for which it was recorded.
    pub generation: i64,
    /// The image's digest; empty for a tag that resolves to its reference and has not been imported yet.
    pub image: String,
}

/// `status.tags[].conditions[]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// `ImportSuccess`
    #[serde(rename = "type")]
    pub type_: String,
    /// The generation for which it was recorded.
    pub generation: i64,
}

impl Tag {
    /// Whether it points into a registry and is to be imported.
    #[must_use]
    pub fn is_importable(&self) -> bool {
        let is_image = self.from.as_ref().is_some_and(|from| from.kind == DOCKER_IMAGE);
        is_image && self.reference != Some(true)
    }

    /// Whether it is to be imported again and again.
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        self.is_importable() && self.import_policy["scheduled"] == true
    }

    /// Whether it names an image by its digest, which never becomes another image.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.from.as_ref().is_some_and(|from| from.name.contains('@'))
    }
}

/// The generation of a stream.
#[must_use]
pub fn generation(metadata: &ObjectMeta) -> i64 {
    metadata.generation.unwrap_or(0)
}
