//! Nobody is logged out by a restart, whichever component it is; kube:admin is when the Secret changes.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::{Http, patch};
use picoshift_tests::login;
use picoshift_tests::process::{KUBE_APISERVER, OUR_CONTROLLERS, OUR_SERVER, SHIM};
use picoshift_tests::tls::Protocol;
use serde_json::json;

const CALLER: &str = "/apis/user.openshift.io/v1/users/~";
const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/kubeadmin";
/// kube:admin's password has to have 23 characters.
const PASSWORD: &str = "kube-admin-password-of-a-test";
/// Its hash, of the cheapest kind.
const HASH: &str = "$2y$04$abcdefghijklmnopqrstuuA4NaaGQcN8pULQx4DJQyY.z0aAqiiau";

fn bearer(plane: &ControlPlane, token: &str) -> anyhow::Result<Http> {
    let http = Http::new(&plane.stage.kube, None, Protocol::Http1)?;
    http.with_header("authorization", &format!("Bearer {token}"))
}

async fn name(http: &Http) -> anyhow::Result<Result<String, String>> {
    let answer = http.get(CALLER).await?;
    Ok(match answer.status.as_u16() {
        200 => Ok(answer.json()?["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
        other => Err(format!("answered {other}: {}", answer.text())),
    })
}

#[tokio::test]
async fn restarts_log_nobody_out() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let known = json!({"stringData": {"kubeadmin": HASH}});
    admin.api.patch(SECRET, patch::MERGE, &known).await?.expect_code(200)?;
    let kube_admin = eventually("kube:admin logs in", 30, async || {
        Ok(login::token(&plane, "kubeadmin", PASSWORD).await.map_err(|err| format!("{err:#}")))
    });
    let kube_admin = bearer(&plane, &kube_admin.await?)?;
    let user = bearer(&plane, &login::token(&plane, "user1", "user1").await?)?;
    let nodes = kube_admin.get("/api/v1/nodes").await?;
    ensure!(nodes.status == 200, "kube:admin may not list nodes: {}", nodes.text());

    for component in [OUR_CONTROLLERS, SHIM, OUR_SERVER, KUBE_APISERVER] {
        plane.home.component(component)?.kill_9()?;
        plane.up().await?;
        for (http, expected) in [(&kube_admin, "kube:admin"), (&user, "user1")] {
            let is =
                eventually(&format!("{expected} after the end of {component}"), 30, || name(http)).await?;
            assert_eq!(is, expected);
        }
        login::token(&plane, "user1", "user1").await?;
    }

    let other = json!({"stringData": {"kubeadmin": HASH.replace("$04$", "$05$")}});
    admin.api.patch(SECRET, patch::MERGE, &other).await?.expect_code(200)?;
    eventually("another Secret ends kube:admin's tokens", 15, async || {
        let code = kube_admin.get("/api/v1/nodes").await?.status.as_u16();
        Ok(if code == 401 { Ok(()) } else { Err(format!("answered {code}")) })
    })
    .await?;
    assert_eq!(name(&user).await?.as_deref(), Ok("user1"));
    Ok(())
}
