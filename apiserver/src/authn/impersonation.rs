//! `Impersonate-User`, `-Group`, `-Uid`, `-Extra-*` on direct requests: each asks for the permission `impersonate`, as
//! the generic API server's filter does. Behind the front proxy kube-apiserver has done it and the headers are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use picoshift_machinery::names::{dns1123_label, dns1123_subdomain};
use picoshift_machinery::user_info::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use picoshift_machinery::{Status, UserInfo};

use super::request_header::{extra_key, text};
use super::{Identity, Method};
use crate::authz::{Attributes, Authorizer, Decision, forbidden};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Why a request may not impersonate.
#[derive(Debug)]
pub enum Refused {
    /// The headers make no sense; the text is for the client.
    Malformed(String),
    /// The caller may not.
    Forbidden(Box<Status>),
}

/// Whom a request wants to be: the user and what the caller must be allowed to impersonate.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    user: UserInfo,
    needs: Vec<Attributes>,
}

/// The identity under which a request runs: `caller`, or whom it impersonates. Takes the headers out.
///
/// # Errors
/// [`Refused`].
pub async fn impersonate(
    caller: Arc<Identity>,
    headers: &mut HeaderMap,
    authorizer: &dyn Authorizer,
) -> Result<Arc<Identity>, Refused> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(caller);
    }
    let Some(wanted) = wanted(headers).map_err(Refused::Malformed)? else { return Ok(caller) };
    for need in &wanted.needs {
        let reason = match authorizer.authorize(&caller.user, need).await {
            Ok(Decision::Allow) => continue,
            Ok(Decision::Deny { reason }) => reason,
            Err(error) => {
                tracing::warn!(%error, "impersonation could not be reviewed");
                String::new()
            }
        };
        return Err(Refused::Forbidden(Box::new(forbidden(&caller.user, need, &reason))));
    }
    while let Some(name) = headers.keys().find(|name| name.as_str().starts_with("impersonate-")).cloned() {
        headers.remove(name);
    }
    Ok(Arc::new(Identity::new(wanted.user, Method::Impersonation)))
}

fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, String> {
    let value = |name: &str| headers.get(name).map(text).filter(|text| !text.is_empty());
    let mut user = UserInfo { uid: value(UID).unwrap_or_default(), ..UserInfo::default() };
    user.groups = headers.get_all(GROUP).iter().map(text).collect();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            user.extra.entry(extra_key(key)).or_default().push(text(value));
        }
    }
    let Some(name) = value(USER) else {
        let anything = !(user.groups.is_empty() && user.extra.is_empty() && user.uid.is_empty());
        return if anything {
            Err(format!("requested {} without impersonating a user", described(&user)))
        } else {
            Ok(None)
        };
    };
    let needs = needs(&name, &user);
    if let (Some((namespace, _)), true) = (service_account(&name), user.groups.is_empty()) {
        user.groups =
            vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let (group, settled) = if name == ANONYMOUS {
        (UNAUTHENTICATED, user.in_group(UNAUTHENTICATED))
    } else {
        (AUTHENTICATED, user.in_group(AUTHENTICATED) || user.in_group(UNAUTHENTICATED))
    };
    if !settled {
        user.groups.push(group.to_owned());
    }
    user.name = name;
    Ok(Some(Wanted { user, needs }))
}

/// What must be allowed, in the order in which it is asked.
fn needs(name: &str, user: &UserInfo) -> Vec<Attributes> {
    let need = |resource: &str, name: &str| Attributes {
        verb: "impersonate".to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let authentication = |attributes: Attributes| Attributes {
        group: "authentication.k8s.io".to_owned(),
        version: "v1".to_owned(),
        ..attributes
    };
    let mut needs = vec![match service_account(name) {
        Some((namespace, account)) => {
            Attributes { namespace: namespace.to_owned(), ..need("serviceaccounts", account) }
        }
        None => need("users", name),
    }];
    needs.extend(user.groups.iter().map(|group| need("groups", group)));
    for (key, values) in &user.extra {
        needs.extend(values.iter().map(|value| {
            authentication(Attributes { subresource: key.clone(), ..need("userextras", value) })
        }));
    }
    if !user.uid.is_empty() {
        needs.push(authentication(need("uids", &user.uid)));
    }
    needs
}

/// Namespace and name of a service account's user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let well_formed = dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty();
    well_formed.then_some((namespace, name))
}

fn described(user: &UserInfo) -> String {
    let extra: &BTreeMap<_, _> = &user.extra;
    format!("groups {:?}, extra {:?}, uid {:?}", user.groups, extra.keys().collect::<Vec<_>>(), user.uid)
}

#[cfg(test)]
mod tests;
