//! Who owns which field of a stored object, as writes come.

use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::Registry;
use super::commit::Current;
use crate::rest::{Updater, WriteOptions};

/// The `managedFields` of an object.
fn owners(object: &Object) -> Option<&Value> {
    object.at(&["metadata", "managedFields"]).filter(|owners| !owners.is_null())
}

/// Takes the `managedFields` out of an object; null for none.
pub(super) fn take(object: &mut Object) -> Value {
    let metadata = object.0.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or_default()
}

impl Registry {
    /// Notes the creator of an object that has its defaults.
    pub(super) fn track_new(&self, object: &mut Object, options: &WriteOptions) {
        if options.tracker.is_some() {
            // What is computed is nobody's, and a new object is not being deleted.
            self.strategy.strip(object);
            for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
                object.set_metadata(field, Value::Null);
            }
        }
        options.track(None, object);
    }

    /// Asks the client what becomes of an object, and notes who wrote what. `old` and the answer are stored forms.
    ///
    /// # Errors
    /// The client's, and those about the identity of the object.
    pub(super) fn change(
        &self,
        current: &Current,
        old: &Object,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Object, Status> {
        let strip = |object: &mut Object| self.strategy.strip(object);
        let version = current.record.revision.to_string();
        let with_version = |mut object: Object| {
            object.set_metadata("resourceVersion", version.as_str());
            object
        };
        let stored = with_version(old.clone());
        if let Some(applied) = updater.apply(Some(&stored), &strip) {
            let mut object = applied?;
            self.check_identity(&object, &stored, false)?;
            self.strategy.set_defaults(&mut object);
            return Ok(object);
        }
        let presented = with_version(self.strategy.present(&current.stored));
        let mut object = updater.update(&presented)?;
        self.check_identity(&object, &presented, updater.replaces())?;
        self.strategy.strip(&mut object);
        self.strategy.set_defaults(&mut object);
        options.track(Some(&stored), &mut object);
        Ok(object)
    }
}

/// Takes new times in `managedFields` back when nothing else is new: a write that changes nothing is none.
pub(super) fn keep_times(object: &mut Object, old: &Object) {
    let (Some(new), Some(before)) = (owners(object), owners(old)) else { return };
    if new == before || !alike(new, before) {
        return;
    }
    let (new, before) = (new.clone(), before.clone());
    object.set_metadata("managedFields", before);
    if object != old {
        object.set_metadata("managedFields", new);
    }
}

/// Whether managed fields are the same, their times apart.
fn alike(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_array(), other.as_array()) else { return false };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| timeless(one).eq(timeless(other)))
}

fn timeless(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry.as_object().into_iter().flatten().filter(|(field, _)| *field != "time")
}
