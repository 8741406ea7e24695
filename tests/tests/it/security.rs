//! `security.openshift.io`: SecurityContextConstraints, those that every cluster has, and reviews of pods.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::unique;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const GROUP: &str = "/apis/security.openshift.io/v1";
const SCCS: &str = "/apis/security.openshift.io/v1/securitycontextconstraints";

/// A namespace with the annotations that a controller would set.
async fn ranged(admin: &Actor) -> anyhow::Result<String> {
    let namespace = new_namespace(admin, "judged").await?;
    let annotations = json!({
        "openshift.io/sa.scc.uid-range": "1000660000/10000",
        "openshift.io/sa.scc.supplemental-groups": "1000660000/10000",
        "openshift.io/sa.scc.mcs": "s0:c26,c5",
    });
    let change = json!({"metadata": {"annotations": annotations}});
    let path = format!("/api/v1/namespaces/{namespace}");
    admin.api.patch(&path, patch::MERGE, &change).await?.ok()?;
    Ok(namespace)
}

fn template(account: &str, uid: Option<i64>) -> Value {
    let security = uid.map_or(json!({}), |uid| json!({"runAsUser": uid}));
    json!({"spec": {"serviceAccountName": account,
        "containers": [{"name": "c", "image": "x", "securityContext": security}]}})
}

