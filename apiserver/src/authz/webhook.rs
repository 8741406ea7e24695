//! What the authorization webhooks that kube-apiserver asks have in common: who may ask, and the question.

use bytes::Bytes;
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use picoshift_machinery::{Status, UserInfo};

use super::{Attributes, forbidden};
use crate::authn::{Identity, Method};

/// The only client: common name of a certificate from the client authority.
pub const CLIENT: &str = "system:picoshift:authorization-webhook";
/// Longest question.
pub const MAX_BODY: usize = 1024 * 1024;

/// Whether a caller may ask at all. By certificate on this very connection, never by headers or tokens.
///
/// # Errors
/// 403 for everybody else.
pub fn admit(caller: &Identity, verb: &str, path: &str) -> Result<(), Status> {
    if caller.method == Method::ClientCertificate && caller.user.name == CLIENT {
        return Ok(());
    }
    let attributes = Attributes { verb: verb.to_owned(), path: path.to_owned(), ..Attributes::default() };
    Err(forbidden(&caller.user, &attributes, ""))
}

/// Reads a question.
///
/// # Errors
/// 400.
pub(super) fn read(body: &Bytes) -> Result<SubjectAccessReview, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("not a SubjectAccessReview: {error}")))
}

/// Whom a question is about.
pub(super) fn user(spec: &SubjectAccessReviewSpec) -> UserInfo {
    UserInfo {
        name: text(spec.user.as_ref()),
        uid: text(spec.uid.as_ref()),
        groups: spec.groups.clone().unwrap_or_default(),
        extra: spec.extra.clone().unwrap_or_default().into_iter().collect(),
    }
}

/// What a question is about, as it was sent.
pub(super) fn attributes(spec: &SubjectAccessReviewSpec) -> Attributes {
    if let Some(asked) = &spec.resource_attributes {
        return Attributes {
            verb: text(asked.verb.as_ref()),
            group: text(asked.group.as_ref()),
            version: text(asked.version.as_ref()),
            resource: text(asked.resource.as_ref()),
            subresource: text(asked.subresource.as_ref()),
            namespace: text(asked.namespace.as_ref()),
            name: text(asked.name.as_ref()),
            path: String::new(),
        };
    }
    let asked = spec.non_resource_attributes.as_ref();
    Attributes {
        verb: text(asked.and_then(|asked| asked.verb.as_ref())),
        path: text(asked.and_then(|asked| asked.path.as_ref())),
        ..Attributes::default()
    }
}

fn text(field: Option<&String>) -> String {
    field.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_client_is_admitted_and_only_by_certificate() {
        let user = |name: &str| UserInfo { name: name.to_owned(), ..UserInfo::default() };
        let identity = |name: &str, method| Identity::new(user(name), method);
        let admit = |caller: &Identity| admit(caller, "post", "/authorization/scopes");
        assert!(admit(&identity(CLIENT, Method::ClientCertificate)).is_ok());
        for other in [Method::FrontProxy, Method::BearerToken, Method::Impersonation, Method::Anonymous] {
            assert_eq!(admit(&identity(CLIENT, other)).unwrap_err().code, 403);
        }
        let error = admit(&identity("jane", Method::ClientCertificate)).unwrap_err();
        assert_eq!(error.message, "forbidden: User \"jane\" cannot post path \"/authorization/scopes\"");
    }
}
