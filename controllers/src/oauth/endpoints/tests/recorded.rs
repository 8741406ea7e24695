//! What a real OAuth server answered to the same requests.

use super::*;

const INVALID_REQUEST: &str = "{\"error\":\"invalid_request\",\"error_description\":\"The request is missing a required parameter, includes an invalid parameter value, includes a parameter more than once, or is otherwise malformed.\"}\n";
const UNAUTHORIZED_CLIENT: &str = "{\"error\":\"unauthorized_client\",\"error_description\":\"The client is not authorized to request a token using this method.\"}\n";
const CHALLENGING: &str = "client_id=openshift-challenging-client&response_type=";

#[tokio::test]
async fn every_answer_has_the_standard_headers() {
    let lab = Lab::new();
    for target in [
        "/",
        "/healthz",
        "/login?then=%2F",
        "/oauth/authorize",
        "/oauth/nothing",
        "/logout",
        "/oauth/token/implicit",
    ] {
        let answer = lab.get(target).await;
        for (name, value) in [
            ("cache-control", "no-cache, no-store, max-age=0, must-revalidate"),
            ("expires", "0"),
            ("pragma", "no-cache"),
            ("referrer-policy", "strict-origin-when-cross-origin"),
            ("x-content-type-options", "nosniff"),
            ("x-dns-prefetch-control", "off"),
            ("x-frame-options", "DENY"),
            ("x-xss-protection", "1; mode=block"),
        ] {
            assert_eq!(answer.header(name), value, "{target}");
        }
    }
}

#[tokio::test]
async fn paths_that_are_none() {
    let lab = Lab::new();
    let root = lab.ask("GET", "/", &[("user-agent", "curl/8")], "").await;
    assert_eq!((root.code, root.header("content-type"), root.body.len()), (403, "application/json", 217));
    let metrics = lab.ask("GET", "/metrics", &[("user-agent", "curl/8")], "").await;
    assert_eq!(
        metrics.json()["message"],
        "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""
    );
    assert_eq!(metrics.body.len(), 224);
    let token = lab.ask("GET", "/metrics", &[("authorization", "Bearer x")], "").await;
    assert_eq!((token.code, token.json()["reason"].as_str()), (401, Some("Unauthorized")));
    for target in ["/oauth/approve", "/oauth2callback/nosuch", "/login/nosuch"] {
        let answer = lab.get(target).await;
        assert_eq!((answer.code, answer.body.len()), (404, 790), "{target}");
    }
    let healthy = lab.get("/healthz").await;
    assert_eq!(
        (healthy.code, healthy.body.as_str(), healthy.header("content-type")),
        (200, "ok", "text/plain; charset=utf-8")
    );
}

#[tokio::test]
async fn errors_of_authorize_in_their_order() {
    let lab = Lab::new();
    let nameless = lab.get("/oauth/authorize").await;
    assert_eq!((nameless.code, nameless.json()["error"].as_str()), (400, Some("server_error")));
    assert_eq!(
        nameless.headers.get_all("expires").iter().collect::<Vec<_>>(),
        ["0", "Fri, 01 Jan 1990 00:00:00 GMT"]
    );
    let unknown = lab.get("/oauth/authorize?client_id=nosuch&response_type=token").await;
    assert_eq!((unknown.code, unknown.body.as_str()), (400, UNAUTHORIZED_CLIENT));
    let foreign = lab
        .basic(&format!("{CHALLENGING}token&redirect_uri=https://evil.example/"), "alice", "alicepw")
        .await;
    assert_eq!((foreign.code, foreign.body.as_str()), (400, INVALID_REQUEST));
    let implicit = format!("{ISSUER}/oauth/token/implicit");
    for (query, told) in [
        (
            "bogus",
            "error=unsupported_response_type&error_description=The+authorization+server+does+not+support+obtaining+a+token+using+this+method.",
        ),
        (
            "code&code_challenge=abc&code_challenge_method=S256",
            "error=invalid_request&error_description=code_challenge+invalid+%28rfc7636%29",
        ),
        (
            "code&code_challenge=abc&code_challenge_method=MD5",
            "error=invalid_request&error_description=code_challenge_method+transform+algorithm+not+supported+%28rfc7636%29",
        ),
        (
            "token&scope=bogus",
            "error=invalid_scope&error_description=%5B0%5D%3A+Invalid+value%3A+%22bogus%22%3A+no+scope+handler+found",
        ),
    ] {
        let answer = lab.basic(&format!("{CHALLENGING}{query}"), "alice", "alicepw").await;
        assert_eq!((answer.code, answer.location()), (302, format!("{implicit}?{told}").as_str()));
        assert_eq!(answer.cookie("ssn").is_some(), query.contains("scope"), "{query}");
    }
    let bounced = lab
        .get("/oauth/authorize?client_id=openshift-browser-client&response_type=code&error=access_denied")
        .await;
    let told = "error=access_denied&error_description=The+resource+owner+or+authorization+server+denied+the+request.";
    assert_eq!(bounced.location(), format!("{ISSUER}/oauth/token/display?{told}"));
}

