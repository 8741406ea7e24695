//! What a review asks about: the flat fields of its body, and what is wrong with them
//! (`openshift-apiserver/pkg/authorization/apis/authorization/validation`).

use picoshift_machinery::{FieldError, Object, Status, UserInfo};
use serde_json::Value;

use super::GROUP;
use crate::authz::{Attributes, Authorizer, Decision};

/// The texts of a list of the body; `None` where it is null or absent.
pub(super) fn texts(object: &Object, path: &[&str]) -> Option<Vec<String>> {
    let list = object.at(path)?.as_array()?;
    Some(list.iter().filter_map(|text| text.as_str().map(ToOwned::to_owned)).collect())
}

/// Checks the body of an access review. `local`: of a namespaced one, whose metadata may name its namespace.
///
/// # Errors
/// 422; the kind is missing in its text, as upstream's.
pub(super) fn check(review: &Object, local: bool) -> Result<(), Status> {
    let mut errors = Vec::new();
    if review.str_at(&["verb"]).is_empty() {
        errors.push(FieldError::required("verb", ""));
    }
    if is_path(review) {
        check_path(review, &mut errors);
    } else if review.str_at(&["resource"]).is_empty() {
        errors.push(FieldError::required("resource", ""));
    }
    let metadata = review.at(&["metadata"]).and_then(Value::as_object);
    let ours = |field: &str| field == "managedFields" || (local && field == "namespace");
    if metadata.is_some_and(|fields| fields.iter().any(|(field, value)| !ours(field) && !value.is_null())) {
        let value = review.at(&["metadata"]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid("metadata", &value, "must be empty"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(GROUP, "", "", &errors)) }
}

fn check_path(review: &Object, errors: &mut Vec<FieldError>) {
    if review.str_at(&["path"]).is_empty() {
        errors.push(FieldError::required("path", ""));
    }
    for (json, field) in [
        ("resource", "resource"),
        ("resourceAPIGroup", "group"),
        ("resourceAPIVersion", "version"),
        ("resourceName", "resourceName"),
        ("namespace", "namespace"),
    ] {
        let given = review.str_at(&[json]);
        if !given.is_empty() {
            let why = format!("{field} may not be specified with non resource URLs");
            errors.push(FieldError::invalid_str(field, given, why));
        }
    }
    if review.at(&["content"]).is_some_and(|content| !content.is_null()) {
        let why = "content may not be specified with non resource URLs";
        errors.push(FieldError::invalid("content", &Value::Null, why));
    }
}

fn is_path(review: &Object) -> bool {
    review.at(&["isNonResourceURL"]).and_then(Value::as_bool).unwrap_or_default()
}

/// The namespace that a review is about: for a local one that of its path.
///
/// # Errors
/// 500 without a reason when the body names another, as upstream's.
pub(super) fn namespace(review: &Object, local: bool, path: &str) -> Result<String, Status> {
    let given = review.str_at(&["namespace"]);
    if !local {
        return Ok(given.to_owned());
    }
    if !given.is_empty() && given != path {
        let error = FieldError::invalid_str("namespace", given, format!("namespace must be: {path}"));
        return Err(crate::rest::query::without_reason(error.to_string()));
    }
    Ok(path.to_owned())
}

/// What is asked about, in a namespace.
pub(super) fn attributes(review: &Object, namespace: String) -> Attributes {
    let text = |field: &str| review.str_at(&[field]).to_owned();
    if is_path(review) {
        return Attributes { verb: text("verb"), path: text("path"), ..Attributes::default() };
    }
    let resource = text("resource");
    let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
    Attributes {
        verb: text("verb"),
        group: text("resourceAPIGroup"),
        version: text("resourceAPIVersion"),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace,
        name: text("resourceName"),
        path: String::new(),
    }
}

/// Whether the caller may ask.
///
/// # Errors
/// 403 whose text is the authorizer's reason and nothing else, as upstream's.
pub(super) async fn permit(
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    asked: &Attributes,
) -> Result<(), Status> {
    match authorizer.authorize(user, asked).await {
        Ok(Decision::Allow) => Ok(()),
        Ok(Decision::Deny { reason }) => {
            Err(Status { message: reason, ..Status::forbidden(GROUP, &asked.resource, "", "") })
        }
        Err(error) => Err(Status::forbidden(GROUP, &asked.resource, "", &error.message)),
    }
}
