//! Rules of `spec.tls`. Certificates are not parsed here: the router does that.

use picoshift_machinery::field_error::quote;
use picoshift_machinery::{FieldError, FieldErrorKind, Object, UserInfo};

use super::shown;
use super::view::{Tls, View};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::secrets::SecretTypes;

/// What the rules of external certificates ask.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    /// Who may read a secret.
    pub(super) authorizer: &'a dyn Authorizer,
    /// Which secrets there are.
    pub(super) secrets: &'a dyn SecretTypes,
}

/// Who reads the secrets of external certificates.
const ROUTER: &str = "system:serviceaccount:openshift-ingress:router";
/// The type of secrets with a certificate.
const TLS_SECRET: &str = "kubernetes.io/tls";
const NO_CERTIFICATES: &str = "passthrough termination does not support certificates";

/// Errors of `spec.tls`, in upstream's order.
pub(super) async fn validate(sources: Sources<'_>, object: &Object) -> Vec<FieldError> {
    let Some(tls) = View(object).tls() else { return Vec::new() };
    let mut errors = Vec::new();
    match tls.termination() {
        "reencrypt" => errors.extend(external(sources, object, tls).await),
        "passthrough" => passthrough(tls, &mut errors),
        "edge" => {
            if !tls.text("destinationCACertificate").is_empty() {
                errors.push(redacted(
                    "destinationCACertificate",
                    "edge termination does not support destination certificates",
                ));
            }
            errors.extend(external(sources, object, tls).await);
        }
        other => errors.push(FieldError::not_supported(
            "spec.tls.termination",
            other,
            &["edge", "passthrough", "reencrypt"],
        )),
    }
    errors.extend(insecure_policy(tls));
    errors
}

fn passthrough(tls: Tls<'_>, errors: &mut Vec<FieldError>) {
    for field in ["certificate", "key", "externalCertificate", "caCertificate", "destinationCACertificate"] {
        if field == "externalCertificate" {
            let name = tls.external_name();
            if !name.is_empty() {
                errors.push(FieldError::invalid_str("spec.tls.externalCertificate", name, NO_CERTIFICATES));
            }
        } else if !tls.text(field).is_empty() {
            errors.push(redacted(field, NO_CERTIFICATES));
        }
    }
}

/// An error that does not show the certificate or key it is about.
fn redacted(field: &str, why: &str) -> FieldError {
    let shown = match field {
        "certificate" => "redacted certificate data",
        "key" => shown::KEY,
        "caCertificate" => "redacted ca certificate data",
        _ => "redacted destination ca certificate data",
    };
    FieldError::invalid_str(format!("spec.tls.{field}"), shown, why)
}

/// The router must be able to read the secret, which must be there and of the type for certificates.
async fn external(sources: Sources<'_>, object: &Object, tls: Tls<'_>) -> Vec<FieldError> {
    const FIELD: &str = "spec.tls.externalCertificate";
    let name = tls.external_name();
    if name.is_empty() {
        return Vec::new();
    }
    if !tls.text("certificate").is_empty() {
        let why = "cannot specify both tls.certificate and tls.externalCertificate";
        return vec![FieldError::invalid_str(FIELD, name, why)];
    }
    let router = UserInfo { name: ROUTER.to_owned(), ..UserInfo::default() };
    let mut errors = Vec::new();
    for verb in ["get", "watch", "list"] {
        let attributes = Attributes {
            verb: verb.to_owned(),
            version: "*".to_owned(),
            resource: "secrets".to_owned(),
            namespace: object.namespace().to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        if !matches!(sources.authorizer.authorize(&router, &attributes).await, Ok(Decision::Allow)) {
            errors.push(FieldError::forbidden(
                FIELD,
                format!("router serviceaccount does not have permission to {verb} this secret"),
            ));
        }
    }
    match sources.secrets.secret_type(object.namespace(), name).await {
        Ok(found) if found == TLS_SECRET => {}
        Ok(_) => {
            let why = format!("secret of type {TLS_SECRET:?} required");
            errors.push(FieldError::invalid_str(FIELD, name, why));
        }
        Err(status) if status.is("NotFound") => {
            errors.push(FieldError::new(FieldErrorKind::NotFound, FIELD, Some(quote(&status.message)), ""));
        }
        Err(status) => errors.push(FieldError::new(FieldErrorKind::Internal, FIELD, None, status.message)),
    }
    errors
}

fn insecure_policy(tls: Tls<'_>) -> Option<FieldError> {
    let policy = tls.insecure_policy();
    let allowed: &[&str] = match tls.termination() {
        "edge" | "reencrypt" => &["None", "Allow", "Redirect"],
        "passthrough" => &["None", "Redirect"],
        _ => return None,
    };
    if policy.is_empty() || allowed.contains(&policy) {
        return None;
    }
    let why = format!(
        "invalid value for InsecureEdgeTerminationPolicy option, acceptable values are {}, or empty",
        allowed.join(", ")
    );
    Some(FieldError::invalid_str("spec.tls.insecureEdgeTerminationPolicy", policy, why))
}
