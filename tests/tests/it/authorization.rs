//! `authorization.openshift.io`: reviews, and roles and bindings in OpenShift's older form.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::{Answer, patch};
use picoshift_tests::objects::{names, role_binding, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const GROUP: &str = "/apis/authorization.openshift.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn ask(actor: &Actor, path: &str, review: &Value) -> anyhow::Result<Answer> {
    actor.api.post(&format!("{GROUP}/{path}"), review).await
}

/// A namespace in which `user` has a role, as a review says already.
async fn bound(admin: &Actor, role: &str, user: &str) -> anyhow::Result<String> {
    let namespace = new_namespace(admin, "reviewed").await?;
    let path = format!("{RBAC}/namespaces/{namespace}/rolebindings");
    admin.api.post(&path, &role_binding(role, role, user)).await?.expect_code(201)?;
    let review = json!({"namespace": namespace, "verb": "get", "resource": "namespaces", "user": user});
    let look = || async {
        let answer = ask(admin, "subjectaccessreviews", &review).await?.expect_code(201)?;
        Ok(if answer["allowed"] == true { Ok(()) } else { Err(answer.to_string()) })
    };
    eventually("the role is known", 30, look).await?;
    Ok(namespace)
}

#[tokio::test]
async fn discovery_is_the_recorded_one() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let list = plane.admin()?.api.get(GROUP).await?.ok()?;
    let shown: Vec<String> = list["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|r| {
            let text = |field: &str| r[field].as_str().unwrap_or_default().to_owned();
            let verbs: Vec<&str> =
                r["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            format!("{} {} {} {}", text("name"), text("singularName"), r["namespaced"], verbs.join(","))
        })
        .collect();
    let all = "create,delete,get,list,patch,update";
    assert_eq!(
        shown,
        [
            format!("clusterrolebindings clusterrolebinding false {all}"),
            format!("clusterroles clusterrole false {all}"),
            "localresourceaccessreviews localresourceaccessreview true create".to_owned(),
            "localsubjectaccessreviews localsubjectaccessreview true create".to_owned(),
            "resourceaccessreviews localresourceaccessreview false create".to_owned(),
            format!("rolebindings rolebinding true {all}"),
            format!("roles role true {all}"),
            "selfsubjectrulesreviews selfsubjectrulesreview true create".to_owned(),
            "subjectaccessreviews subjectaccessreview false create".to_owned(),
            "subjectrulesreviews subjectrulesreview true create".to_owned(),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn access_reviews_answer_as_recorded() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let alice = unique("alice");
    let namespace = bound(&admin, "edit", &alice).await?;
    let routes = |user: Option<&str>| {
        let mut review = json!({"namespace": namespace, "verb": "get", "resource": "routes",
            "resourceAPIGroup": "route.openshift.io"});
        if let Some(user) = user {
            review["user"] = user.into();
        }
        review
    };
    let response = |fields: Value| {
        let mut response = json!({"kind": "SubjectAccessReviewResponse", "namespace": namespace,
            "apiVersion": "authorization.openshift.io/v1"});
        for (field, value) in fields.as_object().into_iter().flatten() {
            response[field] = value.clone();
        }
        response
    };
    let hers = ask(&admin, "subjectaccessreviews", &routes(Some(&alice))).await?.expect_code(201)?;
    let reason = format!(
        "RBAC: allowed by RoleBinding \"edit/{namespace}\" of ClusterRole \"edit\" to User \"{alice}\""
    );
    assert_eq!(hers, response(json!({"allowed": true, "reason": reason})));
    let own = ask(&admin, "subjectaccessreviews", &routes(None)).await?.expect_code(201)?;
    assert_eq!(own, response(json!({"allowed": true})));
    let local = format!("namespaces/{namespace}/localsubjectaccessreviews");
    let nobody = json!({"verb": "delete", "resource": "routes", "user": "nobody", "groups": ["g"]});
    let answer = ask(&admin, &local, &nobody).await?.expect_code(201)?;
    assert_eq!(answer, response(json!({"allowed": false})));
    // Scopes of the review count.
    let mut scoped = routes(Some(&alice));
    scoped["scopes"] = json!(["user:info"]);
    let answer = ask(&admin, "subjectaccessreviews", &scoped).await?.expect_code(201)?;
    let reason = "scopes [user:info] prevent this action";
    assert_eq!(answer, response(json!({"allowed": false, "reason": reason})));
    let refused = ask(&admin, "subjectaccessreviews", &json!({})).await?.expect_code(422)?;
    assert_eq!(
        refused["message"],
        ".authorization.openshift.io \"\" is invalid: [verb: Required value, resource: Required value]"
    );
    let elsewhere = ask(&admin, &local, &json!({"verb": "get", "resource": "x", "namespace": "y"})).await?;
    elsewhere.expect_code(500)?;
    Ok(())
}

#[tokio::test]
async fn everybody_reviews_himself_and_nobody_else() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let eve = plane.by_certificate(&unique("eve"), Some(picoshift_tests::objects::OAUTH_GROUP))?;
    let victim = unique("victim");
    let namespace = bound(&admin, "edit", &victim).await?;
    let local = format!("namespaces/{namespace}/localsubjectaccessreviews");
    // As `oc login` asks who has no project: the legacy group, no user.
    let requests = json!({"verb": "create", "resource": "projectrequests"});
    let secrets = json!({"verb": "get", "resource": "secrets"});
    let of_victim = json!({"verb": "get", "resource": "secrets", "user": victim});
    let of_masters = json!({"verb": "get", "resource": "secrets", "groups": ["system:masters"]});
    for http in [&eve.api, eve.direct()?] {
        let ask = |path: &str, review: &Value| {
            let (path, review) = (format!("{GROUP}/{path}"), review.clone());
            async move { http.post(&path, &review).await }
        };
        let answer = ask("subjectaccessreviews", &requests).await?.expect_code(201)?;
        ensure!(answer["allowed"] == true, "{answer}");
        let answer = ask(&local, &secrets).await?.expect_code(201)?;
        ensure!(answer["allowed"] == false, "{answer}");
        for review in [&of_victim, &of_masters] {
            let status = ask("subjectaccessreviews", review).await?.expect_code(403)?;
            assert_eq!(
                status["message"],
                format!(
                    "subjectaccessreviews.authorization.openshift.io is forbidden: User \"{}\" cannot create resource \
                     \"subjectaccessreviews\" in API group \"authorization.openshift.io\" at the cluster scope",
                    eve.name
                )
            );
            ask(&local, review).await?.expect_code(403)?;
        }
        ask("resourceaccessreviews", &secrets).await?.expect_code(403)?;
        let who = format!("namespaces/{namespace}/localresourceaccessreviews");
        ask(&who, &secrets).await?.expect_code(403)?;
        let rules = format!("namespaces/{namespace}/subjectrulesreviews");
        ask(&rules, &json!({"spec": {"user": victim}})).await?.expect_code(403)?;
    }
    let nobody = plane.anonymous()?;
    ask(&nobody, "subjectaccessreviews", &requests).await?.expect_code(403)?;
    // What may be granted in a namespace is granted there only.
    let owner = plane.by_certificate(&unique("owner"), None)?;
    let own = bound(&admin, "admin", &owner.name).await?;
    let path = format!("namespaces/{own}/localsubjectaccessreviews");
    ask(&owner, &path, &of_victim).await?.expect_code(201)?;
    ask(&owner, &local, &of_victim).await?.expect_code(403)?;
    ask(&owner, "subjectaccessreviews", &of_victim).await?.expect_code(403)?;
    Ok(())
}

