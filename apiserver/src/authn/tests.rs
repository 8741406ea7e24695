//! Tests of identities: who is believed and who is not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::test_certificates::{Authority, Client, config, config_map, connection};
use super::token_review::{TokenError, TokenReview};
use super::*;

/// Knows the token `good`; `down` cannot be reviewed.
#[derive(Default)]
struct Tokens {
    asked: AtomicUsize,
}

#[async_trait]
impl TokenReview for Tokens {
    async fn review(&self, token: &str) -> Result<Option<UserInfo>, TokenError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match token {
            "good" => Ok(Some(UserInfo { name: "tess".to_owned(), ..UserInfo::default() })),
            "down" => Err(TokenError("no connection".to_owned())),
            _ => Ok(None),
        }
    }
}

struct World {
    clients: Authority,
    proxy: Authority,
    map: BTreeMap<String, String>,
    tokens: Arc<Tokens>,
    config: Arc<ArcSwap<ExtensionConfig>>,
    authenticator: Authenticator,
}

impl World {
    fn new() -> Self {
        let (clients, proxy) = (Authority::new("clients"), Authority::new("front proxy"));
        let map = config_map(&clients, &proxy);
        let (config, tokens) = (config(&map), Arc::new(Tokens::default()));
        let authenticator =
            Authenticator::new(Arc::clone(&config), TokenAuthenticator::new(Arc::clone(&tokens) as _));
        Self { clients, proxy, map, tokens, config, authenticator }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.map.insert(key.to_owned(), value.to_owned());
        let new = ExtensionConfig::parse(&self.map, &self.config.load()).unwrap();
        self.config.store(Arc::new(new));
    }

    async fn ask(&self, client: Option<&Client>, headers: &[(&str, &str)]) -> Result<UserInfo, Unauthorized> {
        self.ask_on(&connection(client), headers).await
    }

    async fn ask_on(&self, on: &Connection, headers: &[(&str, &str)]) -> Result<UserInfo, Unauthorized> {
        let headers = header_map(headers);
        let identity = self.authenticator.authenticate(on, &headers).await?;
        assert_eq!(identity.hash, user_hash(&identity.user));
        Ok((*identity.user).clone())
    }
}

fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        })
        .collect()
}

const SPOOF: [(&str, &str); 2] = [("X-Remote-User", "system:admin"), ("X-Remote-Group", "system:masters")];

#[tokio::test]
async fn the_front_proxy_speaks_for_users_with_300_groups_and_encoded_extras() {
    let world = World::new();
    let proxy = world.proxy.client("front-proxy-client", &[]);
    let groups: Vec<String> = (0..300).map(|n| format!("group-{n}")).collect();
    let mut headers = vec![
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "u-1"),
        ("X-Remote-Extra-Scopes.authorization.openshift.io", "user:info"),
        ("X-Remote-Extra-Scopes.authorization.openshift.io", "user:check-access"),
        ("X-Remote-Extra-Example.com%2FKey", "a%20b"),
        ("X-Remote-Extra-bad%zz", "c"),
    ];
    headers.extend(groups.iter().map(|group| ("X-Remote-Group", group.as_str())));
    let user = world.ask(Some(&proxy), &headers).await.unwrap();
    assert_eq!(user.name, "jane");
    assert_eq!(user.uid, "", "no uid header is listed");
    assert_eq!(user.groups.len(), 301);
    assert_eq!(user.groups[299..], ["group-299", AUTHENTICATED]);
    assert_eq!(user.scopes(), ["user:info", "user:check-access"]);
    assert_eq!(user.extra["example.com/key"], ["a%20b"]);
    assert_eq!(user.extra["bad%zz"], ["c"]);
}

