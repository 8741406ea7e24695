//! What is wrong with a Project or a ProjectRequest: the rules and texts of openshift-apiserver, in its order.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use picoshift_machinery::names::{dns1123_label, label_value, path_segment, qualified_name};
use picoshift_machinery::{FieldError, Object};

use super::render::{DESCRIPTION, DISPLAY_NAME, NODE_SELECTOR};
use crate::object_meta;

/// Text about a field that only the Namespace may change.
const IMMUTABLE: &str = "field is immutable, try updating the namespace";

/// Errors of a new Project, or of the metadata of a ProjectRequest.
#[must_use]
pub(crate) fn create(project: &Object) -> Vec<FieldError> {
    let mut errors = object_meta::create(project, false, project_name);
    let display_name = project.annotation(DISPLAY_NAME).unwrap_or_default();
    if display_name.contains(['\n', '\t']) {
        errors.push(FieldError::invalid_str(
            format!("metadata.annotations[{DISPLAY_NAME}]"),
            display_name,
            "may not contain a new line or tab",
        ));
    }
    if let Some(selector) = project.annotation(NODE_SELECTOR).filter(|s| !is_node_selector(s)) {
        errors.push(FieldError::invalid_str("nodeSelector", selector, "must be a valid label selector"));
    }
    errors
}

/// Errors of a changed Project. Spec and status are not looked at: they are kept as they are.
#[must_use]
pub(crate) fn update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = object_meta::update(new, old);
    errors.extend(create(new));
    immutable_annotations(&mut errors, &new.annotations(), &old.annotations());
    let (new, old) = (new.labels(), old.labels());
    for (key, value) in &new {
        if old.get(key) != Some(value) {
            errors.push(immutable("labels", key, value));
        }
    }
    errors.extend(missing(&new, &old).map(|(key, value)| immutable("labels", key, value)));
    errors
}

fn immutable_annotations(
    errors: &mut Vec<FieldError>,
    new: &BTreeMap<&str, &str>,
    old: &BTreeMap<&str, &str>,
) {
    let fixed = |key: &str| key != DISPLAY_NAME && key != DESCRIPTION;
    for (key, value) in new.iter().filter(|(k, _)| fixed(k)) {
        if old.get(key).unwrap_or(&"") != value {
            errors.push(immutable("annotations", key, value));
        }
    }
    let lost = missing(new, old).filter(|(k, _)| fixed(k));
    errors.extend(lost.map(|(key, value)| immutable("annotations", key, value)));
}

fn missing<'a>(
    new: &'a BTreeMap<&str, &str>,
    old: &'a BTreeMap<&str, &str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    old.iter().filter(|(k, _)| !new.contains_key(**k)).map(|(k, v)| (*k, *v))
}

fn immutable(map: &str, key: &str, value: &str) -> FieldError {
    FieldError::invalid_str(format!("metadata.{map}[{key}]"), value, IMMUTABLE)
}

/// Errors of a project's name; the first rule that is broken speaks.
fn project_name(name: &str, _prefix: bool) -> Vec<String> {
    let segment = path_segment(name);
    if !segment.is_empty() {
        return segment;
    }
    if name.len() < 2 {
        return vec!["must be at least 2 characters long".to_owned()];
    }
    dns1123_label(name)
}

/// `key=value` terms joined by commas; nothing at all is a selector too.
fn is_node_selector(text: &str) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_term = |term: &str| {
        term.split_once('=').is_some_and(|(key, value)| {
            qualified_name(key.trim_matches(blank)).is_ok() && label_value(value.trim_matches(blank)).is_ok()
        })
    };
    text.chars().all(blank) || text.split(',').all(is_term)
}
