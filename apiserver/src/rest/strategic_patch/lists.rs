//! Merges lists: of objects by their merge key, of scalars as sets.

use std::collections::HashSet;

use serde_json::Value;

use super::merge::{DIRECTIVE, Merge, unknown_directive};
use super::order::{self, Known};
use super::{PatchError, go_text};
use crate::schema::patch_meta::PatchMeta;

/// A merged list.
pub(super) struct Merged {
    pub(super) merged: Vec<Value>,
    /// The live list, as far as the order of what only the server has goes: upstream appends in place, so new items may
    /// stand where deleted ones were.
    pub(super) live: Vec<Value>,
}

impl Merge {
    /// Merges two lists, or (`deletes`) takes the patch's scalars out of the other.
    pub(super) fn list(
        &mut self,
        original: Vec<Value>,
        patch: &mut [Value],
        meta: PatchMeta<'_>,
        merge_key: &str,
        deletes: bool,
    ) -> Result<Merged, PatchError> {
        if original.is_empty() && patch.is_empty() {
            return Ok(Merged { merged: Vec::new(), live: Vec::new() });
        }
        let are_maps = element_kind(&[&original, patch])?;
        let known = Known { merge_key, are_maps };
        if !are_maps {
            let live = original.clone();
            if deletes {
                return Ok(Merged { merged: without(original, patch), live });
            }
            let (length, both) = (original.len(), [original, patch.to_vec()].concat());
            // Where upstream's list has room for the new items it is changed in place, and its order with it.
            let in_place = both.len() <= length.next_power_of_two();
            let merged = self.unique(both)?;
            let live = if in_place { merged.iter().take(length).cloned().collect() } else { live };
            let (of_patch, of_server) = order::partition(merged, patch, merge_key)?;
            let merged = order::normalize(of_patch, of_server, patch, &live, known)?;
            return Ok(Merged { merged, live });
        }
        if merge_key.is_empty() {
            let name = meta.kind();
            return Err(PatchError::Other(format!("cannot merge lists without merge key for {name}")));
        }
        let before = original.clone();
        let (original, plain) = self.follow_directives(original, patch, merge_key)?;
        let (merged, plain, live) = match plain {
            // The patch replaces the list.
            None => (original.clone(), Vec::new(), before),
            Some(mut plain) => {
                let merged = self.merge_items(original.clone(), &mut plain, meta, merge_key)?;
                let live = merged.iter().take(before.len()).cloned().collect();
                (merged, plain, live)
            }
        };
        let (of_patch, of_server) = order::partition(merged, &plain, merge_key)?;
        let merged = order::normalize(of_patch, of_server, &plain, &original, known)?;
        Ok(Merged { merged, live })
    }

    /// Items of the patch with `$patch`. Answers the list without what they delete and the other items of the patch; no
    /// such items where the patch replaces the list.
    fn follow_directives(
        &mut self,
        mut original: Vec<Value>,
        patch: &[Value],
        merge_key: &str,
    ) -> Result<(Vec<Value>, Option<Vec<Value>>), PatchError> {
        let mut plain = Vec::new();
        let mut replaces = false;
        for item in patch {
            let Some(map) = item.as_object() else { continue };
            match map.get(DIRECTIVE) {
                None => plain.push(item.clone()),
                Some(Value::String(word)) if word == "delete" => {
                    let key = map.get(merge_key).ok_or_else(|| no_merge_key(item, merge_key))?;
                    self.spend(original.len())?;
                    original.retain(|item| item.get(merge_key) != Some(key));
                }
                Some(Value::String(word)) if word == "replace" => replaces = true,
                Some(Value::String(word)) if word == "merge" => {
                    let text = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Other(text.to_owned()));
                }
                Some(other) => return Err(unknown_directive(other, map)),
            }
        }
        Ok(if replaces { (plain, None) } else { (original, Some(plain)) })
    }

    fn merge_items(
        &mut self,
        mut original: Vec<Value>,
        patch: &mut [Value],
        meta: PatchMeta<'_>,
        merge_key: &str,
    ) -> Result<Vec<Value>, PatchError> {
        for item in patch {
            let key = item.get(merge_key).ok_or_else(|| no_merge_key(item, merge_key))?;
            self.spend(original.len())?;
            let found = original.iter_mut().find(|old| old.get(merge_key) == Some(key));
            match (found, item) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    *old = self.map(std::mem::take(old), new, meta)?;
                }
                (_, item) => original.push(item.clone()),
            }
        }
        Ok(original)
    }

    /// Each scalar once; the last one takes the place of one that was there before, as upstream has it.
    fn unique(&mut self, mut list: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        let mut at = 0;
        while at < list.len() {
            self.spend(list.len() - at)?;
            let mut other = at + 1;
            while other < list.len() {
                if list[at] == list[other] {
                    list.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
        Ok(list)
    }
}

/// The list without scalars that are in the other.
fn without(list: Vec<Value>, other: &[Value]) -> Vec<Value> {
    let gone: HashSet<String> = other.iter().map(Value::to_string).collect();
    list.into_iter().filter(|item| !gone.contains(&item.to_string())).collect()
}

/// Whether all items are objects, or else all of one other type.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<bool, PatchError> {
    let mut items = lists.iter().flat_map(|list| list.iter());
    let other = |text: &str| Err(PatchError::Other(text.to_owned()));
    let Some(first) = items.next() else { return other("no elements in any of the given slices") };
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    if first.is_null() {
        return Err(PatchError::Panic);
    }
    if items.any(|item| go_text::r#type(item) != go_text::r#type(first)) {
        let lists: Vec<String> = lists.iter().map(|list| go_text::list(list)).collect();
        return other(&format!("list element types are not identical: [{}]", lists.join(" ")));
    }
    Ok(first.is_object())
}

/// An item that lacks its merge key.
pub(super) fn no_merge_key(item: &Value, merge_key: &str) -> PatchError {
    let map = go_text::value(item);
    PatchError::Other(format!("map: {map} does not contain declared merge key: {merge_key}"))
}
