//! Hosts: how one is generated, which are legal, and which one a router with a domain serves.

use picoshift_machinery::{FieldError, Object, names};

use super::view::View;
use super::{ALLOW_NON_DNS_HOST, HOST_GENERATED};

/// Gives a route without host and subdomain its host, with the annotation that says so. A wildcard route gets none, and
/// neither does one without a name.
pub(super) fn allocate(object: &mut Object, domain: &str) {
    let view = View(object);
    let nameless = object.name().is_empty();
    if nameless
        || view.wildcard_policy() == "Subdomain"
        || !view.host().is_empty()
        || !view.subdomain().is_empty()
    {
        return;
    }
    let host = format!("{}-{}.{domain}", object.name().replace('.', "-"), object.namespace());
    object.object_mut("spec").insert("host".to_owned(), host.into());
    object.set_annotation(HOST_GENERATED, "true");
}

/// The host that a router of `domain` serves a route at; empty for none.
pub(super) fn effective(view: View<'_>, domain: &str) -> String {
    match (view.host(), view.subdomain()) {
        ("", "") => String::new(),
        ("", subdomain) => format!("{subdomain}.{domain}"),
        (host, _) => host.to_owned(),
    }
}

/// Errors of `spec.host`. The label rule is asked for where the host is new, and lifted by an annotation.
pub(super) fn validate(object: &Object, check_labels: bool) -> Vec<FieldError> {
    let host = View(object).host();
    let check_labels = check_labels && object.annotation(ALLOW_NON_DNS_HOST) != Some("true");
    errors(host, check_labels)
}

/// Errors of a host as the router finds them: always with the label rule.
pub(super) fn router_errors(host: &str) -> Vec<FieldError> {
    errors(host, true)
}

fn errors(host: &str, check_labels: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if host.is_empty() {
        return errors;
    }
    if !names::dns1123_subdomain(host).is_empty() {
        errors.push(FieldError::invalid_str(
            "spec.host",
            host,
            "host must conform to DNS 952 subdomain conventions",
        ));
    }
    if check_labels {
        errors.extend(
            host.split('.')
                .flat_map(names::dns1123_label)
                .map(|why| FieldError::invalid_str("spec.host", host, why)),
        );
    }
    errors
}

/// Errors of `spec.subdomain`.
pub(super) fn validate_subdomain(subdomain: &str) -> Vec<FieldError> {
    const FIELD: &str = "spec.subdomain";
    let mut errors = Vec::new();
    if subdomain.is_empty() {
        return errors;
    }
    if subdomain.len() > names::SUBDOMAIN_MAX {
        let why = format!("must be no more than {} characters", names::SUBDOMAIN_MAX);
        errors.push(FieldError::invalid_str(FIELD, subdomain, why));
    }
    for label in subdomain.split('.') {
        let why = names::dns1123_label(label);
        if !why.is_empty() {
            errors.push(FieldError::invalid_str(FIELD, label, why.join(", ")));
        }
    }
    errors
}

/// Whether every label of a host is a DNS label; an empty host is fine.
pub(super) fn has_legal_labels(host: &str) -> bool {
    host.is_empty() || host.split('.').all(|label| names::dns1123_label(label).is_empty())
}
