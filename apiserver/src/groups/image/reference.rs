//! Docker image references: `[registry/][namespace/]name[:tag][@digest]`.
//!
//! Behaviour: `openshift/library-go/pkg/image/{reference,internal/reference,internal/digest}`. What is written is
//! what is kept: no default is applied by parsing, only by the methods that say so.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// Longest registry, namespace and name together.
pub const NAME_MAX: usize = 255;
/// The registry when none is named.
const DOCKER_HUB: &str = "docker.io";
/// Docker hub's names, the older and the newer API's included.
const DOCKER_HUB_NAMES: [&str; 3] = [DOCKER_HUB, "index.docker.io", DOCKER_HUB_V2];
const DOCKER_HUB_V2: &str = "registry-1.docker.io";
/// The namespace of names without one at Docker hub.
const DOCKER_HUB_NAMESPACE: &str = "library";
/// The tag when none is named.
pub const DEFAULT_TAG: &str = "latest";

/// Length of a digest's hexadecimal part for each algorithm that is known.
const DIGEST_LENGTHS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// Name, tag and digest of a reference; `None` only if the pattern were wrong, and then nothing parses.
static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let component = r"[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*";
    let host = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let host = format!(r"{host}(?:\.{host})*(?::[0-9]+)?");
    let name = format!(r"(?:{host}/)?{component}(?:/{component})*");
    let tag = r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    Regex::new(&format!("^({name})(?::({tag}))?(?:@({digest}))?$")).ok()
});

/// Why a text is no reference; the texts are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It has another form.
    #[error("invalid reference format")]
    Format,
    /// It would be one in lower case.
    #[error("repository name must be lowercase")]
    Uppercase,
    /// It is empty.
    #[error("repository name must have at least one component")]
    Empty,
    /// Registry, namespace and name are too long.
    #[error("repository name must not be more than {NAME_MAX} characters")]
    TooLong,
    /// Its digest is wrong.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

/// Why a text is no digest; the texts are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// It is not `algorithm:hex`.
    #[error("invalid checksum digest format")]
    Format,
    /// The hexadecimal part has not the algorithm's length.
    #[error("invalid checksum digest length")]
    Length,
    /// The algorithm is unknown.
    #[error("unsupported digest algorithm")]
    Unsupported,
}

/// A parsed reference; parts that were not written are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Host, and port where one is named.
    pub registry: String,
    /// First part of the path.
    pub namespace: String,
    /// The rest of the path; empty where only a registry is named.
    pub name: String,
    /// Tag.
    pub tag: String,
    /// Digest, with its algorithm.
    pub id: String,
}

