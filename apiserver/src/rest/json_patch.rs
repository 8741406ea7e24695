//! JSON patches (RFC 6902) as `evanphx/json-patch` v4 applies them, which is what Kubernetes does: a field that is missing can be
//! replaced, copied and tested for null, and what stands before the first slash of a path counts for nothing.

use serde_json::Value;

/// How many items of lists the operations of a patch may move. Each operation at the begin of a long list moves all of
/// it, and a body has room for a long list and ten thousand of them.
const MOVED_MAX: usize = 50_000_000;

/// An operation as it was sent.
#[derive(Clone, Debug)]
pub struct Operation(Value);

/// Why a patch does not apply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// An operation does not fit the object, or is none.
    Unfit(String),
    /// The copies of the patch are larger than this many bytes together.
    Large(usize),
    /// The patch moves too many items.
    TooMuchWork,
}

/// What the operations of a patch have cost so far.
#[derive(Default)]
struct Work {
    copied: usize,
    moved: usize,
}

impl Work {
    /// Counts the items of a list behind the one that comes or goes.
    fn moves(&mut self, items: usize) -> Result<(), Failure> {
        self.moved = self.moved.saturating_add(items);
        if self.moved > MOVED_MAX { Err(Failure::TooMuchWork) } else { Ok(()) }
    }
}

impl Operation {
    /// Reads the operations of a patch; `null` has none.
    pub(super) fn read(patch: Value) -> Vec<Self> {
        match patch {
            Value::Array(operations) => operations.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    fn text(&self, field: &str) -> Result<&str, Failure> {
        let value = self.0.get(field).and_then(Value::as_str);
        value.ok_or_else(|| Failure::Unfit(format!("an operation without {field}")))
    }

    /// The path that it writes to or tests, empty where it has none.
    pub(super) fn path(&self) -> &str {
        self.text("path").unwrap_or_default()
    }

    fn value(&self) -> Value {
        self.0.get("value").cloned().unwrap_or_default()
    }

    /// Applies it; `work` adds up what copies took, up to `limit`, and what was moved.
    fn apply(&self, document: &mut Value, work: &mut Work, limit: usize) -> Result<(), Failure> {
        match self.text("op")? {
            "add" => place(document, self.text("path")?)?.add(self.value(), work),
            "remove" => place(document, self.text("path")?)?.remove(work).map(drop),
            "replace" => match self.text("path")? {
                "" => {
                    *document = self.value();
                    Ok(())
                }
                path => place(document, path)?.replace(self.value()),
            },
            "move" => {
                let value = place(document, self.text("from")?)?.remove(work)?;
                place(document, self.text("path")?)?.add(value, work)
            }
            "copy" => {
                let from = place(document, self.text("from")?)?.get()?.cloned();
                let size = from.as_ref().map_or(0, |value| value.to_string().len());
                work.copied = work.copied.saturating_add(size);
                if work.copied > limit {
                    return Err(Failure::Large(limit));
                }
                place(document, self.text("path")?)?.add(from.unwrap_or_default(), work)
            }
            "test" => {
                let path = self.text("path")?;
                // What is found may be large, and the next operation may test it too: it is not copied.
                let wanted = self.0.get("value").unwrap_or(&Value::Null);
                let holds = match path {
                    "" => document == wanted,
                    path => place(document, path)?.get()?.unwrap_or(&Value::Null) == wanted,
                };
                holds.then_some(()).ok_or_else(|| unfit("testing value failed", path))
            }
            other => Err(unfit("unexpected kind", other)),
        }
    }
}

/// Applies operations in order; copies may take `limit` bytes together.
///
/// # Errors
/// The first operation that fails.
pub(super) fn apply(operations: &[Operation], document: &mut Value, limit: usize) -> Result<(), Failure> {
    let mut work = Work::default();
    operations.iter().try_for_each(|operation| operation.apply(document, &mut work, limit))
}

/// A field or element in an object or array that is there; it need not be itself.
enum Place<'a> {
    Field(&'a mut serde_json::Map<String, Value>, String),
    Element(&'a mut Vec<Value>, String),
}

fn unfit(why: &str, place: &str) -> Failure {
    Failure::Unfit(format!("{why}: {place}"))
}

fn place<'a>(document: &'a mut Value, path: &str) -> Result<Place<'a>, Failure> {
    let missing = || unfit("missing path", path);
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let key = parts.pop().ok_or_else(missing)?;
    let mut here = document;
    for part in parts {
        here = match here {
            Value::Object(map) => map.get_mut(&part).ok_or_else(missing)?,
            Value::Array(items) => {
                let at = index(&part, items.len()).filter(|at| *at < items.len()).ok_or_else(missing)?;
                items.get_mut(at).ok_or_else(missing)?
            }
            _ => return Err(missing()),
        };
    }
    match here {
        Value::Object(map) => Ok(Place::Field(map, key)),
        Value::Array(items) => Ok(Place::Element(items, key)),
        _ => Err(missing()),
    }
}

/// An index, one below zero counted from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    if number < 0 {
        return length.checked_sub(usize::try_from(number.unsigned_abs()).ok()?);
    }
    usize::try_from(number).ok()
}

