//! What `docs/operating.md` says of the audit log and of the log, on a server of its own.

use std::path::Path;

use anyhow::Context as _;
use bytes::Bytes;
use http::Method;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use picoshift_tests::ControlPlane;
use picoshift_tests::eventually::eventually;
use picoshift_tests::instance::Instance;
use picoshift_tests::objects::{OAUTH_GROUP, route, routes_path, unique};
use serde_json::{Value, json};

use crate::support::{new_project, newcomer};

const POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create]
  resources: [{group: route.openshift.io, resources: [routes]}]
- level: Metadata
  resources: [{group: route.openshift.io}]
";

/// The events of a log that are about one Route, when there are so many.
async fn events(log: &Path, name: &str, count: usize) -> anyhow::Result<Vec<Value>> {
    eventually("the audit log to have its lines", 30, || async {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let events: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let about = |event: &Value| {
            let named = |at: &str| event.pointer(at).is_some_and(|found| found == name);
            named("/objectRef/name") || named("/requestObject/metadata/name")
        };
        let events: Vec<Value> = events.into_iter().filter(about).collect();
        if events.len() >= count { Ok(Ok(events)) } else { Ok(Err(text)) }
    })
    .await
}

#[tokio::test]
async fn requests_are_audited_as_the_policy_says() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let directory = tempfile::tempdir()?;
    let (policy, log) = (directory.path().join("policy.yaml"), directory.path().join("audit.log"));
    std::fs::write(&policy, POLICY)?;
    let flags = ["env".to_owned()].into_iter().chain([
        format!("PICOSHIFT_AUDIT_POLICY_FILE={}", policy.display()),
        format!("PICOSHIFT_AUDIT_LOG_PATH={}", log.display()),
    ]);
    let mut server =
        Instance::start_in(&plane, &directory.path().join("state/store.redb"), flags.collect()).await?;

    let alice = newcomer(&plane, "alice")?;
    let path = routes_path(&new_project(&alice, "audited").await?);
    let her = server.client(&plane.sign(&alice.name, Some(OAUTH_GROUP))?)?;
    let mallory = unique("mallory");
    let his = server.client(&plane.sign(&mallory, Some(OAUTH_GROUP))?)?;
    her.post(&path, &route("seen")).await?.expect_code(201)?;
    his.get(&format!("{path}/seen")).await?.expect_code(403)?;
    her.post(&path, &json!({"apiVersion": "v1"})).await?.expect_code(400)?;

    let found = events(&log, "seen", 2).await?;
    let [created, refused] = &found[..] else { anyhow::bail!("other events: {found:?}") };
    assert_eq!(
        (&created["level"], &created["stage"]),
        (&json!("RequestResponse"), &json!("ResponseComplete"))
    );
    assert_eq!((&created["verb"], &created["user"]["username"]), (&json!("create"), &json!(alice.name)));
    assert_eq!(created["requestObject"]["kind"], "Route");
    assert!(created["responseObject"]["metadata"]["uid"].is_string(), "{created}");
    assert_eq!(created["responseStatus"]["code"], 201);
    assert_eq!((&refused["level"], &refused["verb"]), (&json!("Metadata"), &json!("get")));
    assert_eq!(
        (&refused["user"]["username"], &refused["responseStatus"]["code"]),
        (&json!(mallory), &json!(403))
    );
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert!(refused.get("requestObject").is_none() && refused.get("responseObject").is_none(), "{refused}");

    // Rotated: what comes after goes to a new file, and nothing is in both.
    let old = directory.path().join("audit.log.1");
    std::fs::rename(&log, &old)?;
    kill(Pid::from_raw(server.pid()?), Signal::SIGHUP)?;
    // The next line makes it, once the signal has arrived.
    eventually("a new file", 30, || async {
        her.get(&format!("{path}/seen")).await?.expect_code(200)?;
        Ok(log.exists().then_some(()).ok_or_else(String::new))
    })
    .await?;
    her.post(&path, &route("later")).await?.expect_code(201)?;
    assert_eq!(events(&log, "later", 1).await?.len(), 1);
    assert!(!std::fs::read_to_string(&old)?.contains("later"));

    // What was answered is in the file when the server has ended as asked.
    her.post(&path, &route("last")).await?.expect_code(201)?;
    server.terminate()?;
    server.ended().await?;
    assert!(std::fs::read_to_string(&log)?.contains(r#""name":"last""#));
    Ok(())
}

#[tokio::test]
async fn who_may_turns_the_log_up_and_down() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let directory = tempfile::tempdir()?;
    let server = Instance::start(&plane, &directory.path().join("state/store.redb")).await?;
    let operator = unique("operator");
    let http = server.client(&plane.sign(&operator, None)?)?;
    let put = async |level: &'static str| {
        http.send(http.request(Method::PUT, "/debug/flags/v", None, Bytes::from(level))?).await
    };
    assert_eq!(put("6").await?.status, 403);

    let admin = plane.admin()?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"nonResourceURLs": ["/debug/flags/v"], "verbs": ["put"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": operator}, "rules": [rule]});
    admin.api.post(&format!("{rbac}/clusterroles"), &role).await?.expect_code(201)?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": operator},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": operator},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": operator}]});
    admin.api.post(&format!("{rbac}/clusterrolebindings"), &binding).await?.expect_code(201)?;

    eventually("the permission", 30, || async {
        let answer = put("6").await?;
        Ok((answer.status == 200).then_some(()).ok_or_else(|| answer.text()))
    })
    .await?;
    let lines =
        || Ok::<_, anyhow::Error>(server.log_text()?.lines().filter(|line| line.contains("DEBUG")).count());
    eventually("debug lines", 30, || async {
        http.get("/healthz").await?;
        Ok((lines()? > 0).then_some(()).ok_or_else(|| "none".to_owned()))
    })
    .await?;
    let refused = put("loud").await?;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(put("2").await?.status, 200);
    let before = lines()?;
    for _ in 0..20 {
        http.get("/healthz").await?;
    }
    assert_eq!(lines()?, before, "turned down again");
    for path in ["clusterrolebindings", "clusterroles"] {
        let deleted = admin.api.delete(&format!("{rbac}/{path}/{operator}"), &json!({})).await?;
        deleted.ok().context("cleaning up")?;
    }
    Ok(())
}
