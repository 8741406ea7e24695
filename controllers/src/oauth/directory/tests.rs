//! Providers, kube:admin and the lives of tokens as configuration and Secrets change.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use super::*;

fn secret(name: &str, key: &str, data: &str) -> Secret {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some("uid".to_owned()),
        resource_version: Some("7".to_owned()),
        creation_timestamp: Some(Time(Timestamp::from_second(1000).unwrap())),
        ..ObjectMeta::default()
    };
    let data = [(key.to_owned(), ByteString(data.as_bytes().to_vec()))];
    Secret { metadata, data: Some(data.into()), ..Secret::default() }
}

fn names(directory: &Directory) -> Vec<String> {
    directory.known().providers.iter().map(|provider| provider.passwords.name().to_owned()).collect()
}

fn htpasswd(name: &str, secret: &str) -> Value {
    json!({"name": name, "type": "HTPasswd", "mappingMethod": "add", "htpasswd": {"fileData": {"name": secret}}})
}

#[test]
fn providers_follow_configuration_and_secrets() {
    let directory = Directory::default();
    assert_eq!(names(&directory), ["defaultDenyAll"]);
    directory.set_oauth(json!({"identityProviders": [
        htpasswd("one", "users"), htpasswd("two", "missing"), htpasswd("a:b", "users"),
        {"name": "sso", "type": "OpenID", "mappingMethod": "claim"},
        {"name": "odd", "type": "HTPasswd", "mappingMethod": "guess"},
    ]}));
    assert_eq!(names(&directory), ["defaultDenyAll"]);
    directory.set_file(&secret("users", "htpasswd", "alice:{SHA}x"));
    assert_eq!(names(&directory), ["one"]);
    let known = directory.known();
    assert_eq!(known.providers[0].mapping, Method::Add);
    assert_eq!(known.login_path(&known.providers[0]), "/login");
    assert_eq!(known.left_out.len(), 4);
    assert!(known.left_out[2].contains("type \"OpenID\" are not supported"), "{:?}", known.left_out);

    directory.set_file(&secret("missing", "htpasswd", ""));
    assert_eq!(names(&directory), ["one", "two"]);
    let known = directory.known();
    assert_eq!(known.login_path(&known.providers[1]), "/login/two");
    assert!(known.provider("two").is_some() && known.provider("three").is_none());
    directory.set_file(&secret("users", "other", ""));
    directory.remove_file("missing");
    assert_eq!(names(&directory), ["defaultDenyAll"]);
    directory.set_files(&[secret("users", "htpasswd", "")]);
    assert_eq!(names(&directory), ["one"]);
}

#[test]
fn kube_admin_comes_first_while_its_secret_is_original() {
    let directory = Directory::default();
    directory.set_oauth(json!({"identityProviders": [htpasswd("one", "users")]}));
    directory.set_file(&secret("users", "htpasswd", ""));
    let hash = bcrypt::hash("x", 4).unwrap();
    directory.set_kube_admin(Some(secret("kubeadmin", "kubeadmin", &hash)));
    assert_eq!(names(&directory), ["one"], "nobody knows yet when the cluster was made");
    directory.set_kube_system_created(Timestamp::from_second(900).unwrap());
    assert_eq!(names(&directory), ["kube:admin", "one"]);
    let known = directory.known();
    assert_eq!(known.login_path(&known.providers[0]), "/login/kube:admin");
    let uid = known.kube_admin.clone().unwrap();
    let mut changed = secret("kubeadmin", "kubeadmin", &hash);
    changed.metadata.resource_version = Some("8".to_owned());
    directory.set_kube_admin(Some(changed));
    assert_ne!(directory.known().kube_admin.clone().unwrap(), uid);
    directory.set_kube_admin(Some(secret("kubeadmin", "kubeadmin", "no hash")));
    assert_eq!(directory.known().kube_admin, None);
    let mut late = secret("kubeadmin", "kubeadmin", &hash);
    late.metadata.creation_timestamp = Some(Time(Timestamp::from_second(900 + 3601).unwrap()));
    directory.set_kube_admin(Some(late));
    assert_eq!(directory.known().kube_admin, None);
    directory.set_kube_admin(None);
    assert_eq!(names(&directory), ["one"]);
}

#[test]
fn tokens_live_as_configured() {
    let directory = Directory::default();
    let times = |directory: &Directory| {
        let known = directory.known();
        (known.access_seconds, known.inactivity_seconds)
    };
    assert_eq!(times(&directory), (86_400, 0));
    let tokens = json!({"accessTokenMaxAgeSeconds": 60, "accessTokenInactivityTimeout": "1h5m0s"});
    directory.set_oauth(json!({ "tokenConfig": tokens }));
    assert_eq!(times(&directory), (60, 3900));
    directory.set_oauth(json!({"tokenConfig": {"accessTokenInactivityTimeout": "400s"}}));
    assert_eq!(times(&directory), (86_400, 400));
}
