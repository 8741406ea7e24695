//! The shim while things change around it: certificates, kube-apiserver, its own end.

use anyhow::{Context as _, ensure};
use http::header::RETRY_AFTER;
use nix::sys::signal::Signal;
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::objects::unique;
use picoshift_tests::process::KUBE_APISERVER;
use picoshift_tests::shim::Shim;
use picoshift_tests::tls::Protocol;
use serde_json::json;

#[tokio::test]
async fn certificates_are_renewed_under_open_streams_and_a_drain_ends_them() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let mut shim = Shim::start(&plane, &[]).await?;
    let master = plane.sign("master", Some("system:masters"))?;
    let http = shim.client(Some(&master), Protocol::Http2)?;
    let name = unique("shim-renewal");
    let mut watch =
        http.watch(&format!("/api/v1/namespaces?watch=true&fieldSelector=metadata.name={name}")).await?;
    shim.renew_certificate()?;
    eventually("the new certificate", 30, || async {
        let taken = shim.log_text()?.contains("new=true");
        Ok(if taken { Ok(()) } else { Err("not looked at".to_owned()) })
    })
    .await?;
    shim.client(Some(&master), Protocol::Http1)?.get("/version").await?.expect_code(200)?;
    http.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?.expect_code(201)?;
    watch.until(30, |event| event.name() == name).await.context("the old connection goes on")?;
    shim.signal(Signal::SIGTERM)?;
    shim.ended().await?;
    Ok(())
}

#[tokio::test]
async fn a_restart_of_kube_apiserver_is_a_503_and_no_more() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let shim = Shim::start(&plane, &[]).await?;
    let master = plane.sign("master", Some("system:masters"))?;
    let http = shim.client(Some(&master), Protocol::Http2)?;
    http.get("/version").await?.expect_code(200)?;
    let mut watch = http.watch("/api/v1/namespaces?watch=true").await?;
    plane.home.component(KUBE_APISERVER)?.kill_9()?;
    let ended = watch.until(30, |_| false).await;
    ensure!(ended.is_err(), "a watch that broke must not look whole");
    let answer = http.get("/version").await?;
    let status = answer.expect_code(503)?;
    assert_eq!(status["reason"], "ServiceUnavailable");
    ensure!(answer.headers.contains_key(RETRY_AFTER), "nothing was begun");
    plane.up().await?;
    eventually("kube-apiserver behind the shim", 60, || async {
        let answer = http.get("/readyz").await?;
        Ok(if answer.status == 200 { Ok(()) } else { Err(answer.text()) })
    })
    .await?;
    http.get("/api/v1/namespaces").await?.expect_code(200)?;
    Ok(())
}
