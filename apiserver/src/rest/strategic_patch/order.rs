//! The order of merged lists: what the patch names is in the patch's order, what only the server has keeps its own, and
//! the two are put into each other.

mod stable;

use std::collections::HashMap;

use serde_json::Value;

use super::lists::no_merge_key;
use super::merge::DIRECTIVE;
use super::{PatchError, go_text};

/// How items of a list are known.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) merge_key: &'a str,
    pub(super) are_maps: bool,
}

impl Known<'_> {
    /// What two equal items have in common.
    fn identity(self, item: &Value) -> String {
        let identity = if self.are_maps { item.get(self.merge_key).unwrap_or(&Value::Null) } else { item };
        identity.to_string()
    }

    /// First places of the items of a list.
    fn places(self, list: &[Value]) -> HashMap<String, usize> {
        let mut places = HashMap::with_capacity(list.len());
        for (at, item) in list.iter().enumerate() {
            places.entry(self.identity(item)).or_insert(at);
        }
        places
    }
}

/// Whether the items of the patch are in the order that it says: all of them, but those that are deleted.
pub(super) fn check(patch: &[Value], wanted: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if wanted.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let kept = if merge_key.is_empty() { patch.iter().collect() } else { split_deletions(patch.iter())?.0 };
    let (mut at, mut in_wanted) = (0, 0);
    while let (Some(item), Some(other)) = (kept.get(at), wanted.get(in_wanted)) {
        if item.get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        if is_same(item, other, merge_key)? {
            at += 1;
        }
        in_wanted += 1;
    }
    if at < kept.len() && in_wanted >= wanted.len() {
        let (patch, wanted) = (go_text::list(patch), go_text::list(wanted));
        return Err(PatchError::Other(format!(
            "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{wanted}\n"
        )));
    }
    Ok(())
}

fn is_same(left: &Value, right: &Value, merge_key: &str) -> Result<bool, PatchError> {
    if merge_key.is_empty() {
        return match (left, right) {
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => {
                Err(PatchError::Panic)
            }
            (left, right) => Ok(left == right),
        };
    }
    let key = |item| {
        as_map(item)?;
        Value::get(item, merge_key).ok_or_else(|| no_merge_key(item, merge_key))
    };
    as_map(left)?;
    as_map(right)?;
    Ok(key(left)? == key(right)?)
}

fn as_map(item: &Value) -> Result<(), PatchError> {
    if item.is_object() {
        return Ok(());
    }
    let found = go_text::r#type(item);
    Err(PatchError::Other(format!("expected a map[string]interface {{}}, but received a {found}")))
}

/// Items that stay, and items with `$patch: delete`.
fn split_deletions<'v>(
    items: impl Iterator<Item = &'v Value>,
) -> Result<(Vec<&'v Value>, Vec<&'v Value>), PatchError> {
    let (mut kept, mut deleted) = (Vec::new(), Vec::new());
    for item in items {
        as_map(item)?;
        let list =
            if item.get(DIRECTIVE).is_some_and(|word| word == "delete") { &mut deleted } else { &mut kept };
        list.push(item);
    }
    Ok((kept, deleted))
}

/// Items that are in `by`, and items that are not.
pub(super) fn partition(
    list: Vec<Value>,
    by: &[Value],
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let are_maps = !merge_key.is_empty();
    let known = Known { merge_key, are_maps };
    if !are_maps && by.iter().chain(&list).any(|item| item.is_object() || item.is_array()) {
        return Err(PatchError::Panic);
    }
    let mut places = HashMap::new();
    // An item without the key is found by none.
    for (at, item) in by.iter().enumerate().filter(|(_, item)| !are_maps || item.get(merge_key).is_some()) {
        places.entry(known.identity(item)).or_insert(at);
    }
    let stranger = by.iter().position(|item| are_maps && !item.is_object());
    let (mut found, mut other) = (Vec::new(), Vec::new());
    for item in list {
        if are_maps {
            as_map(&item)?;
            item.get(merge_key).ok_or_else(|| no_merge_key(&item, merge_key))?;
        }
        let place = places.get(&known.identity(&item));
        match stranger {
            Some(at) if place.is_none_or(|place| *place > at) => {
                return Err(PatchError::Other(format!("value for key {at} is not a map")));
            }
            _ => if place.is_some() { &mut found } else { &mut other }.push(item),
        }
    }
    Ok((found, other))
}

/// Sorts what the patch names by the patch's order and what only the server has by the live order, and puts the two into
/// each other.
pub(super) fn normalize(
    of_patch: Vec<Value>,
    of_server: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    known: Known<'_>,
) -> Result<Vec<Value>, PatchError> {
    let of_patch = sort(of_patch, wanted, known)?;
    let of_server = sort(of_server, live, known)?;
    let places = known.places(live);
    let place = |item: &Value| places.get(&known.identity(item)).copied();
    let mut out = Vec::with_capacity(of_patch.len() + of_server.len());
    let mut of_server = of_server.into_iter().peekable();
    for item in of_patch {
        let at = place(&item);
        while let Some(other) = of_server.peek() {
            match (place(other), at) {
                (Some(left), Some(right)) if left < right => out.extend(of_server.next()),
                _ => break,
            }
        }
        out.push(item);
    }
    out.extend(of_server);
    Ok(out)
}

fn sort(list: Vec<Value>, order: &[Value], known: Known<'_>) -> Result<Vec<Value>, PatchError> {
    let mut deleted = Vec::new();
    let mut kept = list;
    if known.are_maps {
        for item in kept.iter().chain(order) {
            as_map(item)?;
            item.get(known.merge_key).ok_or_else(|| no_merge_key(item, known.merge_key))?;
        }
        let is_deleted = |item: &Value| item.get(DIRECTIVE).is_some_and(|word| word == "delete");
        (deleted, kept) = kept.into_iter().partition(is_deleted);
    }
    let places = known.places(order);
    let mut placed: Vec<(Option<usize>, Value)> =
        kept.into_iter().map(|item| (places.get(&known.identity(&item)).copied(), item)).collect();
    stable::sort(&mut placed, &|left, right| match (left.0, right.0) {
        (Some(left), Some(right)) => left < right,
        // Upstream's comparison is none there; its sort goes through with it all the same.
        _ => true,
    });
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}
