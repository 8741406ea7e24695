//! Requests that go straight to our API server, and as whom.

use std::sync::atomic::Ordering;

use picoshift_machinery::listener::Limits;

use crate::stage::{Answer, Stage};

const ROUTES: &str = "/apis/route.openshift.io/v1/routes";

async fn ask(stage: &Stage, more: &str) -> Answer {
    stage.ask(&format!("GET {ROUTES} HTTP/1.1\r\nHost: h\r\nX-Remote-User: root\r\n{more}\r\n")).await
}

#[tokio::test]
async fn the_effective_user_arrives_and_no_credential() {
    let stage = Stage::new().await;
    let answer = ask(&stage, "Authorization: Bearer carol\r\nAudit-Id: mine\r\n").await;
    assert!(answer.has("fronted=true"), "{}", answer.body);
    for line in [
        "x-remote-user: carol",
        "x-remote-uid: u-carol",
        "x-remote-group: system:authenticated",
        "x-remote-group: g",
        "x-remote-extra-scopes.authorization.openshift.io: user:full",
        "audit-id: mine",
        "x-forwarded-for: 127.0.0.1",
    ] {
        assert!(answer.has(line), "{line} in {}", answer.body);
    }
    let lower = answer.body.to_ascii_lowercase();
    assert!(!lower.contains("authorization: ") && !lower.contains("impersonate-") && !lower.contains("root"));
    assert_eq!(stage.ours.seen.requests.load(Ordering::SeqCst), 1);
    // A certificate too is asked about: impersonation and groups are kube-apiserver's to say.
    let alice = stage.clients.sign("alice", &["dev"]);
    let request = format!("GET {ROUTES} HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = stage.connect(Some(&alice)).await.ask(&request).await;
    assert!(answer.has("x-remote-user: alice") && answer.has("x-remote-uid: u-alice"), "{}", answer.body);
}

#[tokio::test]
async fn one_callers_identity_is_never_anothers() {
    let stage = Stage::new().await;
    let token = "Authorization: Bearer carol\r\n";
    for _ in 0..2 {
        for (more, name) in [
            (token.to_owned(), "carol"),
            (format!("{token}Impersonate-User: dave\r\n"), "dave"),
            (format!("{token}Impersonate-User: erin\r\n"), "erin"),
            (format!("{token}Impersonate-User: dave\r\nImpersonate-Group: a\r\n"), "dave"),
            (
                format!("{token}Impersonate-User: dave\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\n"),
                "dave",
            ),
            (
                format!("{token}Impersonate-User: dave\r\nImpersonate-Group: b\r\nImpersonate-Group: a\r\n"),
                "dave",
            ),
            ("Authorization: Bearer dave\r\n".to_owned(), "dave"),
        ] {
            let answer = ask(&stage, &more).await;
            assert!(answer.has(&format!("x-remote-user: {name}")), "{more} → {}", answer.body);
        }
    }
    assert_eq!(stage.kube.seen.reviews.load(Ordering::SeqCst), 7, "each was asked for once");
}

#[tokio::test]
async fn what_kube_apiserver_refuses_is_refused_and_what_it_does_not_say_is_not_guessed() {
    let stage = Stage::new().await;
    for (more, code) in [
        ("Authorization: Bearer bad\r\n", 401),
        ("Authorization: Bearer broken\r\n", 500),
        ("Authorization: Bearer modest\r\nImpersonate-User: root\r\n", 403),
    ] {
        let answer = ask(&stage, more).await;
        assert_eq!(answer.code, code, "{more}");
        assert!(answer.body.contains(r#""kind":"Status""#), "{}", answer.body);
    }
    for more in [
        "Authorization: Bearer mute\r\n",
        "Authorization: Bearer unknown\r\n",
        "",
        "Authorization: Bearer bad\r\nAccept: application/vnd.kubernetes.protobuf\r\n",
    ] {
        let answer = ask(&stage, more).await;
        assert!(answer.code == 200 && answer.has("fronted=false"), "{more}{}", answer.body);
        assert!(!answer.body.to_ascii_lowercase().contains("x-remote-"), "{}", answer.body);
    }
    assert_eq!(stage.ours.seen.requests.load(Ordering::SeqCst), 0);
    let odd = stage
        .ask(&format!("GET {ROUTES}//x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer carol\r\n\r\n"))
        .await;
    assert!(odd.has("fronted=false"), "{}", odd.body);
}

#[tokio::test]
async fn while_our_server_is_away_kube_apiserver_gets_the_request_whole() {
    let stage = Stage::with(Limits::default(), false).await;
    let post = format!(
        "POST {ROUTES} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer carol\r\nImpersonate-User: dave\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
    let answer = stage.ask(&post).await;
    assert!(answer.body.ends_with("\r\n\r\nhello"), "{}", answer.body);
    assert!(answer.has("fronted=false") && answer.has("impersonate-user: dave"), "{}", answer.body);
    assert!(answer.has("authorization: Bearer carol"), "{}", answer.body);
}