#[tokio::test]
async fn who_can_is_answered_from_rbac() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let alice = unique("alice");
    let namespace = bound(&admin, "edit", &alice).await?;
    let routes = json!({"verb": "get", "resource": "routes", "resourceAPIGroup": "route.openshift.io"});
    let path = format!("namespaces/{namespace}/localresourceaccessreviews");
    let look = || async {
        let answer = ask(&admin, &path, &routes).await?.expect_code(201)?;
        let users = answer["users"].as_array().into_iter().flatten();
        let known = users.filter_map(Value::as_str).any(|user| user == alice);
        Ok(if known { Ok(answer) } else { Err(answer.to_string()) })
    };
    let answer = eventually("she can", 30, look).await?;
    assert_eq!(answer["kind"], "ResourceAccessReviewResponse");
    assert_eq!((&answer["namespace"], &answer["evalutionError"]), (&json!(namespace), &json!("")));
    let groups = answer["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let of_the_system: Vec<&str> = groups.filter(|group| group.starts_with("system:")).collect();
    assert_eq!(of_the_system, ["system:cluster-admins", "system:cluster-readers", "system:masters"]);
    let cluster = ask(&admin, "resourceaccessreviews", &routes).await?.expect_code(201)?;
    let has =
        |answer: &Value, user: &str| answer["users"].as_array().is_some_and(|u| u.contains(&json!(user)));
    ensure!(cluster.get("namespace").is_none() && !has(&cluster, &alice), "{cluster}");
    ensure!(has(&cluster, "system:serviceaccount:kube-system:namespace-controller"), "{cluster}");
    // A binding of a role that is not there is told, and hides nothing else.
    let lost = role_binding("lost", "nosuchrole", "somebody");
    let bindings = format!("{RBAC}/namespaces/{namespace}/rolebindings");
    admin.api.post(&bindings, &lost).await?.expect_code(201)?;
    let look = || async {
        let answer = ask(&admin, &path, &routes).await?.expect_code(201)?;
        let error = "clusterrole.rbac.authorization.k8s.io \"nosuchrole\" not found";
        Ok(if answer["evalutionError"] == error && has(&answer, &alice) {
            Ok(())
        } else {
            Err(answer.to_string())
        })
    };
    eventually("the missing role is told", 30, look).await?;
    Ok(())
}

