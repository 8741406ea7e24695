//! Names of image streams, and those that name a tag (`stream:tag`) or an image (`stream@id`) of one.
//!
//! Behaviour: `openshift/library-go/pkg/image/imageutil`, `openshift-apiserver/pkg/image/apis/image/validation`.

use picoshift_machinery::field_error::quote;
use picoshift_machinery::names::path_segment;

use super::reference::DEFAULT_TAG;

/// The rule of a stream's name, as the message shows it.
const STREAM_NAME_PATTERN: &str = "[a-z0-9]+(?:[._-][a-z0-9]+)*";

/// Why a text names no tag or no image of a stream; the texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A tag was meant, an image is named.
    #[error("{} is an image stream image, not an image stream tag", quote(.0))]
    ImageInsteadOfTag(String),
    /// A tag's name with an empty side.
    #[error("image stream tag name {} must have a name and a tag", quote(.0))]
    EmptyTagSide(String),
    /// No colon or several.
    #[error("expected exactly one : delimiter in the istag {}", quote(.0))]
    Colons(String),
    /// An image's name with an empty side.
    #[error("image stream image name {} must have a name and ID", quote(.0))]
    EmptyImageSide(String),
    /// No `@` or several.
    #[error("expected exactly one @ in the isimage name {}", quote(.0))]
    Ats(String),
}

/// What is wrong with a stream's name.
#[must_use]
pub fn stream_name(name: &str, _prefix: bool) -> Vec<String> {
    let errors = path_segment(name);
    if !errors.is_empty() {
        return errors;
    }
    let filled =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if name.split(['.', '_', '-']).all(filled) {
        return Vec::new();
    }
    vec![format!("must match {}", quote(STREAM_NAME_PATTERN))]
}

/// Stream and tag of `stream:tag`, strictly: exactly one colon, no `@`, both sides filled.
///
/// # Errors
/// What is wrong.
pub fn parse_stream_tag(name: &str) -> Result<(&str, &str), NameError> {
    if name.contains('@') {
        return Err(NameError::ImageInsteadOfTag(name.to_owned()));
    }
    match name.split_once(':') {
        Some((_, tag)) if tag.contains(':') => Err(NameError::Colons(name.to_owned())),
        Some((stream, tag)) if stream.is_empty() || tag.is_empty() => {
            Err(NameError::EmptyTagSide(name.to_owned()))
        }
        Some(found) => Ok(found),
        None => Err(NameError::Colons(name.to_owned())),
    }
}

/// Stream and image of `stream@id`, strictly: exactly one `@`, both sides filled.
///
/// # Errors
/// What is wrong.
pub fn parse_stream_image(name: &str) -> Result<(&str, &str), NameError> {
    match name.split_once('@') {
        Some((_, id)) if id.contains('@') => Err(NameError::Ats(name.to_owned())),
        Some((stream, id)) if stream.is_empty() || id.is_empty() => {
            Err(NameError::EmptyImageSide(name.to_owned()))
        }
        Some(found) => Ok(found),
        None => Err(NameError::Ats(name.to_owned())),
    }
}

/// Stream and tag at the first colon, loosely; an empty tag is `latest`. `None` where there is no colon.
#[must_use]
pub fn split_stream_tag(name: &str) -> Option<(&str, &str)> {
    let (stream, tag) = name.split_once(':')?;
    Some((stream, if tag.is_empty() { DEFAULT_TAG } else { tag }))
}

/// Stream and image at the first `@`, loosely. `None` where there is no `@`.
#[must_use]
pub fn split_stream_image(name: &str) -> Option<(&str, &str)> {
    name.split_once('@')
}

/// `stream:tag`; an empty tag is `latest`.
#[must_use]
pub fn join_stream_tag(stream: &str, tag: &str) -> String {
    let tag = if tag.is_empty() { DEFAULT_TAG } else { tag };
    format!("{stream}:{tag}")
}

/// `stream@id`.
#[must_use]
pub fn join_stream_image(stream: &str, id: &str) -> String {
    format!("{stream}@{id}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn text<T: std::fmt::Debug>(found: Result<T, NameError>) -> String {
        found.unwrap_err().to_string()
    }

    #[test]
    fn stream_names_are_as_recorded() {
        assert!(stream_name("app", false).is_empty());
        assert_eq!(stream_name("Bad_Name", false), [r#"must match "[a-z0-9]+(?:[._-][a-z0-9]+)*""#]);
        assert_eq!(stream_name("aaaa/bbbb", false), ["may not contain '/'"]);
        assert_eq!(stream_name("..", false), ["may not be '..'"]);
        assert_eq!(stream_name("a:b", false).len(), 1);
    }

    #[test]
    fn tags_and_images_of_a_stream() {
        assert_eq!(parse_stream_tag("app:1.0"), Ok(("app", "1.0")));
        assert_eq!(text(parse_stream_tag("app")), r#"expected exactly one : delimiter in the istag "app""#);
        assert_eq!(
            text(parse_stream_tag("a:b:c")),
            r#"expected exactly one : delimiter in the istag "a:b:c""#
        );
        assert_eq!(text(parse_stream_tag("a:")), r#"image stream tag name "a:" must have a name and a tag"#);
        assert_eq!(
            text(parse_stream_tag("a@b")),
            r#""a@b" is an image stream image, not an image stream tag"#
        );
        assert_eq!(parse_stream_image("app@sha256:1"), Ok(("app", "sha256:1")));
        assert_eq!(text(parse_stream_image("app")), r#"expected exactly one @ in the isimage name "app""#);
        assert_eq!(
            text(parse_stream_image("a@b@c")),
            r#"expected exactly one @ in the isimage name "a@b@c""#
        );
        assert_eq!(text(parse_stream_image("@b")), r#"image stream image name "@b" must have a name and ID"#);
        assert_eq!(split_stream_tag("a:"), Some(("a", "latest")));
        assert_eq!(split_stream_tag("a:b:c"), Some(("a", "b:c")));
        assert_eq!(split_stream_tag("a"), None);
        assert_eq!(split_stream_image("a@b"), Some(("a", "b")));
        assert_eq!(join_stream_tag("a", ""), "a:latest");
    }

    proptest! {
        #[test]
        fn stream_names_follow_the_pattern(name in "[a-zA-Z0-9._:-]{0,12}") {
            let pattern = Regex::new(&format!("^{STREAM_NAME_PATTERN}$")).unwrap();
            let good = name != "." && name != ".." && pattern.is_match(&name);
            prop_assert_eq!(stream_name(&name, false).is_empty(), good);
        }

        #[test]
        fn joined_names_split_again(stream in "[a-z0-9]{1,5}", tag in "[a-zA-Z0-9._-]{1,5}") {
            let joined = join_stream_tag(&stream, &tag);
            prop_assert_eq!(parse_stream_tag(&joined), Ok((stream.as_str(), tag.as_str())));
            let joined = join_stream_image(&stream, &tag);
            prop_assert_eq!(parse_stream_image(&joined), Ok((stream.as_str(), tag.as_str())));
        }
    }
}
