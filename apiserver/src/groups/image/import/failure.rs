//! What a user is told of a registry's failure (`importer.{formatRepositoryError,imageImportStatus}`).

use http::StatusCode;
use picoshift_machinery::field_error::quote;
use picoshift_machinery::{FieldError, Status};
use serde_json::Value;

use crate::groups::image::GROUP;
use crate::oci::Error;

/// The failure of an image; `reference` is its pull spec with all defaults.
pub(super) fn of_image(error: &Error, reference: &str) -> Status {
    let text = error.to_string();
    if error.is("MANIFEST_UNKNOWN") {
        Status::not_found(GROUP, "dockerimage", reference)
    } else if error.is("UNAUTHORIZED") || text.ends_with("no basic auth credentials") {
        no_access(reference)
    } else if text.ends_with("incorrect username or password") {
        unauthorized(format!("incorrect username or password for image {}", quote(reference)))
    } else {
        Status::internal(format_args!("{reference}: {text}"))
    }
}

/// The failure of a list of tags; `reference` is the repository as it was written.
pub(super) fn of_repository(error: &Error, reference: &str) -> Status {
    if error.is("NAME_UNKNOWN") {
        Status::not_found(GROUP, "dockerimage", reference)
    } else if error.is("UNAUTHORIZED") {
        no_access(reference)
    } else {
        Status::internal(error)
    }
}

/// Whether wrong credentials may have spoiled what is open to everybody.
pub(super) fn blames_credentials(status: &Status) -> bool {
    status.is("Unauthorized") && status.message.to_lowercase().contains("username or password")
}

/// The failure of a pull spec that is none.
pub(super) fn of_name(name: &str, why: &str) -> Status {
    Status::invalid("", "", "", &[FieldError::invalid_str("from.name", name, format!("invalid name: {why}"))])
}

fn no_access(reference: &str) -> Status {
    unauthorized(format!("you may not have access to the container image {}", quote(reference)))
}

fn unauthorized(message: String) -> Status {
    Status::failure(StatusCode::UNAUTHORIZED, "Unauthorized", message)
}

/// A status inside an object: without a kind of its own.
pub(super) fn inner(status: &Status) -> Value {
    let mut value = status.to_value();
    if let Value::Object(map) = &mut value {
        map.remove("kind");
        map.remove("apiVersion");
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_are_as_recorded() {
        let refused = Error::Failed("dial tcp 127.0.0.1:1: connect: connection refused".to_owned());
        let error = Error::Request {
            method: "Get",
            url: "https://127.0.0.1:1/v2/".to_owned(),
            why: Box::new(refused),
        };
        let text = r#"127.0.0.1:1/x/y:1: Get "https://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused"#;
        assert_eq!(
            inner(&of_image(&error, "127.0.0.1:1/x/y:1")),
            json!({"metadata": {}, "status": "Failure", "message": format!("Internal error occurred: {text}"),
                "reason": "InternalError", "details": {"causes": [{"message": text}]}, "code": 500})
        );
        let status = of_image(&Error::NoBasicCredentials, "quay.io/a/b:1");
        assert_eq!(
            inner(&status),
            json!({"metadata": {}, "status": "Failure", "reason": "Unauthorized", "code": 401,
                "message": r#"you may not have access to the container image "quay.io/a/b:1""#})
        );
        assert!(!blames_credentials(&status));
        let wrong = Error::Failed("unauthorized: incorrect username or password".to_owned());
        assert!(blames_credentials(&of_image(&wrong, "quay.io/a/b:1")));
        assert_eq!(inner(&Status::success(None)), json!({"metadata": {}, "status": "Success"}));
    }
}
