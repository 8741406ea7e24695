//! `metadata.managedFields`: read, written, sorted, kept short (`managedfields/internal/{managedfields,capmanagers}.go`).

use std::collections::BTreeMap;

use picoshift_machinery::FieldError;
use picoshift_machinery::field_error::quote;
use serde_json::{Map, Value};

use crate::set::FieldSet;
use crate::updater::{Owner, Owners};
use crate::value;

/// How many managers that update are told apart.
const MAX_UPDATERS: usize = 10;
/// The manager that the oldest updates go to when there are more.
const ANCIENT: &str = "ancient-changes";
/// The longest name of a subresource, in bytes.
const MAX_SUBRESOURCE: usize = 256;

/// Owners, and when each of them wrote last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Managed {
    pub(crate) owners: Owners,
    /// RFC 3339 by identifier.
    pub(crate) times: BTreeMap<String, String>,
}

/// What tells owners apart, as the Go library prints it: its order decides the order of conflicts. Of applies the
/// version is no part.
pub(crate) fn identifier(name: &str, applied: bool, api_version: &str, subresource: &str) -> String {
    let operation = if applied { "Apply" } else { "Update" };
    let version = if applied { "" } else { api_version };
    let parts =
        [("manager", name), ("operation", operation), ("apiVersion", version), ("subresource", subresource)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(field, text)| format!("\"{field}\":{}", value::json(&Value::from(*text))))
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// Reads the entries of an object; none where there are none.
///
/// # Errors
/// Why they are no entries.
pub(crate) fn decode(entries: Option<&Value>) -> Result<Managed, String> {
    let mut managed = Managed::default();
    let Some(Value::Array(entries)) = entries else { return Ok(managed) };
    for (at, entry) in entries.iter().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let applied = match text("operation") {
            "Apply" => true,
            "Update" => false,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
            other => {
                return Err(format!("invalid fieldsType {} in managed fields entry {at}", quote(other)));
            }
        }
        let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
        let set = FieldSet::from_json(fields)
            .map_err(|error| format!("error decoding versioned set: error decoding set: {error}"))?;
        let owner = Owner {
            name: text("manager").to_owned(),
            subresource: text("subresource").to_owned(),
            api_version: text("apiVersion").to_owned(),
            applied,
            set,
        };
        let id = identifier(&owner.name, applied, &owner.api_version, &owner.subresource);
        match text("time") {
            "" => managed.times.remove(&id),
            time => managed.times.insert(id.clone(), time.to_owned()),
        };
        managed.owners.insert(id, owner);
    }
    Ok(managed)
}

impl Managed {
    /// The entries; null where nobody owns anything.
    pub(crate) fn encode(&self) -> Value {
        let mut owners: Vec<(&String, &Owner)> = self.owners.iter().collect();
        owners.sort_by_key(|(id, owner)| {
            let operation = if owner.applied { "Apply" } else { "Update" };
            (operation, self.time(id), &owner.name, &owner.api_version, &owner.subresource)
        });
        let entries: Vec<Value> =
            owners.into_iter().map(|(id, owner)| entry(owner, self.times.get(id))).collect();
        if entries.is_empty() { Value::Null } else { Value::Array(entries) }
    }

    /// The times that the server writes are in order as texts.
    fn time(&self, id: &str) -> &str {
        self.times.get(id).map_or("", String::as_str)
    }

    /// Puts the oldest updates together where there are too many.
    pub(crate) fn cap(&mut self) {
        let updaters = |owners: &Owners| owners.iter().filter(|(_, owner)| !owner.applied).count();
        let mut left = updaters(&self.owners);
        if left <= MAX_UPDATERS {
            return;
        }
        let mut oldest: Vec<String> =
            self.owners.iter().filter(|(_, owner)| !owner.applied).map(|(id, _)| id.clone()).collect();
        oldest.sort_by(|a, b| (self.time(a), a).cmp(&(self.time(b), b)));
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        for id in oldest {
            if left <= MAX_UPDATERS {
                return;
            }
            let Some(owner) = self.owners.get(&id).cloned() else { continue };
            let bucket = identifier(ANCIENT, false, &owner.api_version, "");
            let Some(earlier) = first.get(&owner.api_version) else {
                first.insert(owner.api_version.clone(), id);
                continue;
            };
            if !self.owners.contains_key(&bucket)
                && let Some(start) = self.owners.remove(earlier)
            {
                let start = Owner { name: ANCIENT.to_owned(), subresource: String::new(), ..start };
                self.owners.insert(bucket.clone(), start);
            }
            if let Some(gathered) = self.owners.get_mut(&bucket) {
                gathered.set = owner.set.union(&gathered.set);
            }
            // The bucket may be what is put into the bucket: then it goes, as upstream.
            self.owners.remove(&id);
            left -= 1;
            match self.times.get(&id).cloned() {
                Some(time) => self.times.insert(bucket, time),
                None => self.times.remove(&bucket),
            };
        }
    }
}

