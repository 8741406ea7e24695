//! Images and registries: what clients push and what registries answer.

use picoshift_machinery::Object;

use super::{halves, text};
use crate::groups::image;
use crate::groups::image::reference::Reference;
use crate::groups::image::{docker_image, manifest, names};
use crate::oci;

/// A raw manifest and, after a zero byte, the configuration of an image: what is filled in is complete metadata.
pub(super) fn image_manifest(bytes: &[u8]) {
    let (manifest, config) = halves(bytes);
    let (manifest, config) = (text(manifest), text(config));
    let raw = serde_json::json!({
        "metadata": {"name": "sha256:0"}, "dockerImageManifest": manifest, "dockerImageConfig": config,
    });
    let Some(mut image) = Object::from_value(raw) else { return };
    if manifest::fill(&mut image).is_ok() && image.at(&["dockerImageMetadata"]).is_some() {
        let once = docker_image::complete(&mut image).map(|()| image.clone());
        assert!(once.is_ok_and(|once| docker_image::complete(&mut image).is_ok() && image == once));
    }
    let _ = manifest::is_manifest_of(&image, manifest) || manifest::is_config_of(&image, config);
}

/// A docker image reference, or a name of a tag or image of a stream: the reference's text parses again.
pub(super) fn image_reference(text: &str) {
    if let Ok(reference) = Reference::parse(text) {
        let exact = reference.exact();
        assert!(exact.is_empty() || Reference::parse(&exact).is_ok_and(|again| again.exact() == exact));
        let _ = reference.clone().most_specific().minimal().as_v2().to_string();
        let _ = reference.with_client_defaults().repository_name();
    }
    let _ = names::stream_name(text, false);
    if let Ok((stream, tag)) = names::parse_stream_tag(text) {
        assert_eq!(names::join_stream_tag(stream, tag), text);
    }
    if let Ok((stream, id)) = names::parse_stream_image(text) {
        assert_eq!(names::join_stream_image(stream, id), text);
    }
}

/// What a registry answers: a manifest and, after a zero byte, a configuration.
pub(super) fn registry_documents(bytes: &[u8]) {
    let (manifest, config) = halves(bytes);
    for content_type in [
        "",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    ] {
        image::import::read_untrusted(content_type, manifest, config);
    }
}

/// Headers of a registry: a challenge, and the address of a redirect, which has a scheme and a host.
pub(super) fn registry_headers(text: &str) {
    for challenge in oci::Challenge::parse(text) {
        assert!(!challenge.scheme.bytes().any(|byte| byte.is_ascii_uppercase()));
        let _ = challenge.parameter("realm");
    }
    let base = http::Uri::from_static("https://registry.example:5000/v2/a/manifests/1?x=1");
    if let Some(url) = oci::resolve(&base, text) {
        assert!(url.scheme().is_some() && url.authority().is_some(), "{text:?} leads to {url}");
    }
}

/// A docker configuration out of a pull secret.
pub(super) fn docker_config(bytes: &[u8]) {
    let mut keyring = oci::Keyring::default();
    let _ = keyring.add_config_json(bytes);
    let _ = keyring.add_config(bytes);
    for image in ["docker.io/library/a", "quay.io:443/a/b:1", &String::from_utf8_lossy(bytes)] {
        let _ = keyring.find(image);
    }
}
