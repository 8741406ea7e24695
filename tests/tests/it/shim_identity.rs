//! Through the shim everybody is who they are without it, and nobody else.

use anyhow::ensure;
use picoshift_tests::http::Http;
use picoshift_tests::objects::unique;
use picoshift_tests::shim::{Shim, who_am_i};
use picoshift_tests::tls::Protocol;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{assert_forbidden, new_namespace, new_project, newcomer};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const ROUTES: &str = "/apis/route.openshift.io/v1/namespaces/kube-system/routes";

/// A service account's token in a new namespace, and its user name.
async fn robot(admin: &Actor) -> anyhow::Result<(String, String)> {
    let namespace = new_namespace(admin, "shim").await?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    admin.api.post(&accounts, &json!({"metadata": {"name": "robot"}})).await?.expect_code(201)?;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.api.post(&format!("{accounts}/robot/token"), &request).await?.expect_code(201)?;
    let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
    Ok((token, format!("system:serviceaccount:{namespace}:robot")))
}

fn bearer(http: &Http, token: &str) -> anyhow::Result<Http> {
    http.clone().with_header("Authorization", &format!("Bearer {token}"))
}

fn spoofed(http: &Http) -> anyhow::Result<Http> {
    let mut http = http.clone();
    for (name, value) in [
        ("X-Remote-User", "admin"),
        ("X_Remote_User", "admin"),
        ("X-Remote-Group", "system:masters"),
        ("x_remote-group", "system:masters"),
        ("X-Remote-Uid", "1"),
        ("X-Remote-Extra-Scopes.authorization.openshift.io", "user:full"),
    ] {
        http = http.with_header(name, value)?;
    }
    Ok(http)
}

#[tokio::test]
async fn everybody_is_who_they_are_without_it() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let (token, _) = robot(&admin).await?;
    let eve = plane.sign(&unique("eve"), Some("team"))?;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let with = spoofed(&shim.client(Some(&eve), protocol)?)?;
        let seen = who_am_i(&with).await?;
        assert_eq!(seen, who_am_i(&shim.behind(Some(&eve))?).await?, "credential id included");
        // A certificate comes before a token, good or bad.
        assert_eq!(who_am_i(&bearer(&with, "bad")?).await?, seen);
        assert_eq!(who_am_i(&bearer(&with, &token)?).await?, seen);
        let robot = who_am_i(&bearer(&spoofed(&shim.client(None, protocol)?)?, &token)?).await?;
        assert_eq!(robot, who_am_i(&bearer(&shim.behind(None)?, &token)?).await?);
    }
    // Tokens are reviewed as without it, audiences included.
    for audiences in [json!([]), json!(["istio-ca"])] {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let admin_identity = plane.sign("reviewer", Some("system:masters"))?;
        let through = shim.client(Some(&admin_identity), Protocol::Http2)?.post(path, &review).await?;
        let direct = shim.behind(Some(&admin_identity))?.post(path, &review).await?;
        assert_eq!(through.expect_code(201)?["status"], direct.expect_code(201)?["status"]);
    }
    Ok(())
}

#[tokio::test]
async fn spoofed_headers_change_nothing_on_any_path() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let (token, robot) = robot(&admin).await?;
    let name = unique("eve");
    let eve = plane.sign(&name, Some("team"))?;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let nobody = spoofed(&shim.client(None, protocol)?)?;
        let callers = [
            ("system:anonymous", nobody.clone()),
            (robot.as_str(), bearer(&nobody, &token)?),
            (name.as_str(), spoofed(&shim.client(Some(&eve), protocol)?)?),
        ];
        for (user, http) in callers {
            for path in [SECRETS, ROUTES] {
                assert_forbidden(&http.get(path).await?.expect_code(403)?, user);
            }
            let exec = format!("{}/x/exec?command=sh", SECRETS.replace("secrets", "pods"));
            assert_forbidden(&http.get(&exec).await?.expect_code(403)?, user);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_as_without_it() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (shim, admin) = (Shim::start(&plane, &[]).await?, plane.admin()?);
    let (token, robot) = robot(&admin).await?;
    // Signed by the front proxy's authority, which vouches for no client.
    let pki = plane.home.state().join("pki");
    let read = |name: &str| std::fs::read_to_string(pki.join(name));
    let front = picoshift_tests::identity::Identity {
        certificate: read("front-proxy-client.crt")?,
        key: read("front-proxy-client.key")?,
    };
    let (through, behind) = (shim.client(Some(&front), Protocol::Http1)?, shim.behind(Some(&front))?);
    for path in [SECRETS, ROUTES, "/version", "/healthz"] {
        let (one, other) = (through.get(path).await?, behind.get(path).await?);
        assert_eq!((one.status, one.json()?), (other.status, other.json()?), "{path}");
        assert_eq!(one.status, 401);
        let names = |answer: &picoshift_tests::http::Answer| {
            let mut names: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
            names.sort();
            names
        };
        assert_eq!(names(&one), names(&other), "the same headers");
        let protobuf = "application/vnd.kubernetes.protobuf";
        let (one, other) = (through.get_as(path, protobuf).await?, behind.get_as(path, protobuf).await?);
        assert_eq!(one.body, other.body, "{path}");
    }
    // It may not speak for others, and a good token beside it counts.
    spoofed(&through)?.get(SECRETS).await?.expect_code(401)?;
    assert_forbidden(&bearer(&spoofed(&through)?, &token)?.get(SECRETS).await?.expect_code(403)?, &robot);
    Ok(())
}

