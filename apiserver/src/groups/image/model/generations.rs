//! Generations: which change of the spec a tag and its events belong to. An importer works by them: a spec tag whose
//! generation is newer than its newest event waits for an import, and setting it to 0 asks for one.

use picoshift_machinery::Object;
use serde_json::Value;

use super::spec_tags::{TagReference, set_spec_tag_field, spec_tag, spec_tags};
use super::status_tags::{items, set_latest_generation, status_tags};
use super::{Event, text};

/// Generation 1 for a new stream and all its spec tags.
pub fn begin(stream: &mut Object) {
    stream.set_metadata("generation", 1);
    for name in names(stream) {
        set_spec_tag_field(stream, &name, "generation", 1.into());
    }
}

/// Generations of an updated stream. A client may leave a tag's generation or set it to 0, nothing else; a changed
/// spec counts the stream's generation up, and tags that changed get it.
pub fn advance(stream: &mut Object, old: &Object) {
    for name in names(stream) {
        let Some(had) = spec_tag(old, &name) else { continue };
        if spec_tag(stream, &name).and_then(TagReference::generation) != Some(0) {
            let kept = had.generation().map_or(Value::Null, Value::from);
            set_spec_tag_field(stream, &name, "generation", kept);
        }
    }
    let before = old.generation().unwrap_or(0);
    let changed = stream.0.get("spec") != old.0.get("spec") || before == 0;
    let generation = if changed { before + 1 } else { before };
    stream.set_metadata("generation", generation);
    let namespace = stream.namespace().to_owned();
    for name in names(stream) {
        let Some(tag) = spec_tag(stream, &name) else { continue };
        let had = spec_tag(old, &name);
        let settled = had.is_some() && !TagReference::changed(had, tag, &namespace);
        if settled && tag.generation().is_some_and(|generation| generation != 0) {
            continue;
        }
        set_spec_tag_field(stream, &name, "generation", generation.into());
    }
}

/// Gives the newest event of each tag a generation where a writer of the status left it 0: the spec tag's where the
/// event is new, else the stream's.
pub fn observe(stream: &mut Object, old: &Object) {
    let own = stream.generation().unwrap_or(0);
    let mut missing: Vec<(String, i64)> = Vec::new();
    for entry in status_tags(stream) {
        let tag = text(entry, "tag");
        let Some(newest) = items(entry).first().map(Event::read) else { continue };
        if newest.generation != 0 {
            continue;
        }
        let changed = super::latest_event(old, tag)
            .is_some_and(|before| !before.means(&newest) || before.generation > newest.generation);
        let of_spec = spec_tag(stream, tag).and_then(TagReference::generation);
        missing.push((tag.to_owned(), of_spec.filter(|_| changed).unwrap_or(own)));
    }
    for (tag, generation) in missing {
        set_latest_generation(stream, &tag, generation);
    }
}

fn names(stream: &Object) -> Vec<String> {
    spec_tags(stream).into_keys().map(str::to_owned).collect()
}
