//! Whole flows: `oc login`, a browser, a grant, kube:admin, kube-auth-proxy.

use super::*;

const IMPLICIT: &str = "https%3A%2F%2F127.0.0.1%3A8445%2Foauth%2Ftoken%2Fimplicit";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const PROMPT: &str = "client_id=promptclient&response_type=code&scope=user:info&redirect_uri=https%3A%2F%2F127.0.0.1%3A9%2Fcb&state=xyz";

#[tokio::test]
async fn oc_logs_in() {
    let lab = Lab::new();
    let query = format!(
        "client_id=openshift-challenging-client&code_challenge={CHALLENGE}&code_challenge_method=S256&redirect_uri={IMPLICIT}&response_type=code"
    );
    let answer = lab.basic(&query, "alice", "alicepw").await;
    let code = answer.told("code");
    assert_eq!(answer.location(), format!("{ISSUER}/oauth/token/implicit?code={code}&state="));
    let stored = &lab.fake.all("oauthauthorizetokens")[0];
    assert_eq!((&stored["expiresIn"], &stored["codeChallenge"]), (&300.into(), &CHALLENGE.into()));
    let redirect = format!("{ISSUER}/oauth/token/implicit");
    let form = [("code", code.as_str()), ("code_verifier", VERIFIER), ("redirect_uri", redirect.as_str())];
    let token = lab.exchange("openshift-challenging-client:", &form).await;
    let told = token.json();
    assert_eq!((token.code, &told["expires_in"], &told["scope"]), (200, &86400.into(), &"user:full".into()));
    assert_eq!((&told["token_type"], token.body.len()), (&"Bearer".into(), 131));
    let access = &lab.fake.all("oauthaccesstokens")[0];
    assert_eq!(
        (&access["userName"], &access["authorizeToken"]),
        (&"alice".into(), &stored["metadata"]["name"])
    );
    let user = lab.fake.all("users").into_iter().find(|user| user["metadata"]["name"] == "alice").unwrap();
    assert_eq!(access["userUID"], user["metadata"]["uid"]);
    assert!(lab.fake.all("oauthauthorizetokens").is_empty());
}

#[tokio::test]
async fn a_program_of_the_user_gets_its_code_at_any_port() {
    let lab = Lab::new();
    let query = "client_id=openshift-cli-client&response_type=code&redirect_uri=http%3A%2F%2F127.0.0.1%3A43243%2Fcallback";
    let code = lab.code(query).await;
    let form = [("code", code.as_str()), ("redirect_uri", "http://127.0.0.1:43243/callback")];
    assert_eq!(lab.exchange("openshift-cli-client:", &form).await.code, 200);
}

#[tokio::test]
async fn a_browser_gets_a_token_to_copy() {
    let lab = Lab::new();
    let request = lab.get("/oauth/token/request").await;
    let place = format!(
        "{ISSUER}/oauth/authorize?client_id=openshift-browser-client&redirect_uri=https%3A%2F%2F127.0.0.1%3A8445%2Foauth%2Ftoken%2Fdisplay&response_type=code"
    );
    assert_eq!((request.code, request.location()), (302, place.as_str()));
    let authorize = request.location().strip_prefix(ISSUER).unwrap().to_owned();
    let login = lab.get(&authorize).await.location().to_owned();
    let page = lab.get(&login).await;
    let csrf = page.cookie("csrf").unwrap();
    assert_eq!((page.field("csrf"), page.field("then")), (csrf.clone(), authorize.clone()));
    let cookie = format!("csrf={csrf}");
    let form = |password: &str| {
        format!("then={}&csrf={csrf}&username=alice&password={password}", query_escape(&authorize))
    };
    let wrong = lab.ask("POST", "/login", &[("cookie", &cookie)], &form("wrong")).await;
    let again = format!("/login?reason=access_denied&then={}", query_escape(&authorize));
    assert_eq!((wrong.code, wrong.location(), wrong.body.as_str()), (302, again.as_str(), ""));
    for (form, reason) in [
        (format!("then=%2F&csrf={csrf}&username=&password=x"), "user_required"),
        (format!("then=%2F&csrf={csrf}&username=alice&password="), "access_denied"),
        ("then=%2F&csrf=other&username=alice&password=alicepw".to_owned(), "token_expired"),
    ] {
        let answer = lab.ask("POST", "/login", &[("cookie", &cookie)], &form).await;
        assert_eq!(answer.location(), format!("/login?reason={reason}&then=%2F"));
    }
    let right = lab.ask("POST", "/login", &[("cookie", &cookie)], &form("alicepw")).await;
    assert_eq!((right.code, right.location()), (302, authorize.as_str()));
    let cookie = format!("csrf={csrf}; ssn={}", right.cookie("ssn").unwrap());

    let authorized = lab.ask("GET", &authorize, &[("cookie", &cookie)], "").await;
    let display = authorized.location().strip_prefix(ISSUER).unwrap();
    assert!(
        display.starts_with("/oauth/token/display?code=sha256~") && display.ends_with("&state="),
        "{display}"
    );
    let ended = format!("csrf={csrf}; ssn={}", authorized.cookie("ssn").unwrap());
    assert_eq!(
        lab.ask("GET", &authorize, &[("cookie", &ended)], "").await.location(),
        login,
        "the session is over"
    );
    let page = lab.ask("GET", display, &[("cookie", &cookie)], "").await;
    assert!(page.body.contains("Display Token") && lab.fake.all("oauthaccesstokens").is_empty());
    let form = format!("code={}&csrf={csrf}", page.field("code"));
    let forged =
        lab.ask("POST", "/oauth/token/display", &[("cookie", &cookie)], &form.replace(&csrf, "x")).await;
    assert_eq!((forged.code, forged.body.as_str()), (400, "Could not check CSRF token. Please try again.\n"));
    let shown = lab.ask("POST", "/oauth/token/display", &[("cookie", &cookie)], &form).await;
    assert!(shown.code == 200 && shown.body.contains("Your API token is"), "{shown:?}");
    assert!(shown.body.contains("oc login --token=sha256~") && !shown.body.contains("Logout"));
    let twice = lab.ask("POST", "/oauth/token/display", &[("cookie", &cookie)], &form).await;
    assert!(twice.code == 500 && twice.body.contains("Error getting token: The client is not authorized"));
    let lost = lab.get("/oauth/token/display").await;
    assert!(
        lost.code == 400 && lost.body.contains("Error handling auth request: Requested parameter not sent")
    );
}

