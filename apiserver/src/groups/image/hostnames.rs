//! Where streams can be pulled from and pushed to: the registries of the cluster, if it has any.

use picoshift_machinery::Object;

use super::reference::Reference;

/// Host names of the cluster's registry; empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hostnames {
    /// As pods reach it.
    pub internal: String,
    /// As everybody else reaches it.
    pub external: String,
}

impl Hostnames {
    /// The pull spec of an image that the cluster's registry holds for a stream; `None` where there is no registry.
    #[must_use]
    pub fn internal_image(&self, namespace: &str, stream: &str, image: &str) -> Option<String> {
        let repository = repository(&self.internal, namespace, stream)?;
        Some(Reference { id: image.to_owned(), ..repository }.exact())
    }
}

/// A stream's repository at a host; `None` where the host is empty.
fn repository(host: &str, namespace: &str, stream: &str) -> Option<Reference> {
    if host.is_empty() {
        return None;
    }
    Some(Reference {
        registry: host.to_owned(),
        namespace: namespace.to_owned(),
        name: stream.to_owned(),
        ..Reference::default()
    })
}

/// `status.dockerImageRepository` and `status.publicDockerImageRepository` of a stream.
#[must_use]
pub fn repositories(internal: &str, external: &str, stream: &Object) -> (String, String) {
    let at = |host: &str| repository(host, stream.namespace(), stream.name()).map(|found| found.to_string());
    let own = || stream.str_at(&["spec", "dockerImageRepository"]).to_owned();
    (at(internal).unwrap_or_else(own), at(external).unwrap_or_default())
}
