//! Who owns which field of a stored object, as writes come.

use picoshift_machinery::{Object, Status};
use serde_json::Value;

use super::Registry;
use super::commit::Current;
use crate::rest::{Updater, WriteOptions};

/// What a client makes of an object, in the stored form.
pub(super) struct Changed {
    pub(super) object: Object,
    /// Its `managedFields`; null for none.
    pub(super) owners: Value,
}

/// The `managedFields` of an object; null for none.
pub(super) fn owners(object: &Object) -> Value {
    object.at(&["metadata", "managedFields"]).cloned().unwrap_or_default()
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

    /// Asks the client what becomes of an object, and notes who wrote what. `old` is the stored form.
    ///
    /// # Errors
    /// The client's, and those about the identity of the object.
    pub(super) fn change(
        &self,
        current: &Current,
        old: &Object,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Changed, Status> {
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
            let owners = owners(&object);
            self.strategy.set_defaults(&mut object);
            return Ok(Changed { object, owners });
        }
        let presented = with_version(self.strategy.present(&current.stored));
        let mut object = updater.update(&presented)?;
        self.check_identity(&object, &presented, updater.replaces())?;
        self.strategy.strip(&mut object);
        self.strategy.set_defaults(&mut object);
        options.track(Some(&stored), &mut object);
        let owners = owners(&object);
        Ok(Changed { object, owners })
    }
}

/// Takes new times in `managedFields` back when nothing else is new: a write that changes nothing is none.
pub(super) fn keep_times(object: &mut Object, old: &Object) {
    let (new, before) = (owners(object), owners(old));
    if new == before || without_times(&new) != without_times(&before) {
        return;
    }
    object.set_metadata("managedFields", before);
    if object != old {
        object.set_metadata("managedFields", new);
    }
}

fn without_times(owners: &Value) -> Value {
    let mut owners = owners.clone();
    for entry in owners.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    owners
}
