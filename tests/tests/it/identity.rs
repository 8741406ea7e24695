//! Who a caller is: headers of the front proxy are believed only from the front proxy.

use anyhow::ensure;
use picoshift_tests::ControlPlane;
use picoshift_tests::http::Http;
use picoshift_tests::objects::{PROJECTS, names, routes_path, unique};
use serde_json::json;

use crate::support::{assert_forbidden, new_namespace, newcomer};

fn spoofed(http: &Http) -> anyhow::Result<Http> {
    http.clone()
        .with_header("X-Remote-User", "admin")?
        .with_header("X-Remote-Group", "system:masters")?
        .with_header("X-Remote-Group", "system:authenticated")?
        .with_header("X-Remote-Uid", "1")?
        .with_header("X-Remote-Extra-Scopes", "user:full")
}

#[tokio::test]
async fn spoofed_headers_without_a_certificate_are_nobodys() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let nobody = plane.anonymous()?;
    for http in [&nobody.api, nobody.direct()?] {
        let http = spoofed(http)?;
        for path in [PROJECTS.to_owned(), routes_path("kube-system"), "/metrics".to_owned()] {
            let refusal = http.get(&path).await?.expect_code(403)?;
            assert_forbidden(&refusal, "system:anonymous");
        }
    }
    Ok(())
}

#[tokio::test]
async fn spoofed_headers_with_a_users_certificate_change_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let eve = newcomer(&plane, "eve")?;
    for http in [&eve.api, eve.direct()?] {
        let http = spoofed(http)?;
        assert_forbidden(&http.get(&routes_path("kube-system")).await?.expect_code(403)?, &eve.name);
        let list = http.get(PROJECTS).await?.ok()?;
        ensure!(names(&list).is_empty(), "sees {:?}", names(&list));
    }
    Ok(())
}

#[tokio::test]
async fn a_token_of_a_service_account_is_known_directly() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "bearer").await?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    admin.api.post(&accounts, &json!({"metadata": {"name": "robot"}})).await?.expect_code(201)?;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.api.post(&format!("{accounts}/robot/token"), &request).await?.expect_code(201)?;
    let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
    let user = format!("system:serviceaccount:{namespace}:robot");
    let nobody = plane.anonymous()?;
    for http in [&nobody.api, nobody.direct()?] {
        let http = http.clone().with_header("Authorization", &format!("Bearer {token}"))?;
        assert_forbidden(&http.get(&routes_path(&namespace)).await?.expect_code(403)?, &user);
        http.get(PROJECTS).await?.expect_code(200)?;
    }
    let http = nobody.direct()?.clone().with_header("Authorization", "Bearer no-such-token")?;
    let refusal = http.get(PROJECTS).await?.expect_code(401)?;
    assert_eq!(refusal["reason"], "Unauthorized");
    Ok(())
}

#[tokio::test]
async fn three_hundred_groups_arrive() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "groups").await?;
    let mut groups: Vec<String> = (0..300).map(|number| format!("team-{number}")).collect();
    groups.push("system:authenticated".to_owned());
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "last"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team-299"}],
    });
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    admin.api.post(&path, &binding).await?.expect_code(201)?;
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let member = plane.impersonated(&unique("member"), &groups)?;
    member.api.get(&routes_path(&namespace)).await?.expect_code(200)?;
    ensure!(names(&member.api.get(PROJECTS).await?.ok()?).contains(&namespace.as_str()), "not visible");
    Ok(())
}