#[tokio::test]
async fn the_group_is_discovered_as_it_is() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let list = plane.admin()?.api.get(GROUP).await?.ok()?;
    let resources = list["resources"].as_array().into_iter().flatten();
    let shown: Vec<String> = resources
        .map(|r| {
            format!("{} {} {} {}", r["name"], r["singularName"], r["namespaced"], r["shortNames"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "podsecuritypolicyreviews podsecuritypolicyreview true null",
            "podsecuritypolicyselfsubjectreviews podsecuritypolicyselfsubjectreview true null",
            "podsecuritypolicysubjectreviews podsecuritypolicysubjectreview true null",
            "rangeallocations rangeallocation false null",
            "securitycontextconstraints securitycontextconstraints false [scc]",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn every_cluster_has_openshifts_sccs() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let kubectl = plane.admin()?.kubectl;
    let table = kubectl.ok(&["get", "scc", "restricted-v2", "anyuid", "privileged"]).await?;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let volumes = "[\"configMap\",\"csi\",\"downwardAPI\",\"emptyDir\",\"ephemeral\",\"image\",\"persistentVolumeClaim\",\"projected\",\"secret\"]";
    assert_eq!(
        lines,
        [
            vec![
                "NAME",
                "PRIV",
                "CAPS",
                "SELINUX",
                "RUNASUSER",
                "FSGROUP",
                "SUPGROUP",
                "PRIORITY",
                "READONLYROOTFS",
                "VOLUMES"
            ],
            vec![
                "restricted-v2",
                "false",
                "[\"NET_BIND_SERVICE\"]",
                "MustRunAs",
                "MustRunAsRange",
                "MustRunAs",
                "RunAsAny",
                "<no value>",
                "false",
                volumes
            ],
            vec![
                "anyuid",
                "false",
                "<no value>",
                "MustRunAs",
                "RunAsAny",
                "RunAsAny",
                "RunAsAny",
                "10",
                "false",
                volumes
            ],
            vec![
                "privileged",
                "true",
                "[\"*\"]",
                "RunAsAny",
                "RunAsAny",
                "RunAsAny",
                "RunAsAny",
                "<no value>",
                "false",
                "[\"*\"]"
            ],
        ]
    );
    let names = kubectl.ok(&["get", "scc", "-o", "name"]).await?;
    assert_eq!(names.lines().count(), 13 + names.matches("/e2e-scc").count(), "{names}");
    Ok(())
}

#[tokio::test]
async fn an_scc_is_made_changed_and_checked() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let name = unique("e2e-scc");
    let scc = json!({"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints",
        "metadata": {"name": name}, "runAsUser": {"type": "RunAsAny"}, "seLinuxContext": {"type": "RunAsAny"}});
    let made = admin.api.post(SCCS, &scc).await?.expect_code(201)?;
    assert_eq!(
        (&made["allowPrivilegeEscalation"], &made["users"], &made["priority"]),
        (&json!(true), &json!([]), &Value::Null)
    );
    ensure!(made["volumes"].as_array().is_some_and(|all| all.len() == 29), "{}", made["volumes"]);
    let path = format!("{SCCS}/{name}");
    let change = json!([{"op": "add", "path": "/users/-", "value": "u"}]);
    let changed = admin.api.patch(&path, patch::JSON, &change).await?.ok()?;
    assert_eq!((&changed["users"], &changed["metadata"]["generation"]), (&json!(["u"]), &json!(2)));
    let wrong = json!({"seLinuxContext": {"type": "Never"}});
    let refused = admin.api.patch(&path, patch::MERGE, &wrong).await?.expect_code(422)?;
    assert_eq!(
        refused["message"],
        format!(
            "SecurityContextConstraints.security.openshift.io \"{name}\" is invalid: seLinuxContext.type: Invalid value: \
             \"Never\": invalid strategy type.  Valid values are MustRunAs, RunAsAny"
        )
    );
    admin.api.delete(&path, &json!({})).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn reviews_follow_rbac_and_the_sccs() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = ranged(&admin).await?;
    let review = |kind: &'static str, plural: &'static str, spec: Value| {
        let path = format!("{GROUP}/namespaces/{namespace}/{plural}");
        let body = json!({"apiVersion": "security.openshift.io/v1", "kind": kind, "spec": spec});
        let api = &admin.api;
        async move { api.post(&path, &body).await?.expect_code(201) }
    };
    let subject = |user: &str, groups: Value, uid: Option<i64>| {
        let spec = json!({"template": template("", uid), "user": user, "groups": groups});
        review("PodSecurityPolicySubjectReview", "podsecuritypolicysubjectreviews", spec)
    };
    // Everybody who has logged in may use restricted-v2.
    let usual = subject("somebody", json!(["system:authenticated"]), None).await?;
    assert_eq!(usual["status"]["allowedBy"]["name"], "restricted-v2", "{usual}");
    let root = subject("somebody", json!(["system:authenticated"]), Some(0)).await?;
    assert_eq!(root["status"]["allowedBy"], Value::Null, "{root}");
    assert_eq!(root["status"]["reason"], "CantAssignSecurityContextConstraintProvider");

    // What a service account is given by a role, and only in its namespace.
    let account = format!("{GROUP}/namespaces/{namespace}/podsecuritypolicyreviews");
    admin.kubectl.ok(&["create", "serviceaccount", "robot", "-n", &namespace]).await?;
    let spec = json!({"template": template("robot", Some(0))});
    let body =
        json!({"apiVersion": "security.openshift.io/v1", "kind": "PodSecurityPolicyReview", "spec": spec});
    let before = admin.api.post(&account, &body).await?.expect_code(201)?;
    assert_eq!(before["status"]["allowedServiceAccounts"], Value::Null, "{before}");
    let role = "--clusterrole=system:openshift:scc:anyuid";
    let robot = format!("--serviceaccount={namespace}:robot");
    admin.kubectl.ok(&["create", "rolebinding", "any", "-n", &namespace, role, &robot]).await?;
    let allowed = || async {
        let answer = admin.api.post(&account, &body).await?.expect_code(201)?;
        let first = &answer["status"]["allowedServiceAccounts"][0];
        let found = first["name"] == "robot" && first["allowedBy"]["name"] == "anyuid";
        Ok(if found { Ok(first.clone()) } else { Err(answer.to_string()) })
    };
    // Sooner than an answer that is remembered is forgotten: the review before said no.
    let first = eventually("the service account may use anyuid", 5, allowed).await?;
    assert_eq!(
        first["template"]["spec"]["securityContext"]["seLinuxOptions"]["level"], "s0:c26,c5",
        "{first}"
    );

    let own = review(
        "PodSecurityPolicySelfSubjectReview",
        "podsecuritypolicyselfsubjectreviews",
        json!({"template": template("", Some(0))}),
    )
    .await?;
    ensure!(own["status"]["allowedBy"]["name"] == "anyuid", "the administrator may use all: {own}");
    Ok(())
}
