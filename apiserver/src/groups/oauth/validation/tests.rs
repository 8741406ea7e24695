//! Texts and order of the errors that no recording has.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn token(with: &Value) -> Object {
    let mut token = json!({"metadata": {"name": "sha256~x", "uid": "1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "clientName": "c", "userName": "u", "userUID": "1", "scopes": ["user:full"], "expiresIn": 10,
        "redirectURI": "https://x/cb?a=1&b=2"});
    token.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    object(token)
}

#[test]
fn names_of_tokens_are_hashes() {
    let name = format!("sha256~{}", "x".repeat(25));
    assert!(token_name(&name, false).is_empty());
    assert_eq!(token_name(&name[..31], false), ["must be at least 32 characters long"]);
    assert_eq!(
        token_name(&"y".repeat(32), false),
        ["only the new format of tokens (prefixed with sha256~) is allowed"]
    );
    assert_eq!(token_name("a/b", false), ["may not contain '/'"]);
    for (name, good) in [("u:c", true), ("kube:admin:c", true), (":c", false), ("u:", false), ("u", false)] {
        assert_eq!(authorization_name(name, false).is_empty(), good, "{name}");
    }
}

#[test]
fn who_may_be_a_client_or_a_user() {
    for (client, good) in [
        ("c", true),
        ("system:serviceaccount:ns:sa", true),
        ("system:serviceaccount:ns", false),
        ("system:serviceaccount:NS:sa", false),
        ("Client", false),
    ] {
        assert_eq!(
            name_field(&token(&json!({"clientName": client})), "clientName", client_name).is_empty(),
            good
        );
    }
    assert!(access_token(&token(&json!({"userName": "kube:admin"}))).is_empty());
    let errors = access_token(&token(&json!({"userName": "system:admin", "userUID": "", "expiresIn": -1,
        "inactivityTimeoutSeconds": -2, "redirectURI": "https://x/#f"})));
    assert_eq!(
        texts(&errors),
        [
            "userName: Invalid value: \"system:admin\": usernames that contain \":\" must begin with \"b64:\"",
            "userUID: Required value",
            "inactivityTimeoutSeconds: Invalid value: -2: cannot be a negative value",
            "redirectURI: Invalid value: \"https://x/#f\": may not contain a fragment",
            "expiresIn: Invalid value: -1: cannot be a negative value",
        ]
    );
}

#[test]
fn code_challenges_are_checked() {
    let check = |challenge: &str, method: &str| {
        texts(&authorize_token(&token(&json!({"codeChallenge": challenge, "codeChallengeMethod": method}))))
    };
    let good = "a".repeat(43);
    assert_eq!(check("", ""), [""; 0]);
    assert_eq!(check(&good, "S256"), [""; 0]);
    assert_eq!(
        check(&good, ""),
        ["codeChallengeMethod: Required value: required if codeChallenge is specified"]
    );
    assert_eq!(
        check("", "plain"),
        ["codeChallenge: Required value: required if codeChallengeMethod is specified"]
    );
    assert_eq!(
        check("short", "S512"),
        [
            "codeChallenge: Invalid value: \"short\": must be 43-128 characters [a-zA-Z0-9.~_-]",
            "codeChallengeMethod: Unsupported value: \"S512\": supported values: \"S256\", \"plain\"",
        ]
    );
    let never = authorize_token(&token(&json!({"expiresIn": 0})));
    assert_eq!(texts(&never), ["expiresIn: Invalid value: 0: must be greater than zero"]);
}

#[test]
fn tokens_do_not_change() {
    let old = token(&json!({"inactivityTimeoutSeconds": 300}));
    assert!(access_token_changed(&token(&json!({"inactivityTimeoutSeconds": 400})), &old).is_empty());
    assert!(access_token_changed(&token(&json!({})), &old).is_empty(), "0: it never times out again");
    let lower = texts(&access_token_changed(&token(&json!({"inactivityTimeoutSeconds": 200})), &old));
    assert_eq!(
        lower,
        ["inactivityTimeoutSeconds: Invalid value: 200: cannot be less than the current value=300"]
    );
    let begun = texts(&access_token_changed(&old, &token(&json!({}))));
    assert_eq!(begun, ["inactivityTimeoutSeconds: Invalid value: 300: cannot update non-timing-out token"]);
    let more = access_token_changed(&token(&json!({"scopes": ["user:info"]})), &token(&json!({})));
    assert_eq!(
        texts(&more),
        [
            r#"[]: Invalid value: {"name":"sha256~x","uid":"1","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z","ClientName":"c","ExpiresIn":10,"Scopes":["user:info"],"RedirectURI":"https://x/cb?a=1\u0026b=2","UserName":"u","UserUID":"1","AuthorizeToken":"","RefreshToken":"","InactivityTimeoutSeconds":0}: field is immutable"#
        ]
    );
    assert_eq!(authorize_token_changed(&token(&json!({"state": "s"})), &token(&json!({}))).len(), 1);
    assert!(authorize_token_changed(&token(&json!({"metadata": {}})), &token(&json!({}))).is_empty());
}

#[test]
fn restrictions_of_scopes_are_one_thing_or_the_other() {
    let check = |restriction: Value| texts(&scope_restriction(&restriction, "r"));
    assert_eq!(check(json!({"literals": ["user:info"]})), [""; 0]);
    assert_eq!(
        check(json!({"literals": ["a", ""]})),
        ["r.literals[1]: Invalid value: \"\": may not be empty"]
    );
    let role = json!({"roleNames": null, "namespaces": null, "allowEscalation": false});
    assert_eq!(
        check(json!({"clusterRole": role})),
        [
            "r.clusterRole.roleNames: Required value: won't match anything",
            "r.clusterRole.namespaces: Required value: won't match anything",
        ]
    );
    assert_eq!(
        check(json!({"literals": ["a"], "clusterRole": role})),
        [
            r#"r: Invalid value: {"ExactValues":["a"],"ClusterRole":{"RoleNames":null,"Namespaces":null,"AllowEscalation":false}}: exactly one of literals, clusterRole is required"#
        ]
    );
}

proptest! {
    #[test]
    fn names_that_are_accepted_hold_no_raw_token(name in "(sha256~)?[A-Za-z0-9_~/%.-]{0,60}") {
        if token_name(&name, false).is_empty() {
            prop_assert!(name.starts_with("sha256~") && !name.contains(['/', '%']));
        }
    }

    #[test]
    fn whatever_a_client_says_is_judged(uri in ".{0,20}", age in any::<i32>(), grant in "[a-z]{0,6}") {
        let judged = client(&object(json!({"redirectURIs": [uri], "accessTokenMaxAgeSeconds": age, "grantMethod": grant})));
        prop_assert_eq!(judged.iter().any(|error| error.field == "accessTokenMaxAgeSeconds"), age < 0);
    }
}