#[tokio::test]
async fn rules_reviews_show_what_one_can_do() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let owner = plane.by_certificate(&unique("owner"), None)?;
    let namespace = bound(&admin, "admin", &owner.name).await?;
    let path = format!("namespaces/{namespace}/selfsubjectrulesreviews");
    let rules =
        |answer: &Value| -> Vec<Value> { answer["status"]["rules"].as_array().cloned().unwrap_or_default() };
    let about = |rules: &[Value], resource: &str| {
        rules.iter().any(|rule| rule["resources"].as_array().is_some_and(|r| r.contains(&json!(resource))))
    };
    let look = || async {
        let answer = ask(&owner, &path, &json!({"spec": {"scopes": null}})).await?.expect_code(201)?;
        Ok(if about(&rules(&answer), "secrets") { Ok(answer) } else { Err(answer.to_string()) })
    };
    let all = eventually("her rules are known", 30, look).await?;
    assert_eq!((&all["spec"], &all["metadata"]), (&json!({"scopes": null}), &json!({})));
    let scope = format!("role:view:{namespace}");
    let scoped = ask(&owner, &path, &json!({"spec": {"scopes": [scope]}})).await?.expect_code(201)?;
    let scoped = rules(&scoped);
    ensure!(about(&scoped, "routes") && !about(&scoped, "secrets"), "{scoped:?}");
    let info =
        ask(&owner, &path, &json!({"spec": {"scopes": ["user:info", "x"]}})).await?.expect_code(201)?;
    assert_eq!(info["status"]["evaluationError"], "no scope evaluator found for \"x\"");
    ensure!(about(&rules(&info), "users"), "{info}");
    // An outsider, as recorded; the first two are OpenShift's own role, which the recorded servers had not.
    let outsider = json!({"spec": {"user": "nobody", "groups": ["system:unauthenticated"]}});
    let path = format!("namespaces/{namespace}/subjectrulesreviews");
    let answer = ask(&owner, &path, &outsider).await?.expect_code(201)?;
    assert_eq!(answer["spec"], json!({"user": "", "groups": null, "scopes": null}));
    let urls: Vec<Value> =
        rules(&answer).into_iter().map(|mut rule| rule["nonResourceURLs"][0].take()).collect();
    let open = ["/.well-known/*", "/.well-known", "/healthz", "/livez", "/readyz", "/version/", "/version"];
    assert_eq!(urls, open);
    Ok(())
}