impl Reference {
    /// Parses a pull spec. A first part with a dot or a colon, or `localhost`, is a registry; everything else is a
    /// path, of which the first part is the namespace when there are two.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn parse(spec: &str) -> Result<Self, ReferenceError> {
        let pattern = PATTERN.as_ref().ok_or(ReferenceError::Format)?;
        let Some(found) = pattern.captures(spec) else {
            return Err(match spec {
                "" => ReferenceError::Empty,
                _ if pattern.is_match(&spec.to_lowercase()) => ReferenceError::Uppercase,
                _ => ReferenceError::Format,
            });
        };
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let (name, tag, digest) = (part(1), part(2), part(3));
        if name.len() > NAME_MAX {
            return Err(ReferenceError::TooLong);
        }
        if !digest.is_empty() {
            check_digest(digest)?;
        }
        let mut reference = Self { id: digest.to_owned(), ..Self::default() };
        match name.split_once('/') {
            None if name.contains('.') || name.starts_with("localhost") => {
                // Only a registry; what looks like its tag is its port.
                reference.registry = spec.to_owned();
                return Ok(reference);
            }
            Some((registry, path)) if is_registry(registry) => {
                registry.clone_into(&mut reference.registry);
                path.clone_into(&mut reference.name);
            }
            _ => name.clone_into(&mut reference.name),
        }
        tag.clone_into(&mut reference.tag);
        if let Some((namespace, rest)) = reference.name.split_once('/') {
            (reference.namespace, reference.name) = (namespace.to_owned(), rest.to_owned());
        }
        Ok(reference)
    }

    /// The reference as written: no default is added. Empty where it has no name.
    #[must_use]
    pub fn exact(&self) -> String {
        let name = self.name_with_tag_or_id();
        if name.is_empty() {
            return name;
        }
        let parts = [self.registry.as_str(), self.namespace.as_str(), name.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// The name with its id, else with its tag.
    #[must_use]
    pub fn name_with_tag_or_id(&self) -> String {
        let name = &self.name;
        match (self.id.as_str(), self.tag.as_str()) {
            _ if name.is_empty() => String::new(),
            ("", "") => name.clone(),
            ("", tag) => format!("{name}:{tag}"),
            (id, _) if check_digest(id).is_ok() => format!("{name}@{id}"),
            // An id of the first registry API, which pulled it like a tag.
            (id, _) => format!("{name}:{id}"),
        }
    }

    /// As a docker client completes it: Docker hub, its namespace `library`, tag `latest` (also beside an id).
    #[must_use]
    pub fn with_client_defaults(mut self) -> Self {
        if self.registry.is_empty() {
            DOCKER_HUB.clone_into(&mut self.registry);
        }
        if self.namespace.is_empty() && self.is_docker_hub() {
            DOCKER_HUB_NAMESPACE.clone_into(&mut self.namespace);
        }
        if self.tag.is_empty() {
            DEFAULT_TAG.clone_into(&mut self.tag);
        }
        self
    }

    /// Without tag and id.
    #[must_use]
    pub fn as_repository(mut self) -> Self {
        self.tag.clear();
        self.id.clear();
        self
    }

    /// Namespace and name alone, as the registry's API has them in its paths.
    #[must_use]
    pub fn repository_name(&self) -> String {
        Self { registry: String::new(), ..self.clone() }.as_repository().exact()
    }

    /// Without the tag where there is a digest; an id that is no digest becomes the tag where there is none.
    #[must_use]
    pub fn most_specific(mut self) -> Self {
        if check_digest(&self.id).is_ok() {
            self.tag.clear();
        } else if !self.id.is_empty() && self.tag.is_empty() {
            self.tag = std::mem::take(&mut self.id);
        }
        self
    }

    /// Without the tag `latest`.
    #[must_use]
    pub fn minimal(mut self) -> Self {
        if self.tag == DEFAULT_TAG {
            self.tag.clear();
        }
        self
    }

    /// With Docker hub under the name of its present API.
    #[must_use]
    pub fn as_v2(mut self) -> Self {
        if self.is_docker_hub() {
            DOCKER_HUB_V2.clone_into(&mut self.registry);
        }
        self
    }

    /// Whether the registry is Docker hub; a reference without a registry is not (yet).
    #[must_use]
    pub fn is_docker_hub(&self) -> bool {
        DOCKER_HUB_NAMES.contains(&self.registry.as_str())
    }
}

/// The pull spec: as written, but with `library` where Docker hub is named without a namespace.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() && self.is_docker_hub() {
            let complete = Self { namespace: DOCKER_HUB_NAMESPACE.to_owned(), ..self.clone() };
            return f.write_str(&complete.exact());
        }
        f.write_str(&self.exact())
    }
}

/// Whether the part before the first slash is a registry's address.
fn is_registry(part: &str) -> bool {
    part.contains([':', '.']) || part == "localhost"
}

/// Checks a digest: `sha256:` and 64 hexadecimal digits, or one of the longer algorithms.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub fn check_digest(digest: &str) -> Result<(), DigestError> {
    let (algorithm, hex) = digest.split_once(':').ok_or(DigestError::Format)?;
    let in_algorithm = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte);
    if algorithm.is_empty()
        || hex.is_empty()
        || !algorithm.bytes().all(in_algorithm)
        || !hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return Err(DigestError::Format);
    }
    match DIGEST_LENGTHS.iter().find(|(known, _)| *known == algorithm) {
        None => Err(DigestError::Unsupported),
        Some((_, length)) if *length != hex.len() => Err(DigestError::Length),
        Some(_) => Ok(()),
    }
}

/// Whether an image's name begins with `prefix`; a digest's algorithm may be left out.
#[must_use]
pub fn image_matches(image: &str, prefix: &str) -> bool {
    let hex = image.split_once(':').filter(|_| check_digest(image).is_ok());
    image.starts_with(prefix) || hex.is_some_and(|(_, hex)| hex.starts_with(prefix))
}
