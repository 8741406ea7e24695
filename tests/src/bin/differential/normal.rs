//! What two runs cannot have in common is named here, so that the rest can be compared.
//!
//! A uid or a resourceVersion gets the name of the place where it was first seen. Thus equal values have equal names and
//! unequal ones do not, in both runs, and a place that differs is told once. What has to grow is checked to grow.

use std::collections::BTreeMap;

use jiff::{Span, Timestamp};
use serde_json::{Map, Value};

use crate::scan;

/// What a topic's answers have named so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The word that makes this run's names its own.
    run: String,
    /// Whether managedFields are compared.
    managers: bool,
    uids: BTreeMap<String, String>,
    revisions: BTreeMap<String, String>,
    /// Names that the server made up, and how they are shown.
    generated: BTreeMap<String, String>,
    /// The newest revision seen of an object, by its uid, and of a collection, by its path.
    newest: BTreeMap<String, u64>,
    /// Revisions that went back.
    violations: Vec<String>,
}

impl Names {
    /// Nothing named yet.
    pub(crate) fn new(run: &str, managers: bool) -> Self {
        Self { run: run.to_owned(), managers, ..Self::default() }
    }

    /// Revisions that went back since this was last asked.
    pub(crate) fn take_violations(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// Remembers a name that begins with `prefix` and was completed by the server.
    pub(crate) fn generated(&mut self, prefix: &str, name: &str) {
        // The end of a long prefix makes room.
        let base = if prefix.len() > 58 { prefix.get(..58).unwrap_or(prefix) } else { prefix };
        if name.len() > base.len() && name.starts_with(base) && name != prefix {
            self.generated.insert(name.to_owned(), format!("{base}<generated>"));
        }
    }

    /// The normal form of a body that `step` got; `collection` is asked for as it is now, if it is.
    pub(crate) fn body(&mut self, step: &str, collection: Option<&str>, body: &Value) -> Value {
        if let Some(collection) = collection {
            self.revision_of_list(collection, body);
        }
        self.revisions_of_objects(body);
        self.value(step, "", body)
    }

    /// The normal form of an object that came by the watch `watch`, which may have begun in the past.
    pub(crate) fn event(&mut self, place: &str, watch: &str, object: &Value) -> Value {
        let what = format!("{} in the watch {watch}", object["metadata"]["uid"]);
        self.grows(&what, &object["metadata"]["resourceVersion"]);
        self.value(place, "", object)
    }

    /// The normal form of a text.
    pub(crate) fn text(&mut self, step: &str, at: &str, text: &str) -> String {
        if is_now(text) {
            return "<time>".to_owned();
        }
        if let Some((before, value, after)) = scan::value_in_message(text) {
            let value = self.value(step, at, &value);
            return format!("{}{value}{}", self.text(step, at, before), self.text(step, at, after));
        }
        let text = &scan::without_scheme(text);
        let text = scan::replace_uuids(text, |uuid| name(&mut self.uids, uuid, "uid", step, at));
        let mut text = if text.contains("was updated") {
            scan::replace_numbers(&text, |_| "<number>".to_owned())
        } else if text.contains("esource version") || text.contains("esourceVersion") {
            scan::replace_numbers(&text, |number| {
                self.revisions.get(number).cloned().unwrap_or_else(|| "<number>".to_owned())
            })
        } else {
            text
        };
        for (name, shown) in &self.generated {
            text = text.replace(name, shown);
        }
        text.replace(&self.run, "RUN")
    }

    fn value(&mut self, step: &str, at: &str, value: &Value) -> Value {
        match value {
            Value::Object(map) if map.get("kind").is_some_and(|kind| kind == "Table") => {
                Value::Object(self.object(step, at, &settled(map)))
            }
            Value::Object(map) => Value::Object(self.object(step, at, map)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Value::Array(
                    items.map(|(index, item)| self.value(step, &format!("{at}[{index}]"), item)).collect(),
                )
            }
            Value::String(text) => Value::String(self.text(step, at, text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn object(&mut self, step: &str, at: &str, map: &Map<String, Value>) -> Map<String, Value> {
        let mut normal = Map::new();
        for (key, value) in map {
            let at = format!("{at}.{key}");
            let shown = match (key.as_str(), value) {
                // Who owns which field was not recorded; it is compared beside a CRD, and by the recordings of
                // structured-merge.
                ("managedFields", _) if !self.managers => continue,
                // By time, which two runs do not have in common.
                ("managedFields", Value::Array(entries)) => {
                    let mut entries = entries.clone();
                    entries.sort_by_key(|entry| {
                        ["manager", "operation", "subresource"].map(|field| entry[field].to_string())
                    });
                    self.value(step, &at, &entries.into())
                }
                // A Go type has these structs whatever a client sends, so that nobody owns that they are there.
                (".", _)
                    if [".f:spec", ".f:to", ".f:status"]
                        .iter()
                        .any(|part| at.ends_with(&format!("{part}.."))) =>
                {
                    continue;
                }
                ("continue", Value::String(token)) if !token.is_empty() => "<continue>".into(),
                ("resourceVersion", Value::String(text))
                    if matches!(
                        at.as_str(),
                        ".metadata.resourceVersion"
                            | ".yaml.metadata.resourceVersion"
                            // A bookmark's row in a watch of tables.
                            | ".rows[0].object.metadata.resourceVersion"
                    ) && !has_uid(map) =>
                {
                    if text.is_empty() {
                        value.clone()
                    } else {
                        "<revision>".into()
                    }
                }
                ("resourceVersion", Value::String(text)) if !matches!(text.as_str(), "" | "0") => {
                    name(&mut self.revisions, text, "revision", step, &at).into()
                }
                _ => self.value(step, &at, value),
            };
            normal.insert(self.text(step, "", key), shown);
        }
        normal
    }

    fn revision_of_list(&mut self, collection: &str, body: &Value) {
        let metadata = &body["metadata"];
        if metadata["uid"].is_null() {
            self.grows(collection, &metadata["resourceVersion"]);
        }
    }

    fn revisions_of_objects(&mut self, body: &Value) {
        let rows = body["rows"].as_array().into_iter().flatten().map(|row| &row["object"]);
        let items = body["items"].as_array().into_iter().flatten().chain(rows);
        for object in items.chain([body]) {
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                // A stream and its tags share a uid: the kind tells them apart.
                self.grows(&format!("{} {uid}", object["kind"]), &object["metadata"]["resourceVersion"]);
            }
        }
    }

    fn grows(&mut self, what: &str, revision: &Value) {
        let Some(revision) = revision.as_str().and_then(|text| text.parse::<u64>().ok()) else { return };
        let newest = self.newest.entry(what.to_owned()).or_insert(revision);
        if revision < *newest {
            self.violations.push(format!("{what} went from revision {newest} back to {revision}"));
        }
        *newest = revision.max(*newest);
    }
}

fn has_uid(metadata: &Map<String, Value>) -> bool {
    metadata.contains_key("uid")
}

fn name(names: &mut BTreeMap<String, String>, value: &str, what: &str, step: &str, at: &str) -> String {
    names.entry(value.to_owned()).or_insert_with(|| format!("<{what} of {step}{at}>")).clone()
}

/// Whether it is a time near now: a time that a request set is compared as it is.
fn is_now(text: &str) -> bool {
    let plausible = text.len() >= 20 && text.as_bytes()[4] == b'-' && text.contains('T');
    let Ok(time) = (if plausible { text.parse::<Timestamp>() } else { return false }) else { return false };
    let now = Timestamp::now();
    let hour = Span::new().hours(1);
    (now - hour..now + hour).contains(&time)
}

/// A table without its ages and without the documentation texts of its columns. The tags of a stream, which show in the
/// order of their times to the second, go by name.
fn settled(table: &Map<String, Value>) -> Map<String, Value> {
    let mut table = table.clone();
    let (mut ages, mut tags) = (Vec::new(), Vec::new());
    for column in table.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        ages.push(matches!(column["name"].as_str(), Some("Age" | "Created" | "Updated" | "Expires")));
        tags.push(column["name"] == "Tags");
        if let Some(column) = column.as_object_mut() {
            column.remove("description");
        }
    }
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for (index, cell) in row["cells"].as_array_mut().into_iter().flatten().enumerate() {
            let is = |columns: &[bool]| columns.get(index).is_some_and(|is| *is);
            // Later events of a watch do not say which column is which.
            let aged =
                is(&ages) || (ages.is_empty() && cell.as_str().is_some_and(|text| text.ends_with(" ago")));
            if aged && cell.as_str().is_some_and(scan::is_age) {
                *cell = "<age>".into();
            } else if is(&tags)
                && let Some(text) = cell.as_str()
            {
                let mut names: Vec<&str> = text.split(',').collect();
                names.sort_unstable();
                *cell = names.join(",").into();
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "8039f028-ab0c-4088-9a4f-d0e619db8f18";
    const B: &str = "3822c0b6-089b-4a81-9ebe-71d2a29a9c83";

    #[test]
    fn equal_values_have_equal_names_and_others_do_not() {
        let mut names = Names::new("qzxkv", false);
        let first =
            json!({"metadata": {"name": "a-qzxkv", "uid": A, "resourceVersion": "616", "managedFields": []}});
        let first = names.body("first", Some("r"), &first);
        let uid = "<uid of first.metadata.uid>";
        let revision = "<revision of first.metadata.resourceVersion>";
        assert_eq!(first, json!({"metadata": {"name": "a-RUN", "uid": uid, "resourceVersion": revision}}));
        let again =
            json!({"items": [{"metadata": {"uid": A, "resourceVersion": "616"}}, {"metadata": {"uid": B}}]});
        let again = names.body("again", Some("r"), &again);
        assert_eq!(again["items"][0]["metadata"], json!({"uid": uid, "resourceVersion": revision}));
        assert_eq!(again["items"][1]["metadata"]["uid"], "<uid of again.items[1].metadata.uid>");
        assert!(names.take_violations().is_empty());
    }

    #[test]
    fn a_revision_that_goes_back_is_told() {
        let mut names = Names::new("qzxkv", false);
        let object =
            |revision: &str| json!({"kind": "X", "metadata": {"uid": A, "resourceVersion": revision}});
        names.body("first", Some("r"), &object("20"));
        names.body("second", Some("r"), &object("19"));
        assert_eq!(names.take_violations().len(), 1);
        names.body("list", Some("r"), &json!({"metadata": {"resourceVersion": "30"}, "items": []}));
        names.body("list 2", Some("r"), &json!({"metadata": {"resourceVersion": "29"}, "items": []}));
        assert_eq!(names.take_violations().len(), 1);
    }

    #[test]
    fn only_times_near_now_are_hidden() {
        let mut names = Names::new("qzxkv", false);
        assert_eq!(names.text("s", "", &Timestamp::now().to_string()), "<time>");
        assert_eq!(names.text("s", "", "2020-01-01T00:00:00Z"), "2020-01-01T00:00:00Z");
    }

    #[test]
    fn revisions_in_messages_are_named() {
        let mut names = Names::new("qzxkv", false);
        names.body("first", Some("r"), &json!({"metadata": {"uid": A, "resourceVersion": "616"}}));
        let text =
            names.text("s", "", "ResourceVersion in precondition: 1, ResourceVersion in object meta: 616");
        assert!(text.ends_with("meta: <revision of first.metadata.resourceVersion>"), "{text}");
        assert!(text.contains("precondition: 1,"), "{text}");
    }

    #[test]
    fn where_a_watch_stands_is_not_compared_and_what_an_object_is_at_is() {
        let mut names = Names::new("qzxkv", false);
        names.body("first", Some("r"), &json!({"metadata": {"uid": A, "resourceVersion": "616"}}));
        let mut of = |metadata: Value| {
            let row = json!({"kind": "Table", "columnDefinitions": null, "rows": [{"cells": [], "object": {"metadata": metadata}}]});
            names.event("e[0]", "w", &row)["rows"][0]["object"]["metadata"]["resourceVersion"].clone()
        };
        assert_eq!(of(json!({"resourceVersion": "616"})), "<revision>");
        let named = of(json!({"uid": A, "resourceVersion": "616"}));
        assert_eq!(named, "<revision of first.metadata.resourceVersion>");
    }

    #[test]
    fn tables_lose_ages_and_documentation() {
        let table = json!({"kind": "Table", "columnDefinitions": [{"name": "Age", "description": "long"}],
            "rows": [{"cells": ["5s"]}, {"cells": ["<unknown>"]}]});
        let normal = Names::new("qzxkv", false).body("s", Some("r"), &table);
        assert_eq!(normal["rows"], json!([{"cells": ["<age>"]}, {"cells": ["<unknown>"]}]));
        assert_eq!(normal["columnDefinitions"], json!([{"name": "Age"}]));
        let later =
            json!({"kind": "Table", "columnDefinitions": null, "rows": [{"cells": ["1 second ago", "5s"]}]});
        let later = Names::new("qzxkv", false).body("s", Some("r"), &later);
        assert_eq!(later["rows"], json!([{"cells": ["<age>", "5s"]}]));
    }
}