#[tokio::test]
async fn programs_are_challenged() {
    let lab = Lab::new();
    let target = format!("/oauth/authorize?{CHALLENGING}token");
    let plain = lab.get(&target).await;
    let text = "A non-empty X-CSRF-Token header is required to receive basic-auth challenges";
    assert_eq!((plain.code, plain.body.clone()), (401, format!("{text}\n")));
    assert_eq!(plain.header("warning"), format!("199 Origin \"{text}\""));
    assert_eq!(plain.header("www-authenticate"), "");
    let challenged = lab.ask("GET", &target, &[("x-csrf-token", "1")], "").await;
    assert_eq!((challenged.code, challenged.body.as_str()), (401, ""));
    assert_eq!(challenged.header("www-authenticate"), "Basic realm=\"openshift\"");
    assert_eq!(challenged.header("content-type"), "");
    for (name, password) in [("alice", "wrong"), ("nobody", "x"), ("alice", ""), ("", "alicepw")] {
        let answer = lab.basic(&format!("{CHALLENGING}token"), name, password).await;
        assert_eq!((answer.code, answer.header("www-authenticate")), (401, "Basic realm=\"openshift\""));
    }
}

#[tokio::test]
async fn a_token_in_the_fragment() {
    let lab = Lab::new();
    let answer = lab.basic(&format!("{CHALLENGING}token"), "alice", "alicepw").await;
    let token = answer.told("access_token");
    let rest = "&expires_in=86400&scope=user%3Afull&token_type=Bearer";
    assert_eq!(answer.location(), format!("{ISSUER}/oauth/token/implicit#access_token={token}{rest}"));
    assert_eq!((answer.code, answer.body.as_str(), answer.header("content-type")), (302, "", ""));
    assert!(answer.cookie("ssn").is_some());
    let stored = &lab.fake.all("oauthaccesstokens")[0];
    assert_eq!(stored["expiresIn"], 86400);
    assert_eq!(stored["scopes"], json!(["user:full"]));
    assert!(!stored.to_string().contains(&token), "only the hash is kept");
    let header = format!("Bearer {token}");
    let info = lab.ask("GET", "/oauth/info", &[("authorization", &header)], "").await;
    let told = format!(
        "{{\"access_token\":\"{token}\",\"client_id\":\"openshift-challenging-client\",\"expires_in\":86400,\"scope\":\"user:full\",\"token_type\":\"Bearer\"}}\n"
    );
    assert_eq!((info.code, info.body), (200, told));
    assert_eq!(lab.get(&format!("/oauth/info?code={token}")).await.code, 200);
    let bad = lab.ask("GET", "/oauth/info", &[("authorization", "Bearer x")], "").await;
    assert_eq!((bad.code, bad.body.as_str()), (400, INVALID_REQUEST));
}