fn entry(owner: &Owner, time: Option<&String>) -> Value {
    let mut entry = Map::new();
    let mut set = |field: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(field.to_owned(), text.into());
        }
    };
    set("manager", &owner.name);
    set("operation", if owner.applied { "Apply" } else { "Update" });
    set("apiVersion", &owner.api_version);
    set("time", time.map_or("", String::as_str));
    set("fieldsType", "FieldsV1");
    set("subresource", &owner.subresource);
    entry.insert("fieldsV1".to_owned(), owner.set.to_json());
    Value::Object(entry)
}

/// With so many errors, no further entry is looked at.
const MAX_TOLD: usize = 100;

/// Errors of the entries that a client sent (`ValidateManagedFields`); `check_manager` finds those of a manager's name.
pub fn validate(
    entries: Option<&Value>,
    check_manager: impl Fn(&str, String) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, entry) in entries.and_then(Value::as_array).into_iter().flatten().enumerate() {
        if errors.len() >= MAX_TOLD {
            break;
        }
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let path = |field: &str| format!("metadata.managedFields[{at}].{field}");
        let operation = text("operation");
        if !["Apply", "Update"].contains(&operation) {
            let why = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid_str(path("operation"), operation, why));
        }
        let fields_type = text("fieldsType");
        if !["", "FieldsV1"].contains(&fields_type) {
            errors.push(FieldError::invalid_str(path("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(check_manager(text("manager"), path("manager")));
        if text("subresource").len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(path("subresource"), MAX_SUBRESOURCE));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn entry_of(manager: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": fields})
    }

    #[test]
    fn identifiers_are_as_the_library_prints_them() {
        assert_eq!(
            identifier("a<b", false, "v1", "status"),
            r#"{"manager":"a\u003cb","operation":"Update","apiVersion":"v1","subresource":"status"}"#
        );
        assert_eq!(identifier("a", true, "v1", ""), r#"{"manager":"a","operation":"Apply"}"#);
    }

    #[test]
    fn entries_that_are_none_are_told() {
        let good = entry_of("m", &json!({"f:a": {}}));
        for (field, value) in [
            ("operation", json!("Guess")),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("fieldsType", Value::Null),
            ("fieldsV1", json!({"bad": {}})),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert!(decode(Some(&json!([good, bad]))).is_err(), "{bad}");
        }
        assert_eq!(decode(Some(&json!([good]))).unwrap().encode(), json!([good]));
        assert_eq!(decode(None).unwrap().encode(), Value::Null);
    }

    #[test]
    fn clients_are_told_what_is_wrong_with_their_entries() {
        let entries = json!([{"operation": "Guess", "fieldsType": "x", "manager": "m", "subresource": "s".repeat(257)}]);
        let errors = validate(Some(&entries), |name, path| vec![FieldError::invalid_str(path, name, "bad")]);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "metadata.managedFields[0].operation: Invalid value: \"Guess\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"x\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Invalid value: \"m\": bad",
                "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
            ]
        );
    }

    proptest! {
        #[test]
        fn updaters_are_kept_few(times in proptest::collection::vec(0..20_u8, 0..16)) {
            let mut managed = Managed::default();
            for (at, time) in times.iter().enumerate() {
                let id = identifier(&format!("m{at}"), false, "v1", "");
                let fields = json!([entry_of(&format!("m{at}"), &json!({format!("f:{at}"): {}}))]);
                managed.owners.extend(decode(Some(&fields)).unwrap().owners);
                managed.times.insert(id, format!("2024-01-01T00:00:{time:02}Z"));
            }
            let mut all = FieldSet::default();
            managed.owners.values().for_each(|owner| all = all.union(&owner.set));
            managed.cap();
            prop_assert!(managed.owners.len() <= MAX_UPDATERS.min(times.len()));
            let mut left = FieldSet::default();
            managed.owners.values().for_each(|owner| left = left.union(&owner.set));
            prop_assert_eq!(left, all);
        }
    }
}
