//! Manifests: docker's schema 2 and manifest lists, OCI's images and indexes.

use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::Error;

/// Docker's manifest, schema 2.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker's list of manifests.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// OCI's manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI's index of manifests.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Entries that a manifest's list may have; an image has hardly more than a hundred layers.
const MAX_ENTRIES: usize = 1_000;
const TOO_MANY_ENTRIES: &str = "a list has more than 1000 entries";

/// What is asked for, as the value of `Accept`.
pub(super) const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";

/// A reference to content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(deserialize_with = "nullable")]
    pub media_type: String,
    /// Digest of the content.
    #[serde(deserialize_with = "nullable")]
    pub digest: String,
    /// Bytes of the content.
    #[serde(deserialize_with = "nullable")]
    pub size: i64,
}

/// An image for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageManifest {
    /// Media type of the manifest.
    pub media_type: &'static str,
    /// The image's configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    pub layers: Vec<Descriptor>,
}

/// One image of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ListEntry {
    /// Its manifest.
    #[serde(flatten)]
    pub manifest: Descriptor,
    /// What it runs on.
    #[serde(deserialize_with = "nullable")]
    pub platform: Platform,
}

/// What an image runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Platform {
    /// For example `amd64`.
    #[serde(deserialize_with = "nullable")]
    pub architecture: String,
    /// For example `linux`.
    #[serde(deserialize_with = "nullable")]
    pub os: String,
    /// For example `v7`.
    #[serde(deserialize_with = "nullable")]
    pub variant: String,
}

/// Images for several platforms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListManifest {
    /// Media type of the list.
    pub media_type: &'static str,
    /// The images.
    pub entries: Vec<ListEntry>,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// Of one image.
    Image(ImageManifest),
    /// Of several.
    List(ListManifest),
}

/// The fields of all four.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    #[serde(deserialize_with = "nullable")]
    media_type: String,
    #[serde(deserialize_with = "nullable")]
    schema_version: i64,
    config: Option<Descriptor>,
    #[serde(deserialize_with = "bounded")]
    layers: Option<Vec<Descriptor>>,
    #[serde(deserialize_with = "bounded")]
    manifests: Option<Vec<ListEntry>>,
    fs_layers: Option<Value>,
}

/// Go reads `null` as the zero value.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(reader: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(reader).map(Option::unwrap_or_default)
}

/// A list in a stranger's document: what is longer than [`MAX_ENTRIES`] is not read to its end.
pub(crate) fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Ok(Option::<Bounded<T>>::deserialize(reader)?.map(|list| list.0))
}

struct Bounded<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_seq(Entries(PhantomData)).map(Self)
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == MAX_ENTRIES {
                return Err(A::Error::custom(TOO_MANY_ENTRIES));
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

impl Manifest {
    /// Reads a manifest of the media type that came with it. A registry that names none, or a general one, is helped by
    /// what the document says of itself.
    ///
    /// # Errors
    /// When it is not JSON, not of the type that it should be, or of a type that is not supported (schema 1).
    pub fn parse(content_type: &str, bytes: &[u8]) -> Result<Self, Error> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| Error::Failed(json_error(bytes, &error)))?;
        let named = document.media_type.as_str();
        match media_type(content_type, &document)? {
            kind @ (DOCKER_MANIFEST | OCI_MANIFEST) => {
                let (label, optional) = if kind == DOCKER_MANIFEST {
                    ("mediaType in manifest", false)
                } else {
                    ("if present, mediaType in manifest", true)
                };
                check(label, kind, named, optional)?;
                if kind == OCI_MANIFEST && document.manifests.is_some() {
                    return Err(Error::Failed("ocimanifest: expected manifest but found index".to_owned()));
                }
                Ok(Self::Image(ImageManifest {
                    media_type: kind,
                    config: document.config.unwrap_or_default(),
                    layers: document.layers.unwrap_or_default(),
                }))
            }
            kind => {
                let (label, optional) = if kind == DOCKER_LIST {
                    ("mediaType in manifest list", false)
                } else {
                    ("if present, mediaType in image index", true)
                };
                check(label, kind, named, optional)?;
                if kind == OCI_INDEX && (document.config.is_some() || document.layers.is_some()) {
                    return Err(Error::Failed("index: expected index but found manifest".to_owned()));
                }
                let entries = document.manifests.unwrap_or_default();
                Ok(Self::List(ListManifest { media_type: kind, entries }))
            }
        }
    }
}

