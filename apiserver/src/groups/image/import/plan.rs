//! Where a pull spec leads: which repository, which manifest, and how it is called in errors.

use picoshift_machinery::{Object, Status};

use super::failure;
use super::request::Wanted;
use crate::groups::image::model::{INSECURE_REPOSITORY, spec_tag};
use crate::groups::image::reference::Reference;
use crate::oci::Location;

const PREFER_ARCH: &str = "importer.image.openshift.io/prefer-arch";
const PREFER_OS: &str = "importer.image.openshift.io/prefer-os";

/// A manifest to be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// The repository, as the user wrote it: without tag and digest.
    pub(super) repository: Reference,
    pub(super) location: Location,
    /// The tag; empty where a digest is asked for.
    pub(super) tag: String,
    /// The digest; empty where a tag is asked for.
    pub(super) digest: String,
    /// Whether a list of images stays one.
    pub(super) preserve: bool,
    /// Whether the caller wants to see the manifest.
    pub(super) with_texts: bool,
    /// Architecture that is preferred of a list's images; empty for the machine's.
    pub(super) arch: String,
    /// Operating system that is preferred; empty for the machine's.
    pub(super) os: String,
}

impl Target {
    /// What `spec.images` asks for.
    ///
    /// # Errors
    /// What the image's status says where the pull spec leads nowhere.
    pub(super) fn of_image(wanted: Wanted<'_>, stream: &Object) -> Result<Self, Status> {
        let reference = parse(wanted.from(), true)?;
        let complete = reference.clone().with_client_defaults();
        let to = wanted.to().unwrap_or(&complete.tag);
        let preferred = |annotation: &str| {
            let tag = spec_tag(stream, to).map(|tag| tag.0);
            let value = tag.and_then(|tag| tag.get("annotations")?.get(annotation)?.as_str());
            value.unwrap_or_default().to_owned()
        };
        let by_digest = !reference.id.is_empty();
        let prefer = |annotation: &str| if by_digest { String::new() } else { preferred(annotation) };
        Ok(Self {
            location: location(&reference, wanted, stream),
            tag: if by_digest { String::new() } else { complete.tag.clone() },
            digest: reference.id.clone(),
            repository: reference.as_repository(),
            preserve: wanted.preserves_lists(),
            with_texts: wanted.wants_manifest(),
            arch: prefer(PREFER_ARCH),
            os: prefer(PREFER_OS),
        })
    }

    /// What `spec.repository` asks for, before its tags are known.
    ///
    /// # Errors
    /// As [`Self::of_image`].
    pub(super) fn of_repository(wanted: Wanted<'_>, stream: &Object) -> Result<Self, Status> {
        let reference = parse(wanted.from(), false)?;
        Ok(Self {
            location: location(&reference, wanted, stream),
            repository: reference.as_repository(),
            tag: String::new(),
            digest: String::new(),
            preserve: wanted.preserves_lists(),
            with_texts: wanted.wants_manifest(),
            arch: String::new(),
            os: String::new(),
        })
    }

    /// The same with another tag.
    pub(super) fn with_tag(&self, tag: &str) -> Self {
        Self { tag: tag.to_owned(), digest: String::new(), ..self.clone() }
    }

    /// An image of the list that this is.
    pub(super) fn with_digest(&self, digest: &str) -> Self {
        Self { tag: String::new(), digest: digest.to_owned(), preserve: false, ..self.clone() }
    }

    /// Tag or digest.
    pub(super) fn manifest(&self) -> &str {
        if self.digest.is_empty() { &self.tag } else { &self.digest }
    }

    /// The pull spec with all defaults, as errors show it.
    pub(super) fn shown(&self) -> String {
        let mut complete = self.repository.clone().with_client_defaults();
        if complete.registry == "index.docker.io" {
            "docker.io".clone_into(&mut complete.registry);
        }
        (complete.tag, complete.id) = (self.tag.clone(), self.digest.clone());
        complete.exact()
    }

