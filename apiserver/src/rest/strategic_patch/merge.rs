//! Merges a patch into an object, level by level.

use serde_json::{Map, Value};

use super::order::{self, Known};
use super::{PatchError, go_text, lists};
use crate::schema::patch_meta::PatchMeta;

/// Directive of a whole object or of an item.
pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Most comparisons of items in one patch.
const WORK_MAX: usize = 20_000_000;

type Members = Map<String, Value>;

/// One run of a patch.
#[derive(Default)]
pub(super) struct Merge {
    work: usize,
}

impl Merge {
    /// Counts comparisons.
    pub(super) fn spend(&mut self, comparisons: usize) -> Result<(), PatchError> {
        self.work = self.work.saturating_add(comparisons);
        if self.work > WORK_MAX { Err(PatchError::TooMuchWork) } else { Ok(()) }
    }

    /// The object that the patch makes of `original`. Directives that were followed are taken out of the patch.
    pub(super) fn map(
        &mut self,
        mut original: Members,
        patch: &mut Members,
        meta: PatchMeta<'_>,
    ) -> Result<Members, PatchError> {
        match patch.get(DIRECTIVE).cloned() {
            None => {}
            Some(Value::String(word)) if word == "replace" => {
                patch.remove(DIRECTIVE);
                return Ok(patch.clone());
            }
            Some(Value::String(word)) if word == "delete" => return Ok(Members::new()),
            Some(other) => return Err(unknown_directive(&other, patch)),
        }
        retain_keys(&mut original, patch)?;
        for key in keys(patch).filter(|key| key.starts_with(ELEMENT_ORDER)) {
            self.ordered_list(&key, &mut original, patch, meta)?;
        }
        for key in keys(patch) {
            self.member(&key, &mut original, patch, meta)?;
        }
        Ok(original)
    }

    fn member(
        &mut self,
        key: &str,
        original: &mut Members,
        patch: &mut Members,
        meta: PatchMeta<'_>,
    ) -> Result<(), PatchError> {
        let deletes = key.starts_with(DELETE_FROM_LIST);
        let name = if deletes { listed(key, DELETE_FROM_LIST, PatchError::PrimitiveList)? } else { key };
        let Some(patched) = patch.get_mut(key) else { return Ok(()) };
        if patched.is_null() {
            original.remove(name);
            return Ok(());
        }
        let merged = match (original.get_mut(name), &mut *patched) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let (inner, tags) = meta.field(name).map_err(PatchError::Other)?;
                if tags.strategy().map_err(PatchError::Other)? == "replace" {
                    new.clone().into()
                } else {
                    self.map(std::mem::take(old), new, inner)?.into()
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let (inner, tags) = meta.items(name).map_err(PatchError::Other)?;
                if deletes || tags.strategy().map_err(PatchError::Other)? == "merge" {
                    self.list(std::mem::take(old), new, inner, tags.merge_key(), deletes)?.merged.into()
                } else {
                    new.clone().into()
                }
            }
            _ if deletes => return Ok(()),
            (old, new) => {
                let same_type = old.is_some_and(|old| go_text::r#type(old) == go_text::r#type(new));
                // Nulls in what was not there before say nothing.
                if !same_type {
                    discard_nulls(new);
                }
                match without_directives(new) {
                    Some(value) => value,
                    None => {
                        original.remove(name);
                        return Ok(());
                    }
                }
            }
        };
        original.insert(name.to_owned(), merged);
        Ok(())
    }

    /// Follows `$setElementOrder/NAME`: merges the list, and puts it in the order that the patch says.
    fn ordered_list(
        &mut self,
        key: &str,
        original: &mut Members,
        patch: &mut Members,
        meta: PatchMeta<'_>,
    ) -> Result<(), PatchError> {
        let wanted = match patch.remove(key) {
            Some(Value::Array(wanted)) => wanted,
            other => return Err(bad_list(&other.unwrap_or_default())),
        };
        let name = listed(key, ELEMENT_ORDER, PatchError::SetElementOrder)?;
        let old = original.get(name).map(as_list).transpose()?;
        let new = patch.get(name).map(as_list).transpose()?;
        let (inner, tags) = meta.items(name).map_err(PatchError::Other)?;
        let strategy = tags.strategy().map_err(PatchError::Other)?;
        let merge_key = tags.merge_key();
        order::check(new.unwrap_or_default(), &wanted, merge_key)?;
        let kind = |old: &[Value], new: &[Value]| lists::element_kind(&[old, new]);
        let (merged, live, are_maps) = match (old, new) {
            (None, None) => return Ok(()),
            (Some(old), None) => (old.to_vec(), old.to_vec(), kind(old, &[])),
            (None, Some(new)) => {
                let kept = new.iter().cloned().filter_map(|mut item| without_directives(&mut item)).collect();
                (kept, Vec::new(), kind(&[], new))
            }
            (Some(old), Some(new)) if strategy == "merge" => {
                let (old, mut new) = (old.to_vec(), new.to_vec());
                let are_maps = kind(&old, &new);
                let list = self.list(old, &mut new, inner, merge_key, false)?;
                (list.merged, list.live, are_maps)
            }
            (Some(old), Some(new)) => (new.to_vec(), old.to_vec(), kind(old, new)),
        };
        let (of_patch, of_server) = order::partition(merged, &wanted, merge_key)?;
        let known = Known { merge_key, are_maps: are_maps? };
        let ordered = order::normalize(of_patch, of_server, &wanted, &live, known)?;
        original.insert(name.to_owned(), ordered.into());
        patch.remove(name);
        Ok(())
    }
}

fn keys(map: &Members) -> impl Iterator<Item = String> + use<> {
    map.keys().cloned().collect::<Vec<_>>().into_iter()
}

/// `NAME` of `$directive/NAME`.
fn listed<'k>(key: &'k str, prefix: &str, error: PatchError) -> Result<&'k str, PatchError> {
    key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or(error)
}

fn as_list(value: &Value) -> Result<&[Value], PatchError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| bad_list(value))
}

fn bad_list(value: &Value) -> PatchError {
    PatchError::Other(format!("expected a []interface {{}}, but received a {}", go_text::r#type(value)))
}

/// A directive that is not there.
pub(super) fn unknown_directive(directive: &Value, map: &Members) -> PatchError {
    let (directive, map) = (go_text::string(directive), go_text::map(map));
    PatchError::Other(format!("unknown patch type: {directive} in map: {map}"))
}

/// Follows `$retainKeys`: all else goes, and the patch may set nothing else.
fn retain_keys(original: &mut Members, patch: &mut Members) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(PatchError::RetainKeys) };
    let retained: std::collections::HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, v)| !v.is_null() && !is_directive(key) && !retained.contains(key.as_str())) {
        return Err(PatchError::RetainKeys);
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// Takes nulls out of objects, at any depth.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A value that is new, without what has a directive in it; `None` where that is the value itself. The patch keeps what
/// upstream's keeps.
fn without_directives(value: &mut Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            if map.contains_key(DIRECTIVE) {
                return None;
            }
            for key in keys(map) {
                match map.get_mut(&key).and_then(without_directives) {
                    Some(kept) => map.insert(key, kept),
                    None => map.remove(&key),
                };
            }
            Some(map.clone().into())
        }
        Value::Array(list) => Some(list.iter_mut().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}