#[tokio::test]
async fn the_uid_counts_once_the_config_map_lists_its_header() {
    let mut world = World::new();
    let on = connection(Some(&world.proxy.client("front-proxy-client", &[])));
    let headers =
        [("X-Remote-User", "jane"), ("X-Remote-Uid", "u-1"), ("X-Remote-Group", "system:authenticated")];
    assert_eq!(world.ask_on(&on, &headers).await.unwrap().uid, "");
    world.set("requestheader-uid-headers", r#"["X-Remote-Uid"]"#);
    let user = world.ask_on(&on, &headers).await.unwrap();
    assert_eq!((user.uid.as_str(), user.groups), ("u-1", vec![AUTHENTICATED.to_owned()]));
}

#[tokio::test]
async fn one_connection_speaks_for_many_users() {
    let world = World::new();
    let on = connection(Some(&world.proxy.client("front-proxy-client", &[])));
    for _ in 0..2 {
        for (name, group) in [("jane", "a"), ("jane", "b"), ("joe", "b")] {
            let headers = [("X-Remote-User", name), ("X-Remote-Group", group), ("Accept", group)];
            for _ in 0..2 {
                let user = world.ask_on(&on, &headers).await.unwrap();
                assert_eq!((user.name.as_str(), user.groups[0].as_str()), (name, group));
            }
        }
    }
    let headers = header_map(&[("X-Remote-User", "jane")]);
    let first = world.authenticator.authenticate(&on, &headers).await.unwrap();
    let again = world.authenticator.authenticate(&on, &headers).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
}

#[tokio::test]
async fn headers_without_the_front_proxy_s_certificate_are_worthless() {
    let world = World::new();
    assert_eq!(world.ask(None, &SPOOF).await, Ok(UserInfo::anonymous()));

    let client = world.clients.client("mallory", &["team"]);
    let user = world.ask(Some(&client), &SPOOF).await.unwrap();
    assert_eq!((user.name.as_str(), user.groups), ("mallory", vec!["team".into(), AUTHENTICATED.into()]));

    let namesake = world.clients.client("front-proxy-client", &[]);
    assert_eq!(world.ask(Some(&namesake), &SPOOF).await.unwrap().name, "front-proxy-client");

    let wrong_name = world.proxy.client("somebody", &[]);
    assert_eq!(world.ask(Some(&wrong_name), &SPOOF).await, Err(Unauthorized));
    let expired = world.proxy.client_until("front-proxy-client", &[], 2020);
    assert_eq!(world.ask(Some(&expired), &SPOOF).await, Err(Unauthorized));
    let stranger = Authority::new("front proxy").client("front-proxy-client", &[]);
    assert_eq!(world.ask(Some(&stranger), &SPOOF).await, Err(Unauthorized));
    let quiet = world.proxy.client("front-proxy-client", &[]);
    assert_eq!(world.ask(Some(&quiet), &[]).await, Err(Unauthorized), "as kube-apiserver has it");
}

#[tokio::test]
async fn an_empty_list_of_names_allows_any_and_a_new_authority_counts_at_once() {
    let mut world = World::new();
    let on = connection(Some(&world.proxy.client("somebody", &[])));
    assert_eq!(world.ask_on(&on, &SPOOF).await, Err(Unauthorized));
    world.set("requestheader-allowed-names", "[]");
    assert_eq!(world.ask_on(&on, &SPOOF).await.unwrap().name, "system:admin");
    world.set("requestheader-client-ca-file", &Authority::new("next").pem);
    assert_eq!(world.ask_on(&on, &SPOOF).await, Err(Unauthorized));
}

#[tokio::test]
async fn nobody_is_believed_before_the_config_map_is_read() {
    let world = World::new();
    let empty = Arc::new(ArcSwap::from_pointee(ExtensionConfig::default()));
    let authenticator = Authenticator::new(empty, TokenAuthenticator::new(Arc::clone(&world.tokens) as _));
    let proxy = connection(Some(&world.proxy.client("front-proxy-client", &[])));
    assert_eq!(authenticator.authenticate(&proxy, &header_map(&SPOOF)).await.unwrap_err(), Unauthorized);
    let identity = authenticator.authenticate(&connection(None), &header_map(&SPOOF)).await.unwrap();
    assert_eq!(identity.method, Method::Anonymous);
}

#[tokio::test]
async fn certificates_and_tokens_name_direct_callers() {
    let world = World::new();
    let jane = world.clients.client("jane", &["system:authenticated:oauth", AUTHENTICATED]);
    let user = world.ask(Some(&jane), &[]).await.unwrap();
    assert_eq!(user.groups, ["system:authenticated:oauth", AUTHENTICATED]);
    let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
    assert_eq!((id.len(), &id[..11]), (75, "X509SHA256="));

    let expired = world.clients.client_until("jane", &[], 2020);
    assert_eq!(world.ask(Some(&expired), &[]).await, Err(Unauthorized));
    let good = [("Authorization", "bearer good")];
    assert_eq!(world.ask(Some(&expired), &good).await.unwrap().name, "tess");
    assert_eq!(world.ask(Some(&jane), &good).await.unwrap().name, "jane", "the certificate comes first");
    let user = world.ask(None, &good).await.unwrap();
    assert_eq!(user.groups, [AUTHENTICATED]);

    assert_eq!(world.ask(None, &[("Authorization", "Bearer wrong")]).await, Err(Unauthorized));
    assert_eq!(world.ask(None, &[("Authorization", "Bearer ")]).await, Ok(UserInfo::anonymous()));
    assert_eq!(world.ask(None, &[("Authorization", "Basic eDp5")]).await, Ok(UserInfo::anonymous()));
    let no_name = world.clients.client("", &["team"]);
    assert_eq!(world.ask(Some(&no_name), &[]).await, Err(Unauthorized), "not a front proxy either");
}

#[tokio::test]
async fn answers_about_tokens_are_kept_and_failures_are_not() {
    let world = World::new();
    for (token, reviews) in [("good", 1), ("wrong", 2), ("down", 5)] {
        for _ in 0..3 {
            let _ = world.ask(None, &[("Authorization", &format!("Bearer {token}"))]).await;
        }
        assert_eq!(world.tokens.asked.load(Ordering::SeqCst), reviews, "{token}");
    }
    assert_eq!(world.ask(None, &[("Authorization", "Bearer down")]).await, Err(Unauthorized));
}

#[tokio::test]
async fn oauth_tokens_are_known_here_and_never_remembered() {
    struct Own(Mutex<bool>);
    #[async_trait]
    impl TokenReview for Own {
        async fn review(&self, token: &str) -> Result<Option<UserInfo>, TokenError> {
            let good = *self.0.lock() && token == "sha256~good";
            let user = UserInfo { name: "olive".to_owned(), ..UserInfo::default() };
            if good { Ok(Some(user)) } else { Err(TokenError("token lookup failed".to_owned())) }
        }
    }
    let mut world = World::new();
    let own = Arc::new(Own(Mutex::new(true)));
    world.authenticator = world.authenticator.with_own_tokens(Arc::clone(&own) as _);
    let ask = async |token: &str| {
        let headers = header_map(&[("Authorization", &format!("Bearer {token}"))]);
        let identity = world.authenticator.authenticate(&connection(None), &headers).await;
        identity.map(|identity| (identity.user.name.clone(), identity.user.groups.clone()))
    };
    let olive = ("olive".to_owned(), vec![AUTHENTICATED.to_owned()]);
    assert_eq!(ask("sha256~good").await, Ok(olive));
    assert_eq!(ask("sha256~other").await, Err(Unauthorized));
    *own.0.lock() = false;
    assert_eq!(ask("sha256~good").await, Err(Unauthorized), "it was ended");
    assert_eq!(world.tokens.asked.load(Ordering::SeqCst), 0, "kube-apiserver is asked about none of them");
    assert_eq!(ask("good").await.unwrap().0, "tess");
}

#[tokio::test]
async fn endpoints_see_no_credentials() {
    let world = World::new();
    let mut headers = header_map(&[
        ("Authorization", "Bearer good"),
        ("X-Remote-User", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Group", "c"),
        ("X-Remote-Extra-d", "e"),
        ("X-Remote-Uid", "f"),
        ("Accept", "application/json"),
    ]);
    world.authenticator.strip(&mut headers);
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
}

proptest! {
    #[test]
    fn any_header_is_read(key in "[!#$%&'*+.^_`|~0-9a-z-]{1,40}", value in "[ -~]{0,40}") {
        let map = config_map(&Authority::new("a"), &Authority::new("b"));
        let config = config(&map).load_full();
        let name = format!("x-remote-extra-{key}");
        let user = config.request_header.as_ref().unwrap().user(&header_map(&[("x-remote-user", "u"), (&name, &value)]));
        let user = user.unwrap();
        prop_assert_eq!(user.extra.values().next().unwrap(), &vec![value]);
        prop_assert!(user.extra.keys().all(|key| !key.is_empty()));
    }
}