#[tokio::test]
async fn roles_and_bindings_live_in_the_older_form() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let owner = plane.by_certificate(&unique("owner"), None)?;
    let namespace = bound(&admin, "admin", &owner.name).await?;
    let bindings = format!("{GROUP}/namespaces/{namespace}/rolebindings");
    let binding = json!({"kind": "RoleBinding", "metadata": {"name": "rb1"},
        "subjects": [{"kind": "User", "name": "dave"}], "roleRef": {"name": "view"}});
    let made = owner.api.post(&bindings, &binding).await?.expect_code(201)?;
    assert_eq!((&made["userNames"], &made["groupNames"]), (&json!(["dave"]), &Value::Null));
    assert_eq!(made["roleRef"], json!({"name": "view"}));
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "openshift-apiserver");
    let again = owner.api.post(&bindings, &binding).await?.expect_code(409)?;
    assert_eq!(again["message"], "rolebindings.authorization.openshift.io \"rb1\" already exists");
    let one = format!("{bindings}/rb1");
    let real = format!("{RBAC}/namespaces/{namespace}/rolebindings/rb1");
    // The old list counts before the subjects that the server made of it.
    let add = json!({"groupNames": ["team"]});
    let patched = owner.api.patch(&one, patch::MERGE, &add).await?.expect_code(200)?;
    assert_eq!(patched["groupNames"], json!(["team"]));
    let subjects = owner.api.get(&real).await?.ok()?["subjects"].clone();
    let group = "rbac.authorization.k8s.io";
    let (dave, team) = (
        json!({"kind": "User", "apiGroup": group, "name": "dave"}),
        json!({"kind": "Group", "apiGroup": group, "name": "team"}),
    );
    assert_eq!(subjects, json!([dave, team]));
    let mut new = patched;
    new["userNames"] = Value::Null;
    new["groupNames"] = Value::Null;
    new["subjects"] = json!([{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]);
    let put = owner.api.put(&one, &new).await?.expect_code(200)?;
    assert_eq!(put["userNames"], json!([format!("system:serviceaccount:{namespace}:default")]));
    owner.api.put(&one, &new).await?.expect_code(409)?;
    let dry = owner.api.delete(&one, &json!({"dryRun": ["All"]})).await?;
    dry.expect_code(200)?;
    owner.api.get(&one).await?.expect_code(200)?;
    let list = owner.api.get(&format!("{bindings}?limit=1")).await?.ok()?;
    ensure!(names(&list).len() == 1 && list["metadata"]["continue"].is_string(), "{list}");
    let table = owner.api.get_as(&one, "application/json;as=Table;v=v1;g=meta.k8s.io").await?.ok()?;
    assert_eq!(table["rows"][0]["cells"], json!(["rb1", "/view", "", "", "default", ""]));
    let metadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list =
        owner.api.get_as(&format!("{bindings}?fieldSelector=metadata.name%3Drb1"), metadata).await?.ok()?;
    assert_eq!(names(&list), ["rb1"]);
    let gone = owner.api.delete(&one, &json!({})).await?.expect_code(200)?;
    assert_eq!(gone["status"], "Success");
    let missing = owner.api.get(&real).await?.expect_code(404)?;
    assert_eq!(missing["details"]["group"], group);
    let missing = owner.api.get(&one).await?.expect_code(404)?;
    assert_eq!(missing["message"], "rolebindings.authorization.openshift.io \"rb1\" not found");

    let roles = format!("{GROUP}/namespaces/{namespace}/roles");
    let role =
        json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["list", "get"], "resources": ["pods"]}]});
    let made = owner.api.post(&roles, &role).await?.expect_code(201)?;
    let rule = json!({"verbs": ["get", "list"], "attributeRestrictions": null, "apiGroups": [""], "resources": ["pods"]});
    assert_eq!(made["rules"], json!([rule]));
    let view = owner.api.get(&format!("{GROUP}/clusterroles/view")).await?.ok()?;
    ensure!(view["aggregationRule"].is_object() && view["rules"].is_array(), "{view}");
    assert_eq!(view["metadata"]["annotations"]["openshift.io/reconcile-protect"], "false");
    admin.api.get(&format!("{GROUP}/clusterroles?watch=1")).await?.expect_code(405)?;
    Ok(())
}

#[tokio::test]
async fn writing_in_the_older_form_needs_the_caller_s_own_rights() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let owner = plane.by_certificate(&unique("owner"), None)?;
    let (own, other) = (bound(&admin, "admin", &owner.name).await?, new_namespace(&admin, "other").await?);
    let to_herself = |role: Value| json!({"metadata": {"name": "more"}, "roleRef": role, "subjects": [{"kind": "User", "name": owner.name}]});
    let admin_everywhere = to_herself(json!({"name": "cluster-admin"}));
    for http in [&owner.api, owner.direct()?] {
        let bindings = |namespace: &str| format!("{GROUP}/namespaces/{namespace}/rolebindings");
        let status = http.post(&bindings(&own), &admin_everywhere).await?.expect_code(403)?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(
            message.starts_with("rolebindings.authorization.openshift.io \"more\" is forbidden: user"),
            "{message}"
        );
        ensure!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
        http.post(&bindings(&other), &to_herself(json!({"name": "view"}))).await?.expect_code(403)?;
        let whole = json!({"metadata": {"name": "all"}, "rules": [{"verbs": ["*"], "resources": ["*"]}]});
        http.post(&format!("{GROUP}/namespaces/{own}/roles"), &whole).await?.expect_code(403)?;
        http.post(&format!("{GROUP}/clusterroles"), &whole).await?.expect_code(403)?;
        http.post(&format!("{GROUP}/clusterrolebindings"), &admin_everywhere).await?.expect_code(403)?;
        let elsewhere = to_herself(json!({"name": "r", "namespace": other}));
        let status = http.post(&bindings(&own), &elsewhere).await?.expect_code(500)?;
        assert_eq!(
            status["message"],
            format!(
                "invalid origin role binding more: attempts to reference role in namespace \"{other}\" instead of \
                 current namespace \"{own}\""
            )
        );
        // The paths that a name could lead to are not for our server to open.
        let odd = http.get(&format!("{GROUP}/clusterroles/..%2f..%2fsecrets")).await?;
        ensure!(matches!(odd.status.as_u16(), 400 | 403 | 404), "{}", odd.text());
    }
    let nobody = plane.anonymous()?;
    nobody.api.get(&format!("{GROUP}/clusterroles")).await?.expect_code(403)?;
    Ok(())
}
