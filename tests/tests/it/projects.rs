//! A plain user's life with a project of her own, and what others see of it: nothing.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{
    OAUTH_GROUP, PROJECT_REQUESTS, PROJECTS, names, project_path, project_request, role_binding, unique,
};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::json;

use crate::support::{assert_forbidden, new_project, newcomer};

const WATCH: &str = "/apis/project.openshift.io/v1/projects?watch=true&timeoutSeconds=120";

#[tokio::test]
async fn a_user_by_certificate_owns_her_project() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, bob) = (newcomer(&plane, "alice")?, newcomer(&plane, "bob")?);
    life_of_a_project(&alice, &bob, &plane.admin()?).await
}

#[tokio::test]
async fn an_impersonated_user_owns_her_project() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let somebody = |name: &str| plane.impersonated(&unique(name), &["system:authenticated", OAUTH_GROUP]);
    life_of_a_project(&somebody("alice")?, &somebody("bob")?, &plane.admin()?).await
}

async fn life_of_a_project(alice: &Actor, bob: &Actor, admin: &Actor) -> anyhow::Result<()> {
    let mut hers = alice.api.watch(WATCH).await?;
    let mut his = bob.api.watch(WATCH).await?;
    let name = unique("hers");
    let path = project_path(&name);

    let made = alice.api.post(PROJECT_REQUESTS, &project_request(&name)).await?.expect_code(201)?;
    assert_eq!(made["kind"], "Project");
    assert_eq!(made["metadata"]["annotations"]["openshift.io/requester"], alice.name.as_str());
    assert_eq!(made["metadata"]["annotations"]["openshift.io/display-name"], "A project");
    assert_eq!(made["metadata"]["annotations"]["openshift.io/description"], "made by a test");

    // At once, not "within a second": who has asked for a project sees it in the next request.
    ensure!(names(&alice.api.get(PROJECTS).await?.ok()?).contains(&name.as_str()), "not in her list");
    ensure!(!names(&bob.api.get(PROJECTS).await?.ok()?).contains(&name.as_str()), "in his list");
    ensure!(names(&admin.api.get(PROJECTS).await?.ok()?).contains(&name.as_str()), "not in the admin's list");
    hers.until(20, |event| event.kind == "ADDED" && event.name() == name).await?;

    alice.api.get(&path).await?.expect_code(200)?;
    admin.api.get(&path).await?.expect_code(200)?;
    assert_forbidden(&bob.api.get(&path).await?.expect_code(403)?, &bob.name);

    let title = json!({"metadata": {"annotations": {"openshift.io/display-name": "Renamed"}}});
    assert_forbidden(&bob.api.patch(&path, patch::MERGE, &title).await?.expect_code(403)?, &bob.name);
    let renamed = alice.api.patch(&path, patch::MERGE, &title).await?.expect_code(200)?;
    assert_eq!(renamed["metadata"]["annotations"]["openshift.io/display-name"], "Renamed");
    let event = hers.until(20, |event| event.kind == "MODIFIED" && event.name() == name).await?;
    ensure!(event.object["kind"] == "Project", "no Project in the event: {:?}", event.object);

    assert_forbidden(&bob.api.delete(&path, &json!({})).await?.expect_code(403)?, &bob.name);
    let deleted = alice.api.delete(&path, &json!({})).await?.expect_code(200)?;
    assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")), "{deleted}");
    hers.until(60, |event| event.kind == "DELETED" && event.name() == name).await?;
    gone(admin, &name).await?;

    // His watch was open all the time; the project of his own shows that it works.
    let own = new_project(bob, "his").await?;
    let seen = his.collect_until(20, |event| event.kind == "ADDED" && event.name() == own).await?;
    let leaked: Vec<_> = seen.iter().filter(|event| event.name() == name).collect();
    ensure!(leaked.is_empty(), "he saw {leaked:?}");
    Ok(())
}