/// The media type that counts: the answer's, else the document's, else what the document looks like.
fn media_type(content_type: &str, document: &Document) -> Result<&'static str, Error> {
    let plain = content_type.split(';').next().unwrap_or_default().trim();
    let known = |text: &str| {
        [DOCKER_MANIFEST, DOCKER_LIST, OCI_MANIFEST, OCI_INDEX]
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(text))
    };
    if let Some(known) = known(plain).or_else(|| known(&document.media_type)) {
        return Ok(known);
    }
    if document.schema_version == 1 || document.fs_layers.is_some() {
        return Err(Error::Failed("unsupported image manifest type: *schema1.SignedManifest".to_owned()));
    }
    if document.config.is_some() && document.manifests.is_none() {
        Ok(OCI_MANIFEST)
    } else if document.manifests.is_some() && document.config.is_none() {
        Ok(OCI_INDEX)
    } else {
        let why = format!("unsupported manifest media type and no default available: {plain}");
        Err(Error::Failed(why))
    }
}

fn check(label: &str, wanted: &str, found: &str, optional: bool) -> Result<(), Error> {
    if found == wanted || (optional && found.is_empty()) {
        return Ok(());
    }
    Err(Error::Failed(format!("{label} should be '{wanted}' not '{found}'")))
}

/// What Go says of the same bytes, for what users meet: a document that ends too early or is none at all. What else the
/// document holds is not told.
pub(crate) fn json_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(byte) if error.is_syntax() && !b"{[\"-0123456789tfn".contains(byte) => {
            let shown = char::from(*byte).escape_default();
            format!("invalid character '{shown}' looking for beginning of value")
        }
        _ if error.is_data() && error.to_string().starts_with(TOO_MANY_ENTRIES) => {
            TOO_MANY_ENTRIES.to_owned()
        }
        // The error's own text shows what was found.
        _ => format!("json: unexpected content at line {} column {}", error.line(), error.column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(content_type: &str, text: &str) -> String {
        Manifest::parse(content_type, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_answers_type_counts_and_the_document_must_agree() {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"{DOCKER_MANIFEST}","config":{{"digest":"d","size":1}},"layers":null}}"#
        );
        let Ok(Manifest::Image(image)) = Manifest::parse(DOCKER_MANIFEST, text.as_bytes()) else {
            panic!("no image")
        };
        assert_eq!(image.config, Descriptor { media_type: String::new(), digest: "d".into(), size: 1 });
        assert!(image.layers.is_empty());
        assert_eq!(
            failure(OCI_MANIFEST, &text),
            format!("if present, mediaType in manifest should be '{OCI_MANIFEST}' not '{DOCKER_MANIFEST}'")
        );
        assert_eq!(
            failure(DOCKER_LIST, &text),
            format!("mediaType in manifest list should be '{DOCKER_LIST}' not '{DOCKER_MANIFEST}'")
        );
        assert_eq!(failure(OCI_INDEX, r#"{"config":{}}"#), "index: expected index but found manifest");
    }

    #[test]
    fn a_document_without_a_type_is_taken_for_what_it_looks_like() {
        let list = br#"{"manifests":[{"mediaType":"m","digest":"d","size":2,"platform":{"architecture":"arm","os":"linux","variant":"v7"}},{"platform":null}]}"#;
        let Ok(Manifest::List(list)) = Manifest::parse("application/json", list) else { panic!("no list") };
        assert_eq!(list.media_type, OCI_INDEX);
        assert_eq!(list.entries[0].platform.variant, "v7");
        assert_eq!(list.entries[0].manifest.size, 2);
        assert_eq!(list.entries[1], ListEntry::default());
        assert!(matches!(Manifest::parse("", br#"{"config":{}}"#), Ok(Manifest::Image(_))));
        assert!(failure("text/html", "{}").starts_with("unsupported manifest media type"));
        assert!(failure("", r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema1"));
    }

    #[test]
    fn a_document_has_only_so_many_entries() {
        let entries = |count: usize| vec!["{}"; count].join(",");
        for field in ["layers", "manifests"] {
            let kind = if field == "layers" { OCI_MANIFEST } else { OCI_INDEX };
            let text = |count| format!("{{\"{field}\":[{}]}}", entries(count));
            assert!(Manifest::parse(kind, text(1_000).as_bytes()).is_ok());
            // It is not read on, whatever follows.
            let endless = format!("{{\"{field}\":[{}", entries(1_002));
            assert_eq!(failure(kind, &endless), "a list has more than 1000 entries");
        }
    }

    #[test]
    fn what_was_found_is_not_in_the_text() {
        for text in [r#"{"config":"s3cret"}"#, r#"{"layers":{"s3cret":1}}"#, r#"{"schemaVersion":"s3cret"}"#]
        {
            let text = failure(OCI_MANIFEST, text);
            assert!(text.starts_with("json: unexpected content") && !text.contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn broken_documents_are_told_in_gos_words() {
        assert_eq!(failure(OCI_MANIFEST, r#"{"config":{"#), "unexpected end of JSON input");
        assert_eq!(failure(OCI_MANIFEST, "<html>"), "invalid character '<' looking for beginning of value");
    }
}
