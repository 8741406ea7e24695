//! Attacks on identity: what reaches kube-apiserver of who somebody says to be.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::pki::Authority;
use crate::stage::Stage;

/// Claims in every spelling that a client can send.
const SPOOFED: &str = "X-Remote-User: root\r\nx-remote-user: root\r\nX_Remote_User: root\r\nX-REMOTE-GROUP: system:masters\r\n\
    X-Remote_Group: system:masters\r\nx_remote_group: system:masters\r\nX-Remote-Uid: 0\r\n\
    X-Remote-Extra-Scopes: user:full\r\nX-REMOTE-extra-scopes.authorization.openshift.io: user:full\r\n\
    X-Remote-Anything: 1\r\n";

fn spoofed(more: &str) -> String {
    format!("GET /api HTTP/1.1\r\nHost: h\r\n{SPOOFED}{more}\r\n")
}

fn has_no_claim(body: &str) -> bool {
    !body.to_ascii_lowercase().replace('_', "-").contains("x-remote-")
}

#[tokio::test]
async fn claims_of_strangers_are_dropped_and_go_over_no_trusted_connection() {
    let stage = Stage::new().await;
    for more in [
        "",
        "Authorization: Bearer t\r\n",
        "Connection: X-Remote-User, X-Remote-Group\r\n",
        "Connection: close, Authorization\r\nAuthorization: Bearer t\r\n",
    ] {
        let answer = stage.ask(&spoofed(more)).await;
        assert_eq!(answer.code, 200, "{more}");
        assert!(answer.has("fronted=false") && has_no_claim(&answer.body), "{more}{}", answer.body);
        assert_eq!(answer.has("authorization: Bearer t"), more.contains("Bearer"), "{}", answer.body);
    }
    let upgrade = spoofed("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n").replace("/api", "/tunnel");
    let mut raw = stage.connect(None).await;
    raw.write(&upgrade).await;
    assert!(raw.until("\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    let forwarded = raw.until("\r\n\r\n").await;
    assert!(has_no_claim(&forwarded), "{forwarded}");
}

#[tokio::test]
async fn a_good_certificate_is_named_in_full_and_alone() {
    let stage = Stage::new().await;
    let alice = stage.clients.sign("alice", &["dev", "ops"]);
    for more in
        ["", "Authorization: Bearer t\r\n", "Connection: X-Remote-User, X-Remote-Group, X-Remote-Uid\r\n"]
    {
        let answer = stage.connect(Some(&alice)).await.ask(&spoofed(more)).await;
        let claims: Vec<&str> = answer.body.lines().filter(|line| line.starts_with("x-remote-")).collect();
        assert_eq!(claims[..3], ["x-remote-user: alice", "x-remote-group: dev", "x-remote-group: ops"]);
        assert_eq!(claims.len(), 4, "{claims:?}");
        let id = "x-remote-extra-authentication.kubernetes.io%2fcredential-id: X509SHA256=";
        assert!(claims[3].starts_with(id) && answer.has("fronted=true"), "{claims:?}");
        assert!(!answer.body.contains("authorization"), "a token beside it counts for nothing");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_good_is_not_anonymous() {
    let stage = Stage::new().await;
    let stranger = Authority::new("clients").sign("root", &["system:masters"]);
    let front = stage.fronts.sign("front-proxy-client", &[]);
    let blank = stage.clients.sign(" root", &["system:masters"]);
    for identity in [&stranger, &front, &blank] {
        for more in ["", "Authorization: Basic cm9vdDpyb290\r\n", "Authorization: Bearer\r\n"] {
            let answer = stage.connect(Some(identity)).await.ask(&spoofed(more)).await;
            assert_eq!(answer.code, 401, "{more}");
            assert!(answer.body.contains(r#""reason":"Unauthorized""#), "{}", answer.body);
            assert!(answer.head.contains("audit-id: "), "{}", answer.head);
        }
        let answer = stage.connect(Some(identity)).await.ask(&spoofed("Authorization: Bearer t\r\n")).await;
        assert!(
            answer.has("fronted=false") && answer.has("authorization: Bearer t"),
            "kube-apiserver judges"
        );
        assert!(has_no_claim(&answer.body));
    }
    assert_eq!(
        stage.kube.seen.requests.load(std::sync::atomic::Ordering::SeqCst),
        3,
        "only those with a token"
    );
}

#[tokio::test]
async fn an_authority_that_goes_takes_its_certificates_along() {
    let stage = Stage::new().await;
    let alice = stage.clients.sign("alice", &[]);
    let mut raw = stage.connect(Some(&alice)).await;
    assert_eq!(raw.ask("GET /api HTTP/1.1\r\nHost: h\r\n\r\n").await.code, 200);
    let other = Authority::new("other clients");
    std::fs::write(stage.folder.path().join("clients.crt"), &other.pem).unwrap();
    assert!(stage.front.authorities.reload_if_changed().unwrap());
    assert_eq!(raw.ask("GET /api HTTP/1.1\r\nHost: h\r\n\r\n").await.code, 401, "on the same connection");
    let bob = other.sign("bob", &[]);
    assert!(
        stage
            .connect(Some(&bob))
            .await
            .ask("GET /api HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .has("x-remote-user: bob")
    );
}

#[tokio::test]
async fn impersonation_cannot_be_stripped_and_old_scopes_are_translated() {
    let stage = Stage::new().await;
    let answer = stage
        .ask(
            "GET /api HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\nImpersonate-User: weak\r\n\
            Impersonate-User-Scope: user:info\r\nConnection: Impersonate-User\r\n\r\n",
        )
        .await;
    assert!(answer.has("impersonate-user: weak"), "{}", answer.body);
    assert!(answer.has("impersonate-extra-scopes.authorization.openshift.io: user:info"), "{}", answer.body);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_its_streams_end() {
    let stage = Stage::new().await;
    let (token, other) = ("sha256~one", "sha256~two");
    let request = |path: &str, token: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n\r\n")
    };
    let mut watch = stage.connect(None).await;
    watch.write(&request("/stream/watch?watch=true", token)).await;
    watch.until("event\r\n").await;
    let mut waits = stage.connect(None).await;
    waits.write(&request("/hang?watch=true", token)).await;
    let mut tunnel = stage.connect(None).await;
    let upgrade =
        request("/tunnel", token).replace("Host", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nHost");
    tunnel.write(&upgrade).await;
    tunnel.until("\r\n\r\n").await;
    let mut stays = stage.connect(None).await;
    stays.write(&request("/stream/watch?watch=true", other)).await;
    stays.until("event\r\n").await;

    let name = picoshift_machinery::oauth_token::object_name(token).unwrap();
    stage.front.revocations.add(&name);
    stage.front.revocations.remove(&name);
    assert!(watch.has_ended().await && tunnel.has_ended().await);
    assert_eq!(waits.answer().await.code, 401);
    let refusal = stage.ask(&request("/api", token)).await;
    assert_eq!(refusal.code, 401);
    assert!(refusal.body.contains(r#""message":"Unauthorized""#), "{}", refusal.body);
    assert_eq!(stage.ask(&request("/api", other)).await.code, 200);
    let open = tokio::time::timeout(Duration::from_millis(100), stays.until("more")).await;
    assert!(open.is_err(), "another token's stream goes on");
}

/// As when somebody deletes the token that the request itself carries.
#[tokio::test]
async fn a_revocation_leaves_what_has_begun_and_does_not_last() {
    let stage = Stage::new().await;
    let token = "sha256~one";
    let head = format!("Host: h\r\nAuthorization: Bearer {token}\r\n");
    let mut asks = stage.connect(None).await;
    asks.write(&format!("DELETE /api HTTP/1.1\r\n{head}Content-Length: 5\r\n\r\nhel")).await;
    let mut reads = stage.connect(None).await;
    reads.write(&format!("GET /half HTTP/1.1\r\n{head}\r\n")).await;
    reads.until("first ").await;
    let mut watch = stage.connect(None).await;
    watch.write(&format!("GET /stream/watch?watch=true HTTP/1.1\r\n{head}\r\n")).await;
    watch.until("event\r\n").await;
    while stage.kube.seen.requests.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let name = picoshift_machinery::oauth_token::object_name(token).unwrap();
    stage.front.revocations.add(&name);
    stage.front.revocations.remove(&name);
    assert!(watch.has_ended().await);
    let answer = asks.ask("lo").await;
    assert_eq!(answer.code, 200);
    assert!(answer.body.ends_with("hello"), "{}", answer.body);
    stage.kube.seen.other_half.notify_one();
    assert_eq!(reads.until("second").await, "second");
    let next = asks.ask(&format!("GET /api HTTP/1.1\r\n{head}\r\n")).await;
    assert_eq!(next.code, 401, "on the same connection");
}
