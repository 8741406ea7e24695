//! Headers, redirects, and what clients are told.

use super::*;
use crate::oauth::call::tests::call;

fn location(reply: &Reply) -> &str {
    reply.headers()[LOCATION].to_str().unwrap()
}

#[tokio::test]
async fn redirects_are_resolved_and_cleaned() {
    let get = call("GET", "/oauth/authorize/approve?x=1", &[], "").await;
    for (to, place) in [
        ("/", "/"),
        ("../authorize?a=..%2F", "/oauth/authorize?a=..%2F"),
        ("/a//b/./c/", "/a/b/c/"),
        ("https://a.example/x//y", "https://a.example/x//y"),
        ("/é", "/%c3%a9"),
        ("/a\r\nSet-Cookie: x", "/a%0d%0aSet-Cookie:%20x"),
    ] {
        assert_eq!(location(&redirect(&get, to)), place, "{to}");
    }
    let post = call("POST", "/login", &[], "").await;
    assert!(redirect(&post, "/").headers().get(CONTENT_TYPE).is_none());
}

#[test]
fn standard_headers_come_first() {
    let reply = with_standard_headers(json_error(ErrorCode::ServerError, "s"));
    let all: Vec<_> = reply.headers().get_all(EXPIRES).iter().collect();
    assert_eq!(all, ["0", "Fri, 01 Jan 1990 00:00:00 GMT"]);
    assert_eq!(reply.headers()["x-frame-options"], "DENY");
    assert_eq!(reply.headers().get_all(CONTENT_TYPE).iter().count(), 1);
}

#[test]
fn clients_are_told_in_query_or_fragment() {
    let told = error("access_denied", "", "a b");
    let query = to_client("https://a.example/cb?x=1&state=old", told.clone(), false);
    let denied = "error=access_denied&error_description=The+resource+owner+or+authorization+server+denied+the+request.";
    assert_eq!(location(&query), format!("https://a.example/cb?{denied}&state=a+b&x=1"));
    let fragment = to_client("https://a.example/cb", told, true);
    assert_eq!(location(&fragment), format!("https://a.example/cb#{denied}&state=a+b"));
}
