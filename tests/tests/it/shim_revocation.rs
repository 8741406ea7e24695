//! A token that is deleted ends: at once through the shim, its streams with it, and soon wherever kube-apiserver remembers it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::Http;
use picoshift_tests::login;
use picoshift_tests::oauth::object_name;
use picoshift_tests::objects::{PROJECT_REQUESTS, project_request, unique};
use picoshift_tests::tls::Protocol;
use picoshift_tests::watch::Watch;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::json;
use tokio::time::Instant;

const TOKENS: &str = "/apis/oauth.openshift.io/v1/oauthaccesstokens";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ME: &str = "/apis/user.openshift.io/v1/users/~";
/// Until streams through the shim have ended.
const THROUGH: Duration = Duration::from_secs(2);
/// Until nobody takes the token any more: kube-apiserver remembers a good one for ten seconds.
const ANYWHERE: Duration = Duration::from_secs(12);
/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for the end of a watch, whole or not.
async fn end_of(watch: &mut Watch) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while let Ok(Some(_)) = watch.next_before(deadline).await {}
    ensure!(Instant::now() < deadline, "the watch goes on");
    Ok(())
}

/// Whether TokenReview takes the token.
async fn is_reviewed(admin: &Actor, token: &str) -> anyhow::Result<bool> {
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let answer = admin.api.post(REVIEWS, &review).await?.expect_code(201)?;
    Ok(answer["status"]["authenticated"] == true)
}

/// How long after `since` the token is nobody's at kube-apiserver itself, and in TokenReview.
async fn forgotten(
    direct: &Http,
    admin: &Actor,
    token: &str,
    since: Instant,
) -> anyhow::Result<(Duration, Duration)> {
    let api = eventually("kube-apiserver refuses the token", PATIENCE.as_secs(), || async {
        let code = direct.get("/version").await?.status.as_u16();
        Ok(if code == 401 { Ok(since.elapsed()) } else { Err(format!("answered {code}")) })
    });
    let review = eventually("TokenReview refuses the token", PATIENCE.as_secs(), || async {
        let taken = is_reviewed(admin, token).await?;
        Ok(if taken { Err("it is taken".to_owned()) } else { Ok(since.elapsed()) })
    });
    tokio::try_join!(api, review)
}

#[tokio::test]
async fn a_deleted_token_ends_at_once_here_and_soon_everywhere() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    for by_owner in [false, true] {
        let token = login::token(&plane, "user1", "user1").await?;
        let bearer = format!("Bearer {token}");
        let through = plane.anonymous()?.api.with_header("authorization", &bearer)?;
        let direct = Http::new(&plane.home.kube_apiserver()?, None, Protocol::Http2)?
            .with_header("authorization", &bearer)?;
        let project = unique("revoked");
        through.post(PROJECT_REQUESTS, &project_request(&project)).await?.expect_code(201)?;
        // One of kube-apiserver's, and one that goes straight to our API server.
        let maps = format!("/api/v1/namespaces/{project}/configmaps?watch=true");
        let mut watches = [
            through.watch(&maps).await?,
            through.watch("/apis/project.openshift.io/v1/projects?watch=true").await?,
        ];
        // Everybody has just seen that it is good.
        direct.get(ME).await?.expect_code(200)?;
        ensure!(is_reviewed(&admin, &token).await?, "a good token is refused");

        let object = format!("{TOKENS}/{}", object_name(&token));
        let who = if by_owner { &through } else { &admin.api };
        who.delete(&object, &json!({})).await?.expect_code(200).context("the answer of who deletes it")?;
        let deleted = Instant::now();
        let (end, (api, review)) = tokio::try_join!(
            async {
                for watch in &mut watches {
                    end_of(watch).await?;
                }
                let end = deleted.elapsed();
                through.get(ME).await?.expect_code(401).context("once its streams have ended")?;
                Ok(end)
            },
            forgotten(&direct, &admin, &token, deleted)
        )?;
        let times = format!(
            "by its owner: {by_owner}; streams {end:?}, kube-apiserver {api:?}, TokenReview {review:?}"
        );
        eprintln!("{times}");
        ensure!(end <= THROUGH && api <= ANYWHERE && review <= ANYWHERE, "too late: {times}");
        admin.api.delete(&format!("/api/v1/namespaces/{project}"), &json!({})).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_console_is_where_its_config_map_says() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (admin, nobody) = (plane.admin()?, plane.anonymous()?);
    let maps = "/api/v1/namespaces/openshift-config-managed/configmaps";
    let name = "console-public";
    let leads = |wanted: &'static str| {
        let nobody = &nobody;
        move || async move {
            let answer = nobody.api.get("/console").await?;
            let location = answer.headers.get("location").map(|value| value.to_str().unwrap_or_default());
            let seen =
                format!("{} {} {}", answer.status.as_u16(), location.unwrap_or_default(), answer.text());
            Ok(if seen == wanted { Ok(()) } else { Err(seen) })
        }
    };
    admin.api.delete(&format!("{maps}/{name}"), &json!({})).await?;
    let nowhere = "500  redirection failed: console URL not found\n";
    eventually("there is no console", 30, leads(nowhere)).await?;
    let map =
        json!({"metadata": {"name": name}, "data": {"consoleURL": "https://console.apps.example/?a=1&b"}});
    admin.api.post(maps, &map).await?.expect_code(201)?;
    let there = "302 https://console.apps.example/?a=1&b <a href=\"https://console.apps.example/?a=1&amp;b\">Found</a>.\n\n";
    eventually("the console is there", 30, leads(there)).await?;
    admin.api.delete(&format!("{maps}/{name}"), &json!({})).await?.expect_code(200)?;
    eventually("the console is gone", 30, leads(nowhere)).await
}