/// What a caller sees of our groups, in what must not depend on the way.
async fn sees(http: &Http, namespace: &str) -> anyhow::Result<Vec<Value>> {
    let mut seen = Vec::new();
    for path in [
        "/apis/project.openshift.io/v1/projects".to_owned(),
        "/apis/user.openshift.io/v1/users/~".to_owned(),
        format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes"),
        "/apis/route.openshift.io/v1/namespaces/kube-system/routes".to_owned(),
        "/apis/route.openshift.io/v1".to_owned(),
        "/apis/route.openshift.io/v2".to_owned(),
        "/apis/image.openshift.io/v1/nonsense".to_owned(),
    ] {
        let answer = http.get(&path).await?;
        let mut value = answer.json().unwrap_or_else(|_| answer.text().into());
        // Others make and delete projects meanwhile.
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        seen.push(json!({"path": path, "code": answer.status.as_u16(), "body": value}));
    }
    Ok(seen)
}

#[tokio::test]
async fn the_direct_way_and_the_long_one_agree() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let (on, off) = (Shim::start(&plane, &[]).await?, Shim::start(&plane, &["--direct-groups=off"]).await?);
    let alice = newcomer(&plane, "alice")?;
    let namespace = new_project(&alice, "shim").await?;
    let identity = plane.sign(&alice.name, Some("system:authenticated:oauth"))?;
    let (token, robot) = robot(&admin).await?;
    let master = plane.sign("master", Some("system:masters"))?;
    let each = |shim: &Shim| -> anyhow::Result<Vec<Http>> {
        let (own, nobody) =
            (shim.client(Some(&identity), Protocol::Http2)?, shim.client(None, Protocol::Http2)?);
        let as_alice =
            shim.client(Some(&master), Protocol::Http2)?.with_header("Impersonate-User", &alice.name)?;
        Ok(vec![
            own.clone(),
            own.with_header("Impersonate-User", "admin")?,
            as_alice.clone(),
            as_alice.clone().with_header("Impersonate-Group", "system:authenticated:oauth")?,
            as_alice.with_header("Impersonate-User-Scope", "user:info")?,
            bearer(&nobody, &token)?,
            bearer(&nobody, &token)?.with_header("Impersonate-User", "admin")?,
            bearer(&nobody, "sha256~nonsense")?,
            nobody,
        ])
    };
    for (direct, long) in each(&on)?.iter().zip(each(&off)?.iter()) {
        for _ in 0..2 {
            assert_eq!(sees(direct, &namespace).await?, sees(long, &namespace).await?);
        }
    }
    // One token, other headers: never the identity of the request before.
    let http = bearer(&on.client(None, Protocol::Http2)?, &token)?;
    for _ in 0..3 {
        assert_forbidden(&http.get(ROUTES).await?.expect_code(403)?, &robot);
        let other =
            http.clone().with_header("Impersonate-User", "admin")?.get(ROUTES).await?.expect_code(403)?;
        let message = other["message"].as_str().unwrap_or_default();
        ensure!(message.contains("cannot impersonate resource \"users\""), "{message}");
    }
    let counters = on.status.get("/metrics").await?.text();
    let direct =
        picoshift_tests::metrics::sum(&counters, "picoshift_shim_requests_total", &[("kind", "direct")]);
    ensure!(direct > 20.0, "{direct} went directly");
    let counters = off.status.get("/metrics").await?.text();
    let direct =
        picoshift_tests::metrics::sum(&counters, "picoshift_shim_requests_total", &[("kind", "direct")]);
    ensure!(direct < 0.5, "{direct} went directly");
    let log = on.log_text()?;
    ensure!(!log.contains(&token) && log.contains("path=\"/apis/") | log.contains("path=/apis/"), "{log}");
    Ok(())
}