    /// The pull spec of an image that was found: what the user wrote, by digest.
    pub(super) fn pull_spec(&self, digest: &str) -> String {
        Reference { id: digest.to_owned(), ..self.repository.clone() }.exact()
    }

    /// What credentials are kept by.
    pub(super) fn credentials_key(&self) -> String {
        self.repository.clone().with_client_defaults().to_string()
    }
}

fn parse(name: &str, whole: bool) -> Result<Reference, Status> {
    let reference = match Reference::parse(name) {
        Ok(reference) => reference,
        // Old clients look for streams by it; no registry has it.
        Err(_) if name == "*" => Reference { name: name.to_owned(), ..Reference::default() },
        Err(error) => return Err(failure::of_name(name, &error.to_string())),
    };
    if reference.name.is_empty() || reference.name == "*" {
        let mut shown = if reference.name.is_empty() { String::new() } else { name.to_owned() };
        if whole && !shown.is_empty() {
            shown.push_str(":latest");
        }
        let why = format!("unable to parse docker reference {shown}: invalid reference format");
        return Err(Status::internal(why));
    }
    Ok(reference)
}

fn location(reference: &Reference, wanted: Wanted<'_>, stream: &Object) -> Location {
    let complete = reference.clone().with_client_defaults();
    let path = complete.repository_name();
    Location {
        registry: complete.as_v2().registry,
        path,
        insecure: wanted.insecure() || stream.annotation(INSECURE_REPOSITORY) == Some("true"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(image: serde_json::Value) -> Result<Target, Status> {
        let import = Object::from_value(json!({"spec": {"images": [image]}})).unwrap();
        let stream = Object::from_value(json!({
            "metadata": {"annotations": {"openshift.io/image.insecureRepository": "false"}},
            "spec": {"tags": [{"name": "one", "annotations": {PREFER_ARCH: "arm64", PREFER_OS: "windows"}}]},
        }))
        .unwrap();
        Target::of_image(Wanted::images(&import)[0], &stream)
    }

    #[test]
    fn docker_hub_is_called_by_one_name_and_asked_at_another() {
        let target = target(json!({"from": {"name": "busybox"}, "to": {"name": "one"}})).unwrap();
        assert_eq!(target.shown(), "docker.io/library/busybox:latest");
        assert_eq!(target.location.registry, "registry-1.docker.io");
        assert_eq!(target.location.path, "library/busybox");
        assert_eq!(
            target.pull_spec(&format!("sha256:{}", "0".repeat(64))),
            format!("busybox@sha256:{}", "0".repeat(64))
        );
        assert_eq!((target.arch.as_str(), target.os.as_str()), ("arm64", "windows"));
        assert_eq!(target.manifest(), "latest");
        assert_eq!(target.with_tag("1").shown(), "docker.io/library/busybox:1");
    }

    #[test]
    fn a_digest_counts_more_than_a_tag() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let name = format!("r.io:5000/a/b/c:1@{digest}");
        let target = target(json!({"from": {"name": name}, "importPolicy": {"insecure": true}})).unwrap();
        assert_eq!(target.shown(), format!("r.io:5000/a/b/c@{digest}"));
        assert_eq!(
            (target.location.registry.as_str(), target.location.path.as_str()),
            ("r.io:5000", "a/b/c")
        );
        assert!(target.location.insecure && target.tag.is_empty() && target.manifest() == digest);
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        let message = |name: &str| target(json!({"from": {"name": name}})).unwrap_err().message;
        let internal = "Internal error occurred: unable to parse docker reference";
        assert_eq!(message("*"), format!("{internal} *:latest: invalid reference format"));
        assert_eq!(message("r.io"), format!("{internal} : invalid reference format"));
        assert_eq!(
            message("A b"),
            r#" "" is invalid: from.name: Invalid value: "A b": invalid name: invalid reference format"#
        );
    }
}
