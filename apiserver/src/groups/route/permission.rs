//! Who may choose hosts and certificates: `routes/custom-host` (`library-go/pkg/route/hostassignment`).

use picoshift_machinery::field_error::quote;
use picoshift_machinery::{FieldError, FieldErrorKind, Object};

use super::GROUP;
use super::shown;
use super::view::{MATERIAL, Tls, View};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::rest::RequestContext;

const HOST: &str = "you do not have permission to set the host field of the route";
const SUBDOMAIN: &str = "you do not have permission to set the subdomain field of the route";
const TLS: &str = "you do not have permission to set certificate fields on the route";

/// Whether the caller may create this route with its host and certificates; no errors where it may.
pub(super) async fn create(
    authorizer: &dyn Authorizer,
    cx: &RequestContext,
    object: &Object,
) -> Vec<FieldError> {
    let view = View(object);
    let host_set = !view.host().is_empty();
    if !host_set && !view.tls().is_some_and(Tls::has_material) {
        return Vec::new();
    }
    match custom_host(authorizer, cx, "create").await {
        Ok(true) => Vec::new(),
        Ok(false) if host_set => vec![FieldError::forbidden("spec.host", HOST)],
        Ok(false) => vec![FieldError::forbidden("spec.tls", TLS)],
        Err(text) => vec![internal("spec.host", text)],
    }
}

/// Whether the caller may change host, subdomain and certificates so. `update` permits all of it; `create` permits
/// new certificates alone. Removing certificates is free.
pub(super) async fn update(
    authorizer: &dyn Authorizer,
    cx: &RequestContext,
    object: &Object,
    old: &Object,
) -> Vec<FieldError> {
    let (view, before) = (View(object), View(old));
    let host_changed = view.host() != before.host();
    let subdomain_changed = view.subdomain() != before.subdomain();
    if !host_changed && !subdomain_changed && !certificates_changed(view, before) {
        return Vec::new();
    }
    match custom_host(authorizer, cx, "update").await {
        Ok(true) => return Vec::new(),
        Ok(false) => {}
        Err(text) if subdomain_changed => return vec![internal("spec.subdomain", text)],
        Err(text) => return vec![internal("spec.host", text)],
    }
    if host_changed {
        return vec![FieldError::invalid_str("spec.host", view.host(), HOST)];
    }
    if subdomain_changed {
        return vec![FieldError::invalid_str("spec.subdomain", view.subdomain(), SUBDOMAIN)];
    }
    match custom_host(authorizer, cx, "create").await {
        Ok(true) => Vec::new(),
        Ok(false) => refused_certificates(view.tls(), before.tls()),
        Err(text) => vec![internal("spec.host", text)],
    }
}

/// A route with an external certificate counts as changed at every update: the secret's content is not known.
fn certificates_changed(view: View<'_>, before: View<'_>) -> bool {
    let Some(tls) = view.tls() else { return false };
    if !tls.has_material() {
        return false;
    }
    before.tls().is_none_or(|old| {
        tls.external().is_some() || MATERIAL.iter().any(|field| tls.text(field) != old.text(field))
    })
}

fn refused_certificates(tls: Option<Tls<'_>>, old: Option<Tls<'_>>) -> Vec<FieldError> {
    let invalid = |field: &str, value: String| {
        FieldError::new(FieldErrorKind::Invalid, format!("spec.tls{field}"), Some(value), TLS)
    };
    let (tls, old) = match (tls, old) {
        (Some(tls), Some(old)) => (tls, old),
        (Some(tls), None) => return vec![invalid("", shown::tls(tls))],
        (None, _) => return Vec::new(),
    };
    let mut errors: Vec<FieldError> = MATERIAL
        .iter()
        .filter(|field| tls.text(field) != old.text(field))
        .map(|field| invalid(&format!(".{field}"), quote(shown::material(field, tls.text(field)))))
        .collect();
    match (tls.external(), old.external()) {
        (None, None) => {}
        (new, _) => errors.push(invalid(".externalCertificate", shown::external(new))),
    }
    errors
}

/// Whether the caller has `verb` on `routes/custom-host`; the error is what the authorizer could not do.
async fn custom_host(authorizer: &dyn Authorizer, cx: &RequestContext, verb: &str) -> Result<bool, String> {
    let attributes = Attributes {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "*".to_owned(),
        resource: "routes".to_owned(),
        subresource: "custom-host".to_owned(),
        namespace: cx.info.namespace.clone(),
        ..Attributes::default()
    };
    match authorizer.authorize(&cx.user, &attributes).await {
        Ok(decision) => Ok(decision == Decision::Allow),
        Err(status) => Err(status.message),
    }
}

fn internal(field: &str, text: String) -> FieldError {
    FieldError::new(FieldErrorKind::Internal, field, None, text)
}
