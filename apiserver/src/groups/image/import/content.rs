//! The Image objects of what a registry has (`pkg/image/apiserver/importer/image.go`,
//! `pkg/image/apiserver/internal/imageutil`).

use picoshift_machinery::Object;
use serde_json::{Value, json};

use crate::groups::image::{docker_image, manifest};
#[cfg(any(test, feature = "fuzzing"))]
use crate::oci::Manifest;
use crate::oci::{Error, Fetched, ImageManifest, ListManifest};

/// The Image of one platform. Named by the digest of its manifest; the id of its metadata is that of the configuration.
///
/// # Errors
/// When the configuration cannot be read.
pub(super) fn image(fetched: &Fetched, manifest: &ImageManifest, config: &Fetched) -> Result<Object, Error> {
    let mut image = named(&fetched.digest, manifest.media_type);
    image.0.insert("dockerImageManifest".to_owned(), text(&fetched.bytes));
    image.0.insert("dockerImageConfig".to_owned(), text(&config.bytes));
    manifest::fill(&mut image).map_err(Error::Failed)?;
    docker_image::complete(&mut image).map_err(Error::Failed)?;
    Ok(image)
}

/// Removes the texts of manifest and configuration: they would fill the store, and few want to see them.
pub(super) fn drop_texts(image: &mut Object) {
    image.0.remove("dockerImageManifest");
    image.0.remove("dockerImageConfig");
}

/// The Image of a list of images.
///
/// # Errors
/// Never, for a time that is one.
pub(super) fn list(fetched: &Fetched, list: &ListManifest, now: &str) -> Result<Object, Error> {
    let mut image = named(&fetched.digest, list.media_type);
    image.0.insert("dockerImageMetadata".to_owned(), json!({"Id": fetched.digest, "Created": now}));
    docker_image::complete(&mut image).map_err(Error::Failed)?;
    manifest::set_manifests(&mut image, &list.entries);
    Ok(image)
}

fn named(digest: &str, media_type: &str) -> Object {
    let mut image = Object::default();
    image.set_metadata("name", digest);
    image.0.insert("dockerImageManifestMediaType".to_owned(), media_type.into());
    image
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// The image that stands for a list where only one is wanted: of the preferred platform, else for linux on amd64, else
/// the first.
pub(super) fn pick<'a>(list: &'a ListManifest, arch: &str, os: &str) -> Result<&'a str, Error> {
    let of = |arch: &str, os: &str| {
        list.entries.iter().find(|entry| entry.platform.architecture == arch && entry.platform.os == os)
    };
    let arch = if arch.is_empty() { own_arch() } else { arch };
    let os = if os.is_empty() { std::env::consts::OS } else { os };
    let found = of(arch, os).or_else(|| of("amd64", "linux")).or_else(|| list.entries.first());
    let found = found.ok_or_else(|| Error::Failed("no manifests in manifest list".to_owned()))?;
    Ok(&found.manifest.digest)
}

/// The machine's architecture, as images name it.
fn own_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        other => other,
    }
}

/// Reads what a manifest and a configuration say, as strangers send them.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn read_untrusted(content_type: &str, manifest: &[u8], config: &[u8]) {
    let fetched = |bytes: &[u8]| Fetched {
        bytes: bytes::Bytes::copy_from_slice(bytes),
        content_type: content_type.to_owned(),
        digest: "sha256:0".to_owned(),
        elsewhere: false,
    };
    match Manifest::parse(content_type, manifest) {
        Ok(Manifest::Image(parsed)) => {
            let _ = image(&fetched(manifest), &parsed, &fetched(config));
        }
        Ok(Manifest::List(parsed)) => {
            let _ = pick(&parsed, "", "");
            let _ = list(&fetched(manifest), &parsed, "2026-11-30T03:58:45Z");
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(text: &str, digest: &str) -> Fetched {
        let bytes = text.to_owned().into();
        Fetched { bytes, content_type: String::new(), digest: digest.to_owned(), elsewhere: false }
    }

    #[test]
    fn an_image_has_its_layers_and_a_size_that_counts_each_once() {
        let text = r#"{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"digest":"sha256:c"},
            "layers":[{"digest":"sha256:a","size":5,"mediaType":"m"},{"digest":"sha256:a","size":5,"mediaType":"m"},
            {"digest":"sha256:b","size":7,"mediaType":"n"}]}"#;
        let content_type = "application/vnd.docker.distribution.manifest.v2+json";
        let Ok(Manifest::Image(manifest)) = Manifest::parse(content_type, text.as_bytes()) else {
            panic!("no image")
        };
        let config = r#"{"architecture":"amd64","created":"2020-01-01T00:00:00Z"}"#;
        let image = image(&fetched(text, "sha256:m"), &manifest, &fetched(config, "sha256:c")).unwrap();
        assert_eq!(
            Value::Object(image.0),
            json!({
                "metadata": {"name": "sha256:m", "annotations": {"image.openshift.io/dockerLayersOrder": "ascending"}},
                "dockerImageMetadata": {"kind": "DockerImage", "apiVersion": "image.openshift.io/1.0", "Id": "sha256:c",
                    "Created": "2020-01-01T00:00:00Z", "ContainerConfig": {}, "Architecture": "amd64",
                    "Size": 12 + config.len()},
                "dockerImageMetadataVersion": "1.0",
                "dockerImageManifestMediaType": content_type,
                "dockerImageLayers": [
                    {"name": "sha256:a", "size": 5, "mediaType": "m"},
                    {"name": "sha256:a", "size": 5, "mediaType": "m"},
                    {"name": "sha256:b", "size": 7, "mediaType": "n"},
                ],
                "dockerImageManifest": text, "dockerImageConfig": config,
            })
        );
    }

    #[test]
    fn one_image_of_a_list_is_picked_by_platform() {
        let entry = |digest: &str, arch: &str, os: &str| json!({"digest": digest, "platform": {"architecture": arch, "os": os}});
        let list = |entries: &[Value]| {
            let text = json!({"manifests": entries}).to_string();
            match Manifest::parse("application/vnd.oci.image.index.v1+json", text.as_bytes()) {
                Ok(Manifest::List(list)) => list,
                other => panic!("{other:?}"),
            }
        };
        let all =
            [entry("w", "amd64", "windows"), entry("s", "s390x", "linux"), entry("a", "amd64", "linux")];
        assert_eq!(pick(&list(&all), "s390x", "").unwrap(), "s");
        assert_eq!(pick(&list(&all), "amd64", "windows").unwrap(), "w");
        assert_eq!(pick(&list(&all), "mips", "plan9").unwrap(), "a");
        assert_eq!(pick(&list(&all[..2]), "mips", "plan9").unwrap(), "w");
        assert_eq!(pick(&list(&[]), "", "").unwrap_err().to_string(), "no manifests in manifest list");
    }
}
