//! Tests of what is dropped and kept.

use proptest::prelude::*;

use super::*;

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn claims_go_in_every_spelling() {
    let mut headers = map(&[
        ("X-Remote-User", "root"),
        ("x-remote-user", "root"),
        ("X_Remote_User", "root"),
        ("X-Remote_Group", "system:masters"),
        ("x_remote-Extra-Scopes", "user:full"),
        ("X-REMOTE-UID", "1"),
        ("X-Remote-Anything", "1"),
        ("X-Remotes", "stays"),
        ("X-Remote", "stays"),
    ]);
    drop_claims(&mut headers);
    assert_eq!(names(&headers), ["x-remote", "x-remotes"]);
}

#[test]
fn hop_by_hop_headers_go_and_no_other_can_be_made_one() {
    let mut headers = map(&[
        ("Connection", "close, X-Own, Authorization, impersonate-user"),
        ("Connection", "X-Other, X-Remote-User, Host, content-length"),
        ("X-Own", "1"),
        ("X-Other", "1"),
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "alice"),
        ("X-Remote-User", "ours"),
        ("Host", "h"),
        ("Content-Length", "1"),
        ("Keep-Alive", "timeout=1"),
        ("Proxy-Authorization", "Basic x"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("TE", "gzip"),
    ]);
    drop_hop_by_hop(&mut headers);
    let kept = ["authorization", "content-length", "host", "impersonate-user", "x-remote-user"];
    assert_eq!(names(&headers), kept);
    let mut headers = map(&[("TE", "gzip, Trailers")]);
    drop_hop_by_hop(&mut headers);
    assert_eq!(headers[TE], "trailers");
}

#[test]
fn who_is_forwarded_comes_last() {
    let mut headers = map(&[("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "2.2.2.2, 3.3.3.3")]);
    add_forwarded_for(&mut headers, "::ffff:127.0.0.1".parse().unwrap());
    let values: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    assert_eq!(values, ["1.1.1.1, 2.2.2.2, 3.3.3.3, 127.0.0.1"]);
}

#[test]
fn legacy_scopes_are_added() {
    let mut headers = map(&[
        ("Impersonate-User-Scope", "user:info"),
        ("Impersonate-User-Scope", "user:check-access"),
        ("Impersonate-Extra-scopes.authorization.openshift.io", "user:full"),
    ]);
    translate_legacy_scopes(&mut headers);
    let scopes: Vec<_> = headers.get_all(SCOPES).iter().collect();
    assert_eq!(scopes, ["user:full", "user:info", "user:check-access"]);
    drop_impersonation(&mut headers);
    assert!(headers.is_empty());
}

#[test]
fn the_target_names_the_host() {
    let mut headers = map(&[("Host", "a"), ("Cookie", "x=1"), ("Cookie", "y=2")]);
    settle_host(&mut headers, &Uri::from_static("https://b:1/path"));
    assert_eq!((&headers[HOST], &headers[COOKIE]), (&"b:1".parse().unwrap(), &"x=1; y=2".parse().unwrap()));
    settle_host(&mut headers, &Uri::from_static("/path"));
    assert_eq!(headers[HOST], "b:1");
}

proptest! {
    #[test]
    fn no_claim_gets_through(name in "[xX][-_][rR][eE]mote[-_][a-zA-Z_-]{0,8}", named in "[a-zA-Z, -]{0,20}") {
        let mut headers = map(&[(name.as_str(), "root"), ("connection", named.as_str())]);
        drop_claims(&mut headers);
        drop_hop_by_hop(&mut headers);
        prop_assert!(headers.is_empty(), "{:?}", headers);
    }
}
