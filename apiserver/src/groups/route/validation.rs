//! The rules of a route, in upstream's order (`library-go/pkg/route/validation`).

use picoshift_machinery::{FieldError, Object};
use serde_json::Value;

use super::tls::Sources;
use super::view::{Backend, Tls, View};
use super::{headers, host, tls};

const WEIGHT_MAX: i64 = 256;
const ALTERNATES_MAX: usize = 3;
/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];

/// Errors of a new route, whose host is allocated already.
pub(super) async fn create(sources: Sources<'_>, object: &Object) -> Vec<FieldError> {
    let mut errors = path_characters(View(object));
    errors.extend(route(sources, object, true).await);
    errors
}

/// Errors of an updated route. What the old one got away with stays allowed while it is not changed.
pub(super) async fn update(sources: Sources<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
    let (view, before) = (View(object), View(old));
    let mut errors = finalizers(object);
    if view.wildcard_policy() != before.wildcard_policy() {
        let why = "field is immutable";
        errors.push(FieldError::invalid_str("spec.wildcardPolicy", view.wildcard_policy(), why));
    }
    let check_labels = view.host() != before.host() && host::has_legal_labels(before.host());
    errors.extend(route(sources, object, check_labels).await);
    if view.path() != before.path() {
        errors.extend(path_characters(view));
    }
    errors
}

/// Errors of an update of the status: nothing but metadata is looked at.
pub(super) fn update_status(object: &Object) -> Vec<FieldError> {
    finalizers(object)
}

async fn route(sources: Sources<'_>, object: &Object, check_labels: bool) -> Vec<FieldError> {
    let view = View(object);
    let mut errors = finalizers(object);
    errors.extend(host::validate(object, check_labels));
    errors.extend(host::validate_subdomain(view.subdomain()));
    errors.extend(wildcard_policy(view));
    errors.extend(headers::validate(view));
    errors.extend(path(view));
    errors.extend(target("spec.to", view.to()));
    if view.alternates().len() > ALTERNATES_MAX {
        let why = format!("cannot specify more than {ALTERNATES_MAX} alternate backends");
        errors.push(FieldError::required("spec.alternateBackends", why));
    }
    for (index, backend) in view.alternates().enumerate() {
        errors.extend(target(&format!("spec.alternateBackends[{index}]"), backend));
    }
    errors.extend(port(view));
    errors.extend(tls::validate(sources, object).await);
    errors
}

fn finalizers(object: &Object) -> Vec<FieldError> {
    let unknown = |finalizer: &&str| !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer);
    object
        .finalizers()
        .into_iter()
        .enumerate()
        .filter(|(_, finalizer)| unknown(finalizer))
        .map(|(index, finalizer)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid_str(format!("metadata.finalizers[{index}]"), finalizer, why)
        })
        .collect()
}

fn wildcard_policy(view: View<'_>) -> Option<FieldError> {
    const FIELD: &str = "spec.wildcardPolicy";
    match view.wildcard_policy() {
        "" | "None" => None,
        "Subdomain" if view.host().is_empty() => {
            Some(FieldError::invalid_str(FIELD, "Subdomain", "host name not specified for wildcard policy"))
        }
        "Subdomain" => None,
        other => Some(FieldError::not_supported(FIELD, other, &["None", "Subdomain"])),
    }
}

fn path_characters(view: View<'_>) -> Vec<FieldError> {
    if view.path().contains(['#', ' ']) {
        vec![FieldError::invalid_str("spec.path", view.path(), "cannot contain # or spaces")]
    } else {
        Vec::new()
    }
}

fn path(view: View<'_>) -> Vec<FieldError> {
    let path = view.path();
    let mut errors = Vec::new();
    if path.is_empty() {
        return errors;
    }
    if !path.starts_with('/') {
        errors.push(FieldError::invalid_str("spec.path", path, "path must begin with /"));
    }
    if view.tls().map(Tls::termination) == Some("passthrough") {
        let why = "passthrough termination does not support paths";
        errors.push(FieldError::invalid_str("spec.path", path, why));
    }
    errors
}

fn target(field: &str, backend: Backend<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if backend.name().is_empty() {
        errors.push(FieldError::required(format!("{field}.name"), ""));
    }
    if backend.kind() != "Service" {
        let why = "must reference a Service";
        errors.push(FieldError::invalid_str(format!("{field}.kind"), backend.kind(), why));
    }
    if let Some(weight) = backend.weight()
        && !weight.as_i64().is_some_and(|weight| (0..=WEIGHT_MAX).contains(&weight))
    {
        let why = format!("weight must be an integer between 0 and {WEIGHT_MAX}");
        errors.push(FieldError::invalid(format!("{field}.weight"), weight, why));
    }
    errors
}

fn port(view: View<'_>) -> Option<FieldError> {
    let missing = match view.target_port()? {
        None | Some(Value::Null) => true,
        Some(Value::String(name)) => name.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(_) => false,
    };
    missing.then(|| FieldError::required("spec.port.targetPort", ""))
}
