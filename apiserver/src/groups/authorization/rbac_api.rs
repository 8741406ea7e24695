//! RBAC at kube-apiserver, in the name of whoever asks: kube-apiserver decides what that user may do, its checks against
//! escalation among it. So this server gives away no permission of its own.

use http::{HeaderName, HeaderValue, Method, Request};
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use picoshift_machinery::names::path_segment;
use picoshift_machinery::{Object, Status, UserInfo};

use crate::kube_api;

/// What a header's name may hold; anything else is escaped, `%` too.
const NOT_IN_HEADER_NAMES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// A thin client of one server identity, which may impersonate.
#[derive(Clone)]
pub(super) struct RbacApi {
    client: Client,
}

/// Where a request goes.
pub(super) struct Place<'a> {
    /// `roles`, `clusterroles`, …
    pub(super) resource: &'a str,
    /// Namespace; empty for cluster scope and for lists of all namespaces.
    pub(super) namespace: &'a str,
    /// Object; empty for the collection.
    pub(super) name: &'a str,
    /// Query, already encoded.
    pub(super) query: &'a str,
}

impl RbacApi {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends a request as `user`.
    ///
    /// # Errors
    /// What kube-apiserver says, and 404 for names that are no path segments.
    pub(super) async fn send(
        &self,
        user: &UserInfo,
        method: Method,
        place: &Place<'_>,
        body: Vec<u8>,
    ) -> Result<Object, Status> {
        let failed =
            |e: &dyn std::fmt::Display| Status::internal(format_args!("request to kube-apiserver: {e}"));
        let request = Request::builder().method(method).uri(path(place)?).body(body);
        let mut request = request.map_err(|e| failed(&e))?;
        for (name, value) in headers(user)? {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| failed(&e))?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|e| failed(&e))?;
            request.headers_mut().append(name, value);
        }
        kube_api::send(&self.client, request).await
    }
}

fn path(place: &Place<'_>) -> Result<String, Status> {
    let Place { resource, namespace, name, query } = place;
    if [namespace, name].iter().any(|part| !part.is_empty() && !path_segment(part).is_empty()) {
        return Err(Status::not_found("rbac.authorization.k8s.io", resource, name));
    }
    let encoded = |part: &str| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string();
    let mut path = "/apis/rbac.authorization.k8s.io/v1".to_owned();
    if !namespace.is_empty() {
        path.push_str(&format!("/namespaces/{}", encoded(namespace)));
    }
    path.push_str(&format!("/{resource}"));
    if !name.is_empty() {
        path.push_str(&format!("/{}", encoded(name)));
    }
    if !query.is_empty() {
        path.push_str(&format!("?{query}"));
    }
    Ok(path)
}

/// The headers by which a request is made in a user's name: with all that is known of him, so that nothing that limits him
/// is lost, token scopes above all.
///
/// # Errors
/// 500 for a user who would arrive as another: readers cut blanks off the ends.
fn headers(user: &UserInfo) -> Result<Vec<(String, &str)>, Status> {
    let mut headers = vec![("impersonate-user".to_owned(), user.name.as_str())];
    if !user.uid.is_empty() {
        headers.push(("impersonate-uid".to_owned(), &user.uid));
    }
    headers.extend(user.groups.iter().map(|group| ("impersonate-group".to_owned(), group.as_str())));
    for (key, values) in &user.extra {
        let name = format!("impersonate-extra-{}", utf8_percent_encode(key, NOT_IN_HEADER_NAMES));
        headers.extend(values.iter().map(|value| (name.clone(), value.as_str())));
    }
    if headers.iter().any(|(_, value)| value.trim_matches([' ', '\t']) != *value) {
        return Err(Status::internal("the user cannot be named in headers"));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_user_is_lost() {
        let user = UserInfo {
            name: "jane".to_owned(),
            uid: "u".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: [
                (
                    "scopes.authorization.openshift.io".to_owned(),
                    vec!["user:info".to_owned(), "role:x:y".to_owned()],
                ),
                ("example.org/a%b".to_owned(), vec!["v".to_owned()]),
            ]
            .into(),
        };
        let own = |(name, value): &(&str, &'static str)| ((*name).to_owned(), *value);
        let expected: Vec<(String, &str)> = [
            ("impersonate-user", "jane"),
            ("impersonate-uid", "u"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-example.org%2Fa%25b", "v"),
            ("impersonate-extra-scopes.authorization.openshift.io", "user:info"),
            ("impersonate-extra-scopes.authorization.openshift.io", "role:x:y"),
        ]
        .iter()
        .map(own)
        .collect();
        assert_eq!(headers(&user).unwrap(), expected);
    }

    #[test]
    fn who_would_arrive_as_another_is_not_named() {
        let named = |name: &str, group: &str| UserInfo {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..UserInfo::default()
        };
        assert!(headers(&named("jürgen", "a b")).is_ok());
        for user in
            [named("jane", "system:masters "), named("jane", "\tsystem:masters"), named(" admin", "a")]
        {
            assert!(headers(&user).is_err(), "{user:?}");
        }
    }

    #[test]
    fn names_stay_one_path_segment() {
        let place = |namespace, name| Place { resource: "roles", namespace, name, query: "limit=1" };
        assert_eq!(
            path(&place("n", "a:b?c")).unwrap(),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/a%3Ab%3Fc?limit=1"
        );
        for (namespace, name) in [("n", ".."), ("..", "x"), ("n", "a/b"), ("n", "a%2fb"), (".", "")] {
            assert!(path(&place(namespace, name)).unwrap_err().is("NotFound"), "{namespace} {name}");
        }
    }
}
