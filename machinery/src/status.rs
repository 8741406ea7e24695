//! `metav1.Status`: what a client sees when something went wrong, with one constructor per reason and the texts of
//! `k8s.io/apimachinery/pkg/api/errors`.

use std::collections::HashSet;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::field_error::{FieldError, quote};
use crate::group_version::qualified;

/// A failed (or, for some deletes, successful) answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Status {
    /// `Success` or `Failure`.
    #[serde(default)]
    pub status: String,
    /// Text for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Word for programs, for example `NotFound`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// HTTP status code.
    #[serde(default)]
    pub code: u16,
    /// `metadata.continue`: where an inconsistent list could go on, when the consistent one cannot.
    #[serde(skip)]
    pub continue_token: String,
}

/// `Status.details`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Resource (mostly), or kind for Invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Uid of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Single reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One entry of `Status.details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Text for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Status {
    /// A failure with a code, reason and message, without details.
    pub fn failure(code: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.to_owned(),
            details: None,
            code: code.as_u16(),
            continue_token: String::new(),
        }
    }

    /// A failure about no object in particular, with the empty details that upstream's router gives.
    #[must_use]
    pub fn router(code: StatusCode, reason: &str, message: &str) -> Self {
        Self { details: Some(Box::default()), ..Self::failure(code, reason, message) }
    }

    /// 404 for a path that leads nowhere.
    #[must_use]
    pub fn no_such_path() -> Self {
        Self::router(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 405 for a method that a path does not have.
    #[must_use]
    pub fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::router(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// `Success` about an object, as a delete answers.
    #[must_use]
    pub fn success(details: Option<Details>) -> Self {
        Self {
            status: "Success".to_owned(),
            message: String::new(),
            reason: String::new(),
            details: details.map(Box::new),
            code: 0,
            continue_token: String::new(),
        }
    }

    /// 400: the request has a wrong form.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403 with a text of its own about an object: `resource.group "name" is forbidden: why`.
    #[must_use]
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", qualified(resource, group))
        } else {
            format!("{} {} is forbidden: {why}", qualified(resource, group), quote(name))
        };
        Self::failure(StatusCode::FORBIDDEN, "Forbidden", message).about(group, resource, name)
    }

    /// 404 about an object: `resource.group "name" not found`.
    #[must_use]
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(resource, group), quote(name));
        Self::failure(StatusCode::NOT_FOUND, "NotFound", message).about(group, resource, name)
    }

    /// 409: an object of that name is there.
    #[must_use]
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {} already exists", qualified(resource, group), quote(name));
        Self::failure(StatusCode::CONFLICT, "AlreadyExists", message).about(group, resource, name)
    }

    /// 409: the object changed in between, or a precondition failed.
    #[must_use]
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", qualified(resource, group), quote(name));
        Self::failure(StatusCode::CONFLICT, "Conflict", message).about(group, resource, name)
    }

    /// 422 with one cause per field; `kind` is the CamelCase kind.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        // As upstream: the message says a thing once, the causes as often as it was found.
        let mut seen = HashSet::new();
        let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
        let list = match texts.as_slice() {
            [] => "<nil>".to_owned(),
            [one] => (*one).to_owned(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {} is invalid: {list}", qualified(kind, group), quote(name));
        let mut status =
            Self::failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(group, kind, name);
        if let Some(details) = &mut status.details {
            details.causes = errors
                .iter()
                .map(|e| Cause {
                    reason: e.kind.reason().to_owned(),
                    message: e.body(),
                    field: e.field.clone(),
                })
                .collect();
        }
        status
    }

    /// 405: the resource has no such verb.
    #[must_use]
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {}", quote(&qualified(resource, group)));
        Self::failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(group, resource, "")
    }

    /// 410: the revision is gone; `Expired` in the words of the caller.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::GONE, "Expired", message)
    }

    /// 500: an error that is ours, never the caller's.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut status = Self::failure(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        status.details = Some(Box::new(Details {
            causes: vec![Cause { message: message.to_string(), ..Cause::default() }],
            ..Details::default()
        }));
        status
    }

    /// 503: not ready, try again.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 504: a time limit passed; `retry_after` in seconds.
    pub fn timeout(message: impl std::fmt::Display, retry_after: u32) -> Self {
        let mut status = Self::failure(StatusCode::GATEWAY_TIMEOUT, "Timeout", format!("Timeout: {message}"));
        status.details = Some(Box::new(Details { retry_after_seconds: retry_after, ..Details::default() }));
        status
    }

    /// Says what the status is about.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.to_owned(),
            field: field.to_owned(),
        });
        self
    }

    /// The HTTP code; 200 for success.
    #[must_use]
    pub fn http_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::OK)
    }

    /// Whether the reason is `reason`.
    #[must_use]
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// The status as the JSON object a client sees.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        if self.code == 0 {
            map.remove("code");
        }
        map.insert("kind".to_owned(), "Status".into());
        map.insert("apiVersion".to_owned(), "v1".into());
        let metadata = match self.continue_token.as_str() {
            "" => json!({}),
            token => json!({ "continue": token }),
        };
        map.insert("metadata".to_owned(), metadata);
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_each_of_many_things_once() {
        let error = |n: usize| FieldError::required(format!("spec.f{:06}", n / 2), "");
        let errors: Vec<FieldError> = (0..400_000).map(error).collect();
        let status = Status::invalid("", "Route", "r", &errors);
        assert_eq!(status.message.matches("spec.f").count(), 200_000);
        assert_eq!(status.details.map(|details| details.causes.len()), Some(400_000));
    }

    #[test]
    fn texts_are_upstreams() {
        let g = "route.openshift.io";
        assert_eq!(Status::not_found(g, "routes", "x").message, r#"routes.route.openshift.io "x" not found"#);
        assert_eq!(Status::not_found("", "namespaces", "x").message, r#"namespaces "x" not found"#);
        assert_eq!(
            Status::conflict(g, "routes", "x", "why").message,
            r#"Operation cannot be fulfilled on routes.route.openshift.io "x": why"#
        );
        let one = Status::invalid(g, "Route", "x", &[FieldError::required("spec.to.name", "")]);
        assert_eq!(one.message, r#"Route.route.openshift.io "x" is invalid: spec.to.name: Required value"#);
        let two =
            [FieldError::invalid_str("a", "q\"", "bad"), FieldError::not_supported("b", "z", &["y", "x"])];
        let two = Status::invalid(g, "Route", "x", &two);
        assert_eq!(
            two.message,
            r#"Route.route.openshift.io "x" is invalid: [a: Invalid value: "q\"": bad, b: Unsupported value: "z": supported values: "x", "y"]"#
        );
        assert_eq!(two.details.unwrap().causes[1].reason, "FieldValueNotSupported");
    }

    #[test]
    fn reads_what_it_writes() {
        let status = Status::internal("boom").about("g", "routes", "x");
        let read: Status = serde_json::from_value(status.to_value()).unwrap();
        assert_eq!(read, status);
        assert_eq!(Status::success(None).to_value()["status"], "Success");
    }
}