#[tokio::test]
async fn a_client_that_must_ask_asks_once() {
    let lab = Lab::new();
    let (_, cookie) = lab.log_in("alice", "alicepw").await;
    let headers = [("cookie", cookie.as_str())];
    let target = format!("/oauth/authorize?{PROMPT}");
    let asked = lab.ask("GET", &target, &headers, "").await;
    let approve = "authorize/approve?client_id=promptclient&redirect_uri=https%3A%2F%2F127.0.0.1%3A9%2Fcb&scope=user%3Ainfo&then=..%2Fauthorize%3Fclient_id%3Dpromptclient%26response_type%3Dcode%26scope%3Duser%3Ainfo%26redirect_uri%3Dhttps%253A%252F%252F127.0.0.1%253A9%252Fcb%26state%3Dxyz";
    assert_eq!((asked.code, asked.location(), asked.cookie("ssn")), (302, approve, None));
    let page = lab.ask("GET", &format!("/oauth/{approve}"), &headers, "").await;
    assert_eq!((page.code, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(page.field("then"), format!("../authorize?{PROMPT}"));
    assert!(page.body.contains("Read-only access to your user information"), "{}", page.body);
    assert!(page.body.contains("You will be redirected to https://127.0.0.1:9/cb"));

    let csrf = page.field("csrf");
    let form = |more: &str| {
        let then = query_escape(&format!("../authorize?{PROMPT}"));
        format!("csrf={csrf}&client_id=promptclient&user_name=alice&scope=user:info&then={then}&{more}")
    };
    let approve = "/oauth/authorize/approve";
    let denied =
        form("deny=Deny").replace(&query_escape(&format!("../authorize?{PROMPT}")), "%2Foauth%2Fauthorize");
    let denied = lab.ask("POST", approve, &headers, &denied).await;
    assert_eq!((denied.code, denied.location()), (302, "/oauth/authorize?error=access_denied"));
    for (change, text) in [
        (("alice", "bob"), "User did not match"),
        ((csrf.as_str(), "other"), "Invalid CSRF token"),
        (("promptclient", "nosuch"), "Could not find client for client_id"),
    ] {
        let answer = lab.ask("POST", approve, &headers, &form("approve=1").replace(change.0, change.1)).await;
        assert!(answer.body.contains(text), "{text}: {answer:?}");
    }
    let granted = lab.ask("POST", approve, &headers, &form("approve=Allow")).await;
    assert!(granted.location().starts_with("../authorize?client_id=promptclient&"), "{granted:?}");
    let grant = &lab.fake.all("oauthclientauthorizations")[0];
    assert_eq!(
        (&grant["metadata"]["name"], &grant["scopes"]),
        (&"alice:promptclient".into(), &json!(["user:info"]))
    );
    let code = lab.ask("GET", &target, &headers, "").await;
    assert!(
        code.location().starts_with("https://127.0.0.1:9/cb?code=sha256~") && code.told("state") == "xyz"
    );

    // More is asked for again, and adds up; somebody else's grant of the same name does not count.
    let (_, cookie) = lab.log_in("alice", "alicepw").await;
    let more = target.replace("user:info", "user:check-access%20user:info");
    let page = lab.ask("GET", &more, &[("cookie", &cookie)], "").await;
    assert!(page.location().starts_with("authorize/approve?"));
    let csrf = cookie.split(['=', ';']).nth(1).unwrap_or_default();
    let add = format!(
        "csrf={csrf}&client_id=promptclient&user_name=alice&scope=user:check-access&scope=user:info&then=%2F&approve=1"
    );
    lab.ask("POST", approve, &[("cookie", &cookie)], &add).await;
    assert_eq!(
        lab.fake.all("oauthclientauthorizations")[0]["scopes"],
        json!(["user:check-access", "user:info"])
    );
    let path = "/apis/oauth.openshift.io/v1/oauthclientauthorizations/alice%3Apromptclient";
    let mut stale = lab.fake.get(path).unwrap();
    stale["userUID"] = "another".into();
    lab.fake.put(path, stale);
    let again = lab.ask("GET", &target, &[("cookie", &cookie)], "").await;
    assert!(again.location().starts_with("authorize/approve?") && lab.fake.get(path).is_none());
    let gone = lab.ask("GET", "/oauth/authorize/approve?then=%2Foauth%2Fauthorize", &[], "").await;
    assert_eq!(gone.location(), "/oauth/authorize");
}

#[tokio::test]
async fn clients_bound_what_they_get() {
    let lab = Lab::new();
    let cb = "response_type=code&redirect_uri=https%3A%2F%2F127.0.0.1%3A9%2Fcb&state=s";
    let denied = lab.basic(&format!("client_id=denied&{cb}"), "alice", "alicepw").await;
    assert_eq!((denied.told("error"), denied.told("state")), ("access_denied".to_owned(), "s".to_owned()));
    let full =
        lab.basic(&format!("client_id=narrow&{cb}&scope=user:full+user:info"), "alice", "alicepw").await;
    assert_eq!(full.told("error_description"), "scope denied: user:full");
    lab.basic(&format!("client_id=narrow&{cb}"), "alice", "alicepw").await;
    let narrow = lab.basic(&format!("client_id=narrow&{cb}&scope=user:info"), "alice", "alicepw").await;
    assert!(narrow.told("code").starts_with("sha256~"));
    let token = lab.basic("client_id=short&response_type=token", "alice", "alicepw").await;
    assert_eq!(token.told("expires_in"), "60");
    let stored = lab.fake.all("oauthaccesstokens").pop().unwrap();
    assert_eq!((&stored["expiresIn"], &stored["inactivityTimeoutSeconds"]), (&60.into(), &300.into()));
    assert!(stored["metadata"]["name"].as_str().unwrap().starts_with("sha256~"));
}

#[tokio::test]
async fn with_several_providers_one_is_chosen() {
    let lab = Lab::new();
    lab.providers(&["first", "se cond"]);
    let target = "/oauth/authorize?client_id=openshift-browser-client&response_type=code";
    let page = lab.get(target).await;
    assert_eq!(page.code, 200);
    let link = "href=\"/oauth/authorize?client_id=openshift-browser-client&#38;idp=se+cond&#38;response_type=code\" title=\"Log in with se cond\"";
    assert!(page.body.contains(link), "{}", page.body);
    let chosen = lab.get(&format!("{target}&idp=se+cond")).await;
    let login = format!("/login/se%20cond?then={}", query_escape(&format!("{target}&idp=se+cond")));
    assert_eq!((chosen.code, chosen.location()), (302, login.as_str()));
    let form = lab.get(&login).await;
    assert!(form.code == 200 && form.body.contains("action=\"/login/se%20cond\""), "{form:?}");
    assert_eq!(lab.get("/login?then=%2F").await.code, 404);
    let unknown = lab.get(&format!("{target}&idp=%3Cx%3E")).await;
    assert_eq!(
        (unknown.code, unknown.body.as_str()),
        (500, "Error: Unable to locate redirect handler: &lt;x&gt;")
    );
    let basic = lab.basic("client_id=openshift-challenging-client&response_type=token", "bob", "bobpw").await;
    assert_eq!(basic.code, 302, "all providers are asked");
    assert!(lab.fake.get("/apis/user.openshift.io/v1/identities/first%3Abob").is_some());
}

#[tokio::test]
async fn kube_admin_stays_logged_in_until_the_password_changes() {
    let lab = Lab::new();
    let password = "abcde-fghij-klmno-pqrst";
    lab.directory.set_kube_system_created(now());
    let hash = bcrypt::hash(password, 4).unwrap();
    lab.directory.set_kube_admin(Some(secret("kubeadmin", "kubeadmin", &hash)));
    let page = lab.get("/login/kube:admin?then=%2F").await;
    let csrf = page.cookie("csrf").unwrap();
    let form = format!("then=%2F&csrf={csrf}&username=kubeadmin&password={password}");
    let answer = lab.ask("POST", "/login/kube:admin", &[("cookie", &format!("csrf={csrf}"))], &form).await;
    let cookie = format!("csrf={csrf}; ssn={}", answer.cookie("ssn").unwrap());
    let authorize = "/oauth/authorize?client_id=openshift-browser-client&response_type=code";
    for _ in 0..2 {
        let authorized = lab.ask("GET", authorize, &[("cookie", &cookie)], "").await;
        assert!(authorized.told("code").starts_with("sha256~") && authorized.cookie("ssn").is_none());
    }
    let code = lab.ask("GET", authorize, &[("cookie", &cookie)], "").await.told("code");
    let shown = lab
        .ask("POST", "/oauth/token/display", &[("cookie", &cookie)], &format!("code={code}&csrf={csrf}"))
        .await;
    assert!(shown.body.contains("Logout"), "{}", shown.body);
    let uid = lab.directory.known().kube_admin.clone().unwrap();
    assert_eq!(lab.fake.all("oauthaccesstokens")[0]["userUID"], uid.as_str());
    assert!(lab.fake.all("users").iter().all(|user| user["metadata"]["name"] != "kube:admin"));
    let short =
        lab.basic("client_id=openshift-challenging-client&response_type=token", "kubeadmin", "short").await;
    assert_eq!(
        (short.code, short.body.as_str()),
        (500, "Error: kubeadmin password must be at least 23 characters long")
    );
    lab.directory.set_kube_admin(Some(secret("kubeadmin", "kubeadmin", &bcrypt::hash("x", 4).unwrap())));
    assert!(lab.ask("GET", authorize, &[("cookie", &cookie)], "").await.told("code").is_empty());
}

#[tokio::test]
async fn a_restart_logs_nobody_out_and_time_does() {
    let lab = Lab::new();
    let (answer, cookie) = lab.log_in("alice", "alicepw").await;
    assert_eq!((answer.code, answer.location()), (302, "/"));
    let authorize = "/oauth/authorize?client_id=openshift-browser-client&response_type=code";
    let restarted = lab.restarted(now);
    let code = restarted.ask("GET", authorize, &[("cookie", &cookie)], "").await.told("code");
    assert!(code.starts_with("sha256~"));
    let late = lab.restarted(later);
    assert!(late.ask("GET", authorize, &[("cookie", &cookie)], "").await.location().starts_with("/login?"));
    let redirect = format!("{ISSUER}/oauth/token/display");
    let form = [("code", code.as_str()), ("redirect_uri", redirect.as_str())];
    let over = late.exchange("openshift-browser-client:browser-secret", &form).await;
    assert_eq!(over.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn kube_auth_proxy_logs_a_user_in() {
    let lab = Lab::new();
    let redirect = "https://proxy.example/oauth2/callback";
    let client = json!({"redirectURIs": [redirect], "grantMethod": "auto", "secret": "proxy-secret"});
    lab.fake.put(&format!("{CLIENTS}/data-science"), client);
    let query = format!(
        "approval_prompt=force&client_id=data-science&redirect_uri={}&response_type=code&scope=user%3Afull&state=nonce%3A%2Fhome",
        query_escape(redirect)
    );
    let login = lab.get(&format!("/oauth/authorize?{query}")).await;
    assert!(login.location().starts_with("/login?then="));
    let (_, cookie) = lab.log_in("alice", "alicepw").await;
    let back = lab.ask("GET", &format!("/oauth/authorize?{query}"), &[("cookie", &cookie)], "").await;
    let code = back.told("code");
    assert_eq!(back.location(), format!("{redirect}?code={code}&state=nonce%3A%2Fhome"));
    let form = format!(
        "client_id=data-science&client_secret=proxy-secret&code={code}&grant_type=authorization_code&redirect_uri={}",
        query_escape(redirect)
    );
    let token = lab.ask("POST", "/oauth/token", &[], &form).await;
    assert!(token.code == 200 && token.json()["access_token"].as_str().unwrap().starts_with("sha256~"));
}
