//! `spec.tags`: what a tag is wanted to be.

use std::collections::BTreeMap;

use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

use super::{child, collapse, drop_provisional, list, list_mut, prune_text, put, remove, text};

/// A spec tag's kind of source that is a pull spec.
pub const DOCKER_IMAGE: &str = "DockerImage";
/// A spec tag's kind of source that is another tag.
pub const STREAM_TAG: &str = "ImageStreamTag";
/// A spec tag's kind of source that is an image in a stream.
pub const STREAM_IMAGE: &str = "ImageStreamImage";

/// Fields of `from`, which Go leaves out when they are empty.
const FROM: [&str; 7] = ["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"];

/// A borrowed reading of one spec tag; a field of a wrong type reads as absent.
#[derive(Clone, Copy, Debug)]
pub struct TagReference<'a>(pub &'a Value);

impl<'a> TagReference<'a> {
    /// The tag's name.
    #[must_use]
    pub fn name(self) -> &'a str {
        text(self.0, "name")
    }

    /// Where the tag points to, when it points anywhere.
    #[must_use]
    pub fn from(self) -> Option<Source<'a>> {
        self.0.get("from").filter(|from| from.is_object()).map(Source)
    }

    /// Whether the pull spec is only noted and never imported.
    #[must_use]
    pub fn is_reference(self) -> bool {
        self.0.get("reference").and_then(Value::as_bool) == Some(true)
    }

    /// The generation of the stream that set the tag; 0 asks for an import.
    #[must_use]
    pub fn generation(self) -> Option<i64> {
        self.0.get("generation").and_then(Value::as_i64)
    }

    /// `importPolicy.importMode`.
    #[must_use]
    pub fn import_mode(self) -> &'a str {
        self.0.get("importPolicy").map_or("", |policy| text(policy, "importMode"))
    }

    /// `importPolicy.insecure`.
    #[must_use]
    pub fn is_insecure(self) -> bool {
        self.policy("insecure")
    }

    /// `importPolicy.scheduled`.
    #[must_use]
    pub fn is_scheduled(self) -> bool {
        self.policy("scheduled")
    }

    /// `referencePolicy.type`.
    #[must_use]
    pub fn reference_policy(self) -> &'a str {
        self.0.get("referencePolicy").map_or("", |policy| text(policy, "type"))
    }

    /// Whether the tag is resolved by an import: a pull spec that is more than noted.
    #[must_use]
    pub fn is_imported(self) -> bool {
        !self.is_reference()
            && self.from().is_some_and(|from| from.kind() == DOCKER_IMAGE && !from.name().is_empty())
    }

    /// Whether `next` asks for something else than this one did, so that the tag has to be resolved again. A changed
    /// kind alone does not count, as upstream.
    #[must_use]
    pub fn changed(old: Option<Self>, next: Self, namespace: &str) -> bool {
        let Some(from) = next.from() else { return old.is_none() };
        let Some(old) = old else { return true };
        if from.kind().is_empty() && from.name().is_empty() {
            return false;
        }
        let (had_name, had_namespace) =
            old.from().map_or(("", namespace), |from| (from.name(), from.namespace_or(namespace)));
        had_namespace != from.namespace_or(namespace)
            || had_name != from.name()
            || old.is_reference() != next.is_reference()
            || old.import_mode() != next.import_mode()
            || matches!((old.generation(), next.generation()), (Some(had), Some(0)) if had != 0)
    }

    fn policy(self, field: &str) -> bool {
        self.0.get("importPolicy").and_then(|policy| policy.get(field)).and_then(Value::as_bool) == Some(true)
    }
}

/// `from` of a spec tag.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(pub &'a Value);

