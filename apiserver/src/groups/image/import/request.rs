//! What an import asks for: defaults, validation, and the request as the importer reads it
//! (`pkg/image/apis/image/{v1/defaults.go,validation}`).

use picoshift_machinery::{FieldError, Object};
use serde_json::{Map, Value, json};

use crate::groups::image::model::spec_tags::DOCKER_IMAGE;
use crate::groups::image::names;
use crate::groups::image::reference::Reference;
use crate::groups::image::streams::validation::import_mode;
use crate::object_meta;

const ONLY_IMAGES: &str = "only DockerImage is supported";

/// One image, or one repository, that is asked for: an entry of `spec.images`, or `spec.repository`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a>(&'a Value);

impl<'a> Wanted<'a> {
    /// The images that are asked for.
    pub(super) fn images(import: &'a Object) -> Vec<Self> {
        let images = import.at(&["spec", "images"]).and_then(Value::as_array);
        images.into_iter().flatten().map(Self).collect()
    }

    /// The repository that is asked for.
    pub(super) fn repository(import: &'a Object) -> Option<Self> {
        import.at(&["spec", "repository"]).filter(|repository| repository.is_object()).map(Self)
    }

    /// The pull spec.
    pub(super) fn from(self) -> &'a str {
        self.text(&["from", "name"])
    }

    /// The stream's tag, if one is meant.
    pub(super) fn to(self) -> Option<&'a str> {
        self.0.get("to").filter(|to| to.is_object()).map(|_| self.text(&["to", "name"]))
    }

    pub(super) fn insecure(self) -> bool {
        self.flag(&["importPolicy", "insecure"])
    }

    pub(super) fn preserves_lists(self) -> bool {
        self.import_mode() == "PreserveOriginal"
    }

    fn import_mode(self) -> &'a str {
        self.text(&["importPolicy", "importMode"])
    }

    pub(super) fn wants_manifest(self) -> bool {
        self.flag(&["includeManifest"])
    }

    pub(super) fn import_policy(self) -> Value {
        self.0.get("importPolicy").cloned().unwrap_or_else(|| json!({}))
    }

    pub(super) fn reference_policy(self) -> Value {
        self.0.get("referencePolicy").cloned().unwrap_or_else(|| json!({}))
    }

    fn kind(self) -> &'a str {
        self.text(&["from", "kind"])
    }

    fn at(self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0, |value, key| value.get(*key))
    }

    fn text(self, path: &[&str]) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(self, path: &[&str]) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// Whether the result is to be recorded in the stream.
pub(super) fn records(import: &Object) -> bool {
    import.at(&["spec", "import"]).and_then(Value::as_bool).unwrap_or_default()
}

/// Fills in what Go's defaults do: the stream's tag is the one of the pull spec, where that has one.
pub(super) fn set_defaults(import: &mut Object) {
    let spec = import.object_mut("spec");
    if let Some(Value::Object(repository)) = spec.get_mut("repository") {
        policies(repository);
    }
    let Some(Value::Array(images)) = spec.get_mut("images") else { return };
    for image in images {
        let Value::Object(image) = image else { continue };
        let from = image.get("from").and_then(|from| from.get("name")).and_then(Value::as_str);
        let tag = from.and_then(|from| Reference::parse(from).ok()).map(|from| from.tag);
        if image.get("to").is_none_or(Value::is_null)
            && let Some(tag) = tag.filter(|tag| !tag.is_empty())
        {
            image.insert("to".to_owned(), json!({"name": tag}));
        }
        policies(image);
    }
}

fn policies(wanted: &mut Map<String, Value>) {
    for (policy, field, default) in
        [("importPolicy", "importMode", "Legacy"), ("referencePolicy", "type", "Source")]
    {
        let slot = wanted.entry(policy).or_insert_with(|| json!({}));
        if let Value::Object(policy) = slot
            && policy.get(field).and_then(Value::as_str).unwrap_or_default().is_empty()
        {
            policy.insert(field.to_owned(), default.into());
        }
    }
}

/// What is wrong with an import.
pub(super) fn validate(import: &Object) -> Vec<FieldError> {
    let (images, repository) = (Wanted::images(import), Wanted::repository(import));
    let mut errors = Vec::new();
    for (index, image) in images.iter().enumerate() {
        errors.extend(image_errors(*image, &format!("spec.images[{index}]")));
    }
    if let Some(repository) = repository {
        errors.extend(repository_errors(repository));
    }
    if images.is_empty() && repository.is_none() {
        let why = "you must specify at least one image or a repository import";
        errors.push(FieldError::invalid("spec.images", &Value::Null, why));
    }
    errors.extend(object_meta::create(import, true, names::stream_name));
    errors
}

fn image_errors(image: Wanted<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if image.kind() == DOCKER_IMAGE {
        if image.to() == Some("") {
            let why = "the name of the target tag must be specified";
            errors.push(FieldError::invalid_str(format!("{path}.to.name"), "", why));
        }
        let (field, name) = (format!("{path}.from.name"), image.from());
        match Reference::parse(name) {
            _ if name.is_empty() => errors.push(FieldError::required(field, "")),
            // Old clients look for streams by it.
            _ if name == "*" => return errors,
            Ok(_) => {}
            Err(error) => errors.push(FieldError::invalid_str(field, name, error.to_string())),
        }
    } else {
        errors.push(FieldError::invalid_str(format!("{path}.from.kind"), image.kind(), ONLY_IMAGES));
    }
    errors.extend(import_mode(image.import_mode(), &format!("{path}.importPolicy")));
    errors
}

fn repository_errors(repository: Wanted<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if repository.kind() == DOCKER_IMAGE {
        let (field, name) = ("spec.repository.from.name", repository.from());
        match Reference::parse(name) {
            _ if name.is_empty() => {
                errors.push(FieldError::required(field, "container image references require a name"));
            }
            Err(error) => errors.push(FieldError::invalid_str(field, name, error.to_string())),
            Ok(reference) if !reference.id.is_empty() || !reference.tag.is_empty() => {
                let why = "you must specify an image repository, not a tag or ID";
                errors.push(FieldError::invalid_str(field, name, why));
            }
            Ok(_) => {}
        }
    } else {
        errors.push(FieldError::invalid_str("spec.repository.from.kind", repository.kind(), ONLY_IMAGES));
    }
    errors.extend(import_mode(repository.import_mode(), "spec.repository.importPolicy"));
    errors
}