#[tokio::test]
async fn browsers_are_sent_to_the_login_page() {
    let lab = Lab::new();
    let query = "client_id=openshift-browser-client&redirect_uri=https%3A%2F%2F127.0.0.1%3A8445%2Foauth%2Ftoken%2Fdisplay&response_type=code";
    let answer = lab.get(&format!("/oauth/authorize?{query}")).await;
    let login = "/login?then=%2Foauth%2Fauthorize%3Fclient_id%3Dopenshift-browser-client%26redirect_uri%3Dhttps%253A%252F%252F127.0.0.1%253A8445%252Foauth%252Ftoken%252Fdisplay%26response_type%3Dcode";
    assert_eq!((answer.code, answer.location()), (302, login));
    assert_eq!(answer.body, format!("<a href=\"{login}\">Found</a>.\n\n"));
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let away = lab.get("/login").await;
    assert_eq!((away.code, away.location(), away.body.as_str()), (302, "/", "<a href=\"/\">Found</a>.\n\n"));
    let page = lab.get("/login?then=%2Foauth%2Fauthorize%3Fclient_id%3Dx").await;
    assert_eq!((page.code, page.header("content-type")), (200, "text/html; charset=UTF-8"));
    assert_eq!(page.field("then"), "/oauth/authorize?client_id=x");
    for (reason, text) in [
        ("user_required", "Login is required. Please try again."),
        ("access_denied", "Invalid login or password. Please try again."),
        ("token_expired", "Could not check CSRF token. Please try again."),
        ("mapping_claim_error", "Could not create user."),
        ("mapping_lookup_error", "Could not find user."),
        ("anything", "An authentication error occurred."),
    ] {
        let page = lab.get(&format!("/login?then=%2F&reason={reason}")).await;
        assert!(page.body.contains(text), "{reason}");
    }
}

#[tokio::test]
async fn errors_of_the_token_endpoint() {
    let lab = Lab::new();
    let post = async |basic: &str, form: &str| {
        let basic = format!("Basic {}", STANDARD.encode(basic));
        lab.ask("POST", "/oauth/token", &[("authorization", &basic)], form).await
    };
    let anonymous = lab.ask("POST", "/oauth/token", &[], "grant_type=authorization_code&code=nosuch").await;
    assert_eq!((anonymous.code, anonymous.body.as_str()), (400, INVALID_REQUEST));
    let unknown = post("openshift-challenging-client:", "grant_type=authorization_code&code=nosuch").await;
    assert_eq!((unknown.code, unknown.body.as_str()), (400, UNAUTHORIZED_CLIENT));
    let password =
        post("openshift-challenging-client:", "grant_type=password&username=alice&password=alicepw").await;
    assert_eq!((password.code, password.json()["error"].as_str()), (400, Some("access_denied")));
    let get = lab.get("/oauth/token").await;
    assert_eq!((get.code, get.json()["error"].as_str()), (400, Some("unsupported_grant_type")));
    assert_eq!(get.headers.get_all("pragma").iter().count(), 2);
    let codeless = post("openshift-challenging-client:", "grant_type=authorization_code").await;
    assert_eq!(codeless.json()["error"], "invalid_grant");
    let put = lab.ask("PUT", "/oauth/token", &[], "").await;
    assert_eq!(put.json()["error"], "invalid_request");
}

#[tokio::test]
async fn logout_is_a_post() {
    let lab = Lab::new();
    let get = lab.get("/logout").await;
    assert_eq!((get.code, get.body.as_str()), (405, "Method not allowed\n"));
    let post = lab.ask("POST", "/logout", &[], "x=y").await;
    assert_eq!((post.code, post.body.as_str(), post.header("content-type")), (200, "", ""));
    assert_eq!(post.cookie("ssn"), None);
    let evil = lab.ask("POST", "/logout?then=https%3A%2F%2Fevil.example", &[], "").await;
    assert_eq!((evil.code, evil.location()), (200, ""));
    let console =
        lab.ask("POST", "/logout", &[("cookie", "ssn=x")], "then=https%3A%2F%2Fconsole.example%2Fa").await;
    assert_eq!((console.code, console.location()), (302, "https://console.example/a"));
    assert!(console.cookie("ssn").is_some());
}
