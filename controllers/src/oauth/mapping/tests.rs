//! First and later logins by each method, and names that are somebody else's.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::oauth::fake::Fake;

const USERS: &str = "/apis/user.openshift.io/v1/users";
const IDENTITIES: &str = "/apis/user.openshift.io/v1/identities";

async fn map(fake: &Arc<Fake>, name: &str, method: Method) -> Result<User, MappingError> {
    let api: Arc<dyn Api> = Arc::clone(fake) as _;
    user_of(api.as_ref(), &Identity::new("p", name), method).await
}

fn fake(users: &[(&str, &[&str])]) -> Arc<Fake> {
    let fake = Fake::default();
    for (name, identities) in users {
        fake.put(
            &format!("{USERS}/{name}"),
            json!({"metadata": {"name": name, "uid": name}, "identities": identities}),
        );
    }
    Arc::new(fake)
}

#[tokio::test]
async fn a_first_login_makes_user_and_identity_and_a_second_finds_them() {
    for method in [Method::Claim, Method::Add, Method::Generate] {
        let fake = fake(&[]);
        let user = map(&fake, "alice", method).await.unwrap();
        let identity = fake.get(&format!("{IDENTITIES}/p%3Aalice")).unwrap();
        assert_eq!(identity["user"], json!({"name": "alice", "uid": user.uid}));
        assert_eq!(
            (&identity["providerName"], &identity["providerUserName"]),
            (&"p".into(), &"alice".into())
        );
        assert_eq!(fake.get(&format!("{USERS}/alice")).unwrap()["identities"], json!(["p:alice"]));
        let made = fake.log.lock().len();
        assert_eq!(map(&fake, "alice", method).await.unwrap(), user);
        assert!(fake.log.lock()[made..].iter().all(|(method, _)| *method == http::Method::GET));
    }
}

#[tokio::test]
async fn a_name_that_is_somebody_else_s_is_claimed_shared_or_avoided() {
    let taken: &[(&str, &[&str])] = &[("alice", &["q:alice"]), ("alice2", &["q:alice2"])];
    let claimed = map(&fake(taken), "alice", Method::Claim).await.unwrap_err();
    let text =
        "user \"alice\" cannot be claimed by identity \"p:alice\" because it is already mapped to [q:alice]";
    assert_eq!(claimed.to_string(), text);
    let shared = fake(taken);
    assert_eq!(map(&shared, "alice", Method::Add).await.unwrap().uid, "alice");
    assert_eq!(shared.get(&format!("{USERS}/alice")).unwrap()["identities"], json!(["q:alice", "p:alice"]));
    assert_eq!(map(&fake(taken), "alice", Method::Generate).await.unwrap().name, "alice3");
    let free = fake(&[("alice", &[])]);
    assert_eq!(map(&free, "alice", Method::Claim).await.unwrap().uid, "alice");
}

#[tokio::test]
async fn lookup_makes_nothing() {
    let unknown = fake(&[("alice", &[])]);
    let error = map(&unknown, "alice", Method::Lookup).await.unwrap_err();
    assert!(matches!(error, MappingError::Lookup { .. }), "{error}");
    assert!(unknown.log.lock().iter().all(|(method, _)| *method == http::Method::GET));
    let mapped = fake(&[("bob", &["p:alice"])]);
    mapped.put("/apis/user.openshift.io/v1/useridentitymappings/p%3Aalice", json!({"user": {"name": "bob"}}));
    assert_eq!(map(&mapped, "alice", Method::Lookup).await.unwrap().name, "bob");
}

#[tokio::test]
async fn an_identity_whose_user_is_another_or_gone_logs_nobody_in() {
    for (user, identities) in [("other", json!(["p:alice"])), ("alice", json!([]))] {
        let fake = fake(&[]);
        fake.put(&format!("{USERS}/alice"), json!({"metadata": {"uid": user}, "identities": identities}));
        let identity = json!({"metadata": {"name": "p:alice"}, "user": {"name": "alice", "uid": "alice"}});
        fake.put(&format!("{IDENTITIES}/p%3Aalice"), identity);
        let error = map(&fake, "alice", Method::Claim).await.unwrap_err();
        assert!(matches!(error, MappingError::Unmapped(_)), "{error}");
    }
}

#[tokio::test]
async fn who_comes_second_begins_anew_three_times() {
    let fake = fake(&[]);
    *fake.failures.lock() = vec![409, 409, 409];
    assert_eq!(map(&fake, "alice", Method::Claim).await.unwrap().name, "alice");
    *fake.failures.lock() = vec![409; 4];
    assert!(map(&fake, "bob", Method::Claim).await.is_err());
}