impl<'a> Source<'a> {
    /// [`DOCKER_IMAGE`], [`STREAM_TAG`], [`STREAM_IMAGE`], or something that validation refuses.
    #[must_use]
    pub fn kind(self) -> &'a str {
        text(self.0, "kind")
    }

    /// Pull spec, `tag`, `stream:tag` or `stream@id`.
    #[must_use]
    pub fn name(self) -> &'a str {
        text(self.0, "name")
    }

    /// The namespace as given; empty for the stream's own.
    #[must_use]
    pub fn namespace(self) -> &'a str {
        text(self.0, "namespace")
    }

    /// The namespace, the stream's own where none is given.
    #[must_use]
    pub fn namespace_or(self, own: &'a str) -> &'a str {
        if self.namespace().is_empty() { own } else { self.namespace() }
    }

    /// Stream and tag or id that an [`STREAM_TAG`] or [`STREAM_IMAGE`] names; the stream is `own` where none is
    /// named. `None` for other kinds and for names of another form.
    #[must_use]
    pub fn stream_and_rest(self, own: &'a str) -> Option<(&'a str, &'a str)> {
        let separator = match self.kind() {
            STREAM_TAG => ':',
            STREAM_IMAGE => '@',
            _ => return None,
        };
        let mut parts = self.name().split(separator);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(only), None, None) => Some((own, only)),
            (Some(stream), Some(rest), None) => Some((stream, rest)),
            _ => None,
        }
    }
}

/// All spec tags by name.
#[must_use]
pub fn spec_tags(stream: &Object) -> BTreeMap<&str, TagReference<'_>> {
    list(stream, "spec").iter().map(|tag| (text(tag, "name"), TagReference(tag))).collect()
}

/// The spec tag of a name.
#[must_use]
pub fn spec_tag<'a>(stream: &'a Object, name: &str) -> Option<TagReference<'a>> {
    list(stream, "spec").iter().rev().find(|tag| text(tag, "name") == name).map(TagReference)
}

/// Sets a spec tag by its `name`, in place of the one that it had; what Go would add is added. A provisional event of
/// what the tag pointed to before goes.
pub fn set_spec_tag(stream: &mut Object, mut tag: Value) {
    complete(&mut tag);
    if let Some(old) = spec_tag(stream, text(&tag, "name")).map(|old| old.0.clone())
        && old.get("from") != tag.get("from")
    {
        drop_provisional(stream, text(&tag, "name"), TagReference(&old));
    }
    put(list_mut(stream, "spec"), "name", tag);
}

/// Removes a spec tag; answers whether it was there. Its status stays, but for a provisional event.
pub fn remove_spec_tag(stream: &mut Object, name: &str) -> bool {
    if let Some(old) = spec_tag(stream, name).map(|old| old.0.clone()) {
        drop_provisional(stream, name, TagReference(&old));
    }
    remove(stream, "spec", "name", name)
}

/// Sets one field of the spec tag `name`, where there is one.
pub fn set_spec_tag_field(stream: &mut Object, name: &str, field: &str, value: Value) {
    let Some(Value::Array(list)) = stream.object_mut("spec").get_mut("tags") else { return };
    if let Some(Value::Object(tag)) = list.iter_mut().find(|tag| text(tag, "name") == name) {
        tag.insert(field.to_owned(), value);
    }
}

/// Makes `spec.tags` of a decoded stream canonical.
pub(super) fn normalise(spec: &mut Map<String, Value>) {
    match spec.get_mut("tags") {
        Some(Value::Array(tags)) if !tags.is_empty() => {
            tags.iter_mut().for_each(complete);
            collapse(tags, "name");
        }
        _ => {
            spec.remove("tags");
        }
    }
}

/// Adds to a spec tag what Go's encoding always has, and the defaults of the policies.
pub fn complete(tag: &mut Value) {
    let Value::Object(tag) = tag else { return };
    tag.entry("name").or_insert_with(|| json!(""));
    tag.entry("annotations").or_insert(Value::Null);
    tag.entry("generation").or_insert(Value::Null);
    if tag.get("reference").and_then(Value::as_bool) == Some(false) {
        tag.remove("reference");
    }
    match tag.get_mut("from") {
        Some(Value::Object(from)) => FROM.iter().for_each(|field| prune_text(from, field)),
        Some(Value::Null) => {
            tag.remove("from");
        }
        _ => {}
    }
    let policy = child(tag, "importPolicy");
    for field in ["insecure", "scheduled"] {
        if policy.get(field).and_then(Value::as_bool) == Some(false) {
            policy.remove(field);
        }
    }
    default_text(policy, "importMode", "Legacy");
    default_text(child(tag, "referencePolicy"), "type", "Source");
}

fn default_text(map: &mut Map<String, Value>, field: &str, default: &str) {
    prune_text(map, field);
    map.entry(field).or_insert_with(|| json!(default));
}
