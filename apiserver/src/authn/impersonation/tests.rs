//! Tests of impersonation.

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::*;

/// Allows what is on the list and notes what was asked.
struct Allows {
    resources: &'static [&'static str],
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Authorizer for Allows {
    async fn authorize(&self, user: &UserInfo, a: &Attributes) -> Result<Decision, Status> {
        assert_eq!((user.name.as_str(), a.verb.as_str()), ("boss", "impersonate"));
        let Attributes { group, version, resource, subresource, namespace, name, .. } = a;
        self.asked.lock().push(format!("{group}/{version}/{resource}/{subresource}/{namespace}/{name}"));
        Ok(if self.resources.contains(&resource.as_str()) {
            Decision::Allow
        } else {
            Decision::Deny { reason: String::new() }
        })
    }
}

async fn run(
    resources: &'static [&'static str],
    headers: &[(&str, &str)],
) -> (Result<Arc<Identity>, Refused>, Vec<String>, HeaderMap) {
    let mut headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap()))
        .collect();
    let boss = UserInfo { name: "boss".to_owned(), ..UserInfo::default() };
    let boss = Arc::new(Identity::new(boss, Method::ClientCertificate));
    let authorizer = Allows { resources, asked: Mutex::default() };
    let result = impersonate(boss, &mut headers, &authorizer).await;
    (result, authorizer.asked.into_inner(), headers)
}

#[tokio::test]
async fn every_attribute_is_asked_for() {
    let (result, asked, headers) = run(
        &["users", "groups", "userextras", "uids"],
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "team"),
            ("Impersonate-Uid", "u-1"),
            ("Impersonate-Extra-Example.com%2Fkey", "v"),
            ("Accept", "*/*"),
        ],
    )
    .await;
    let identity = result.unwrap();
    assert_eq!(identity.method, Method::Impersonation);
    assert_eq!(identity.user.name, "jane");
    assert_eq!(identity.user.uid, "u-1");
    assert_eq!(identity.user.groups, ["team", AUTHENTICATED]);
    assert_eq!(identity.user.extra["example.com/key"], ["v"]);
    assert_eq!(
        asked,
        [
            "//users///jane",
            "//groups///team",
            "authentication.k8s.io/v1/userextras/example.com/key//v",
            "authentication.k8s.io/v1/uids///u-1"
        ]
    );
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
}

#[tokio::test]
async fn service_accounts_and_anonymous_get_their_groups() {
    let (result, asked, _) =
        run(&["serviceaccounts"], &[("Impersonate-User", "system:serviceaccount:ns:default")]).await;
    assert_eq!(
        result.unwrap().user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]
    );
    assert_eq!(asked, ["//serviceaccounts//ns/default"]);
    let (result, ..) = run(&["users"], &[("Impersonate-User", ANONYMOUS)]).await;
    assert_eq!(result.unwrap().user.groups, [UNAUTHENTICATED]);
}

#[tokio::test]
async fn who_may_not_gets_the_real_403() {
    let (result, ..) = run(&["users"], &[("Impersonate-User", "jane"), ("Impersonate-Group", "team")]).await;
    let Err(Refused::Forbidden(status)) = result else { panic!("allowed") };
    assert_eq!(
        status.message,
        "groups \"team\" is forbidden: User \"boss\" cannot impersonate resource \"groups\" in API group \
         \"\" at the cluster scope"
    );
    assert_eq!(status.code, 403);
}

#[tokio::test]
async fn groups_without_a_user_make_no_sense() {
    let (result, ..) = run(&["users", "groups"], &[("Impersonate-Group", "system:masters")]).await;
    assert!(matches!(result, Err(Refused::Malformed(_))));
    let (result, asked, _) = run(&[], &[]).await;
    assert_eq!(result.unwrap().user.name, "boss");
    assert!(asked.is_empty());
}