async fn gone(admin: &Actor, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{name}");
    let look = || async {
        let answer = admin.api.get(&path).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    };
    eventually("the namespace goes", 60, look).await?;
    let answer = admin.api.get(&project_path(name)).await?.expect_code(404)?;
    assert_eq!(answer["message"], format!("namespaces \"{name}\" not found"));
    Ok(())
}

#[tokio::test]
async fn who_did_not_come_by_oauth_gets_the_real_refusal() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let carol = plane.by_certificate(&unique("carol"), None)?;
    let body = project_request(&unique("never"));
    for http in [&carol.api, carol.direct()?] {
        let refusal = http.post(PROJECT_REQUESTS, &body).await?.expect_code(403)?;
        assert_forbidden(&refusal, &carol.name);
        let message = format!(
            "projectrequests.project.openshift.io is forbidden: User \"{}\" cannot create resource \
             \"projectrequests\" in API group \"project.openshift.io\" at the cluster scope",
            carol.name
        );
        assert_eq!(refusal["message"], message);
    }
    let refusal = carol.api.get(PROJECT_REQUESTS).await?.expect_code(403)?;
    assert_eq!(refusal["message"], "You may not request a new project via this API.");
    Ok(())
}

#[tokio::test]
async fn forbidden_and_taken_names_answer_as_openshift() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let taken = new_project(&alice, "taken").await?;
    let refuse = |name: &str, code: u16, message: String| {
        let (alice, body) = (alice.clone(), project_request(name));
        async move {
            let answer = alice.api.post(PROJECT_REQUESTS, &body).await?.expect_code(code)?;
            assert_eq!(answer["message"], message);
            anyhow::Ok(())
        }
    };
    let prefix = "project.project.openshift.io";
    let already = format!("{prefix} \"{taken}\" already exists");
    refuse(&taken, 409, already).await?;
    let word = format!(
        "{prefix} \"kubernetes\" is forbidden: cannot request a project with the name \"kubernetes\""
    );
    refuse("kubernetes", 403, word).await?;
    let start = format!("{prefix} \"kube-x\" is forbidden: cannot request a project starting with \"kube-\"");
    refuse("kube-x", 403, start).await
}

#[tokio::test]
async fn a_binding_shows_a_project_and_its_removal_hides_it() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let (alice, bob) = (newcomer(&plane, "alice")?, newcomer(&plane, "bob")?);
    let name = new_project(&alice, "lent").await?;
    let mut his = bob.api.watch(&format!("{WATCH}&allowWatchBookmarks=true")).await?;

    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
    let binding = role_binding("lent", "view", &bob.name);
    alice.api.post(&bindings, &binding).await?.expect_code(201)?;
    his.until(20, |event| event.kind == "ADDED" && event.name() == name).await?;
    his.until(20, |event| event.kind == "BOOKMARK" && event.revision() > 0).await?;
    ensure!(names(&bob.api.get(PROJECTS).await?.ok()?).contains(&name.as_str()), "not in his list");
    bob.api.get(&project_path(&name)).await?.expect_code(200)?;
    bob.api.delete(&project_path(&name), &json!({})).await?.expect_code(403)?;

    alice.api.delete(&format!("{bindings}/lent"), &json!({})).await?.expect_code(200)?;
    his.until(20, |event| event.kind == "DELETED" && event.name() == name).await?;
    ensure!(!names(&bob.api.get(PROJECTS).await?.ok()?).contains(&name.as_str()), "still in his list");
    Ok(())
}

#[tokio::test]
async fn only_the_two_annotations_can_be_changed() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let path = project_path(&new_project(&alice, "fixed").await?);
    let label = json!({"metadata": {"labels": {"team": "x"}}});
    let refusal = alice.api.patch(&path, patch::MERGE, &label).await?.expect_code(422)?;
    assert_eq!(refusal["reason"], "Invalid");
    assert_eq!(refusal["details"]["causes"][0]["field"], "metadata.labels[team]");
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        "Invalid value: \"x\": field is immutable, try updating the namespace"
    );
    Ok(())
}