impl Place<'_> {
    /// What is there; a missing field is nothing, a missing element is an error.
    fn get(&self) -> Result<Option<&Value>, Failure> {
        match self {
            Self::Field(map, key) => Ok(map.get(key).filter(|value| !value.is_null())),
            Self::Element(items, key) => {
                let item = index(key, items.len()).and_then(|at| items.get(at));
                item.map(Some).ok_or_else(|| unfit("invalid index", key))
            }
        }
    }

    fn add(self, value: Value, work: &mut Work) -> Result<(), Failure> {
        match self {
            Self::Field(map, key) => drop(map.insert(key, value)),
            Self::Element(items, key) if key == "-" => items.push(value),
            Self::Element(items, key) => {
                // An index from the end counts the new element too.
                let at = index(&key, if key.starts_with('-') { items.len() + 1 } else { items.len() });
                let at = at.filter(|at| *at <= items.len()).ok_or_else(|| unfit("invalid index", &key))?;
                work.moves(items.len() - at)?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn replace(self, value: Value) -> Result<(), Failure> {
        match self {
            Self::Field(map, key) => drop(map.insert(key, value)),
            Self::Element(items, key) => {
                let slot = index(&key, items.len()).and_then(|at| items.get_mut(at));
                *slot.ok_or_else(|| unfit("invalid index", &key))? = value;
            }
        }
        Ok(())
    }

    fn remove(self, work: &mut Work) -> Result<Value, Failure> {
        match self {
            Self::Field(map, key) => map.remove(&key).ok_or_else(|| unfit("nonexistent key", &key)),
            Self::Element(items, key) => {
                let at = index(&key, items.len()).filter(|at| *at < items.len());
                let at = at.ok_or_else(|| unfit("invalid index", &key))?;
                work.moves(items.len() - at)?;
                Ok(items.remove(at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(operations: Value) -> Result<Value, Failure> {
        let mut document = json!({"a": {"b": 1}, "l": [1, 2]});
        apply(&Operation::read(operations), &mut document, 1000).map(|()| document)
    }

    #[test]
    fn a_missing_field_can_be_replaced_copied_and_tested() {
        let made = patched(json!([
            {"op": "replace", "path": "/a/c", "value": 2},
            {"op": "test", "path": "/a/nosuch", "value": null},
            {"op": "test", "path": "/a/nosuch"},
            {"op": "copy", "from": "/a/nosuch", "path": "/a/d"},
            {"op": "add", "path": "anything/e"},
        ]));
        assert_eq!(made.unwrap(), json!({"a": {"b": 1, "c": 2, "d": null}, "e": null, "l": [1, 2]}));
    }

    #[test]
    fn lists_know_the_end_and_indices_from_it() {
        let made = patched(json!([
            {"op": "add", "path": "/l/-", "value": 3},
            {"op": "add", "path": "/l/-1", "value": 4},
            {"op": "replace", "path": "/l/0", "value": 0},
            {"op": "remove", "path": "/l/1"},
        ]));
        assert_eq!(made.unwrap()["l"], json!([0, 3, 4]));
    }

    #[test]
    fn a_long_list_is_not_moved_ten_thousand_times() {
        let list = vec![Value::Null; 200_000];
        for operations in [
            vec![json!({"op": "move", "from": "/l/0", "path": "/l/0"}); 9_000],
            vec![json!({"op": "copy", "from": "/l/1", "path": "/l/0"}); 9_000],
            vec![json!({"op": "remove", "path": "/l/0"}); 9_000],
        ] {
            let mut document = json!({"l": list});
            let failure = apply(&Operation::read(operations.into()), &mut document, usize::MAX);
            assert_eq!(failure, Err(Failure::TooMuchWork));
        }
        let mut document = json!({"l": list});
        let tests = vec![json!({"op": "test", "path": "/l/0"}); 9_000];
        assert_eq!(apply(&Operation::read(tests.into()), &mut document, 0), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for operation in [
            json!({"op": "remove", "path": "/a/nosuch"}),
            json!({"op": "move", "from": "/a/nosuch", "path": "/a/x"}),
            json!({"op": "add", "path": "/nosuch/x", "value": 1}),
            json!({"op": "replace", "path": "/l/2", "value": 1}),
            json!({"op": "add", "path": "/l/x", "value": 1}),
            json!({"op": "test", "path": "/a/b", "value": 2}),
            json!({"op": "add", "path": "", "value": 1}),
            json!({"op": "bogus", "path": "/a"}),
            json!({"path": "/a"}),
            json!({"op": "add"}),
            json!(7),
        ] {
            assert!(matches!(patched(json!([operation])), Err(Failure::Unfit(_))), "{operation}");
        }
        let copies = json!({"op": "copy", "from": "/a", "path": "/a/x"});
        assert_eq!(patched(vec![copies; 20].into()), Err(Failure::Large(1000)));
    }
}
