//! Server-side apply as people and their tools use it: kubectl's ways, and what a CRD on kube-apiserver says to the
//! same requests.

use anyhow::{Context as _, ensure};
use picoshift_tests::objects::unique;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{new_namespace, new_project, newcomer};

/// The content type of an apply.
const APPLY: &str = "application/apply-patch+yaml";

/// A file with this content, for `-f`.
fn file(plane: &ControlPlane, content: &Value) -> anyhow::Result<String> {
    let path = plane.stage.directory.join(unique("config")).with_extension("json");
    std::fs::write(&path, content.to_string())?;
    Ok(path.to_string_lossy().into_owned())
}

fn route(name: &str, service: &str) -> Value {
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": {"name": name, "labels": {"app": service}},
        "spec": {"to": {"kind": "Service", "name": service}}})
}

/// `manager operation` of each entry, sorted; what `kubectl get --show-managed-fields` shows.
async fn managers(actor: &Actor, kind: &str, name: &str, namespace: &str) -> anyhow::Result<Vec<String>> {
    let args = ["get", kind, name, "-n", namespace, "-o", "json", "--show-managed-fields"];
    let object: Value = serde_json::from_str(&actor.kubectl.ok(&args).await?)?;
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let mut shown: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {}", text(entry, "manager"), text(entry, "operation")))
        .collect();
    shown.sort();
    Ok(shown)
}

#[tokio::test]
async fn kubectl_applies_and_meets_conflicts() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "apply").await?;
    let kubectl = &alice.kubectl;
    let (first, other) = (file(&plane, &route("web", "a"))?, file(&plane, &route("web", "b"))?);
    let apply = |file: &str, more: &[&str]| {
        let mut args = vec!["apply", "--server-side", "-n", &project, "-f"]
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        args.push(file.to_owned());
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        async move { kubectl.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    let said = apply(&first, &[]).await?;
    ensure!(
        said.stdout == "route.route.openshift.io/web serverside-applied\n",
        "{}{}",
        said.stdout,
        said.stderr
    );
    let version = ["get", "route", "web", "-n", &project, "-o", "jsonpath={.metadata.resourceVersion}"];
    let before = kubectl.ok(&version).await?;
    ensure!(apply(&first, &[]).await?.success, "the same again is refused");
    assert_eq!(kubectl.ok(&version).await?, before, "an apply that changes nothing was a write");

    let said = apply(&other, &["--field-manager=two"]).await?;
    ensure!(!said.success, "a conflict was not told");
    let why =
        "Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .metadata.labels.app\n- .spec.to.name";
    ensure!(said.stderr.contains(why), "{}", said.stderr);
    let dry = apply(&other, &["--field-manager=two", "--force-conflicts", "--dry-run=server"]).await?;
    ensure!(dry.success, "{}", dry.stderr);
    assert_eq!(managers(&alice, "route", "web", &project).await?, ["kubectl Apply"]);
    let forced = apply(&other, &["--field-manager=two", "--force-conflicts"]).await?;
    ensure!(forced.success, "{}", forced.stderr);
    assert_eq!(managers(&alice, "route", "web", &project).await?, ["kubectl Apply", "two Apply"]);

    // What a diff says, by its exit code too.
    let diff = |file: String| {
        let project = project.clone();
        async move {
            let args = [
                "diff",
                "--server-side",
                "--field-manager=two",
                "--force-conflicts",
                "-n",
                &project,
                "-f",
                &file,
            ];
            kubectl.run(&args).await
        }
    };
    ensure!(diff(other).await?.success, "a difference where there is none");
    let said = diff(first).await?;
    ensure!(
        !said.success && said.stdout.contains("-    name: b\n+    name: a\n"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn client_side_apply_becomes_server_side() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "migrate").await?;
    let kubectl = &alice.kubectl;
    let config = file(&plane, &route("web", "a"))?;
    let in_project = |args: &[&str]| {
        let args: Vec<String> = args.iter().chain(&["-n", &project]).map(|arg| (*arg).to_owned()).collect();
        async move { kubectl.ok(&args.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    in_project(&["apply", "-f", &config]).await?;
    assert_eq!(managers(&alice, "route", "web", &project).await?, ["kubectl-client-side-apply Update"]);
    in_project(&["apply", "--server-side", "-f", &config]).await?;
    let found = managers(&alice, "route", "web", &project).await?;
    ensure!(found.contains(&"kubectl Apply".to_owned()), "{found:?}");
    ensure!(!found.contains(&"kubectl-client-side-apply Update".to_owned()), "not taken over: {found:?}");
    // And a client-side diff and apply of the same find nothing to do.
    in_project(&["diff", "-f", &config]).await?;

    in_project(&["label", "route", "web", "more=1"]).await?;
    let found = managers(&alice, "route", "web", &project).await?;
    ensure!(found.contains(&"kubectl-label Update".to_owned()), "{found:?}");
    // What an edit does: a patch of what was read.
    let patch = r#"{"metadata":{"labels":{"app":"edited"}}}"#;
    in_project(&["patch", "route", "web", "--type=merge", "-p", patch]).await?;
    let said = kubectl.run(&["apply", "--server-side", "-n", &project, "-f", &config]).await?;
    let why = "conflict with \"kubectl-patch\" using route.openshift.io/v1: .metadata.labels.app";
    ensure!(!said.success && said.stderr.contains(why), "{}", said.stderr);
    Ok(())
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// A CRD in the shape of a Route, whose answers are kube-apiserver's own.
const PEER: &str = "peers.apply.picoshift.test";

async fn peer(admin: &Actor) -> anyhow::Result<()> {
    let string = json!({"type": "string"});
    let to = json!({"type": "object", "properties": {"kind": string, "name": string,
        "weight": {"type": "integer", "format": "int32"}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "subdomain": string, "path": string, "to": to}}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": PEER}, "spec": {"group": "apply.picoshift.test", "scope": "Namespaced",
            "names": {"plural": "peers", "singular": "peer", "kind": "Peer", "listKind": "PeerList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    admin
        .api
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd)
        .await?
        .expect_code(201)?;
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", &format!("crd/{PEER}")];
    admin.kubectl.ok(&wait).await?;
    Ok(())
}

/// The same requests to both; each answer must be the same, names of kinds apart.
#[tokio::test]
async fn answers_are_those_of_kube_apiserver() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    peer(&admin).await?;
    let namespace = new_namespace(&admin, "peers").await?;
    let steps: &[(&str, &str, Value)] = &[
        (
            "a",
            "fieldManager=one",
            json!({"spec": {"subdomain": "h", "path": "/a", "to": {"kind": "Service", "name": "a", "weight": 1}}}),
        ),
        ("a", "fieldManager=two", json!({"spec": {"subdomain": "i", "path": "/b"}})),
        ("a", "fieldManager=two&force=true", json!({"spec": {"subdomain": "i"}})),
        ("a", "fieldManager=two&force=true", json!({"metadata": {"labels": {"x": "y"}}})),
        ("a", "fieldManager=three&dryRun=All", json!({"metadata": {"labels": {"x": "y"}}})),
        ("a", "fieldManager=three", json!({"metadata": {"labels": {"x": "y"}}})),
        ("a", "fieldManager=three", json!({"metadata": {"labels": {"x": "z"}}})),
        ("a", "", json!({"spec": {"subdomain": "i"}})),
        ("a", "fieldManager=one&dryRun=x", json!({})),
        ("a", "fieldManager=one", json!({"spec": {"nosuch": 1}})),
        ("a", "fieldManager=one", json!({"spec": {"subdomain": 1}})),
        ("a", "fieldManager=one", json!({"spec": {"to": []}})),
        ("a", "fieldManager=one", json!({"metadata": {"managedFields": []}})),
        ("a", "fieldManager=one", json!({"metadata": {"resourceVersion": "1"}})),
        ("a", "fieldManager=one", json!({"metadata": {"namespace": "elsewhere"}})),
        ("a", "fieldManager=one", json!({"kind": "Other"})),
        ("a", "fieldManager=one", json!({"apiVersion": "v1"})),
        ("new", "fieldManager=one", json!({"metadata": {"uid": "u"}})),
        ("new", "fieldManager=one", json!({"metadata": {"resourceVersion": "abc"}})),
        ("new", "fieldManager=one", json!({"metadata": {"name": "other"}})),
        (
            "new",
            "fieldManager=one",
            json!({"metadata": {"resourceVersion": "5"}, "spec": {"to": {"name": "a"}}}),
        ),
    ];
    for (at, (name, query, parts)) in steps.iter().enumerate() {
        let peer = applied(&admin, &namespace, PEER_KIND, name, query, parts).await?;
        let ours = applied(&admin, &namespace, OUR_KIND, name, query, parts).await?;
        assert_eq!(ours, peer, "step {at}: {query} {parts}");
    }
    admin.api.delete(&format!("{CRDS}/{PEER}"), &json!({})).await?.expect_code(200)?;
    Ok(())
}

/// Group, plural and kind.
type Kind = (&'static str, &'static str, &'static str);
const PEER_KIND: Kind = ("apply.picoshift.test", "peers", "Peer");
const OUR_KIND: Kind = ("route.openshift.io", "routes", "Route");

/// Applies; answers code, reason, message and causes, or the managers, in words that do not name the kind.
async fn applied(
    admin: &Actor,
    namespace: &str,
    (group, plural, kind): Kind,
    name: &str,
    query: &str,
    parts: &Value,
) -> anyhow::Result<Value> {
    let mut config = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}});
    merge(&mut config, parts);
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/{plural}/{name}?{query}");
    let answer = admin.api.patch(&path, APPLY, &config).await?;
    let body = answer.json().context("no JSON")?;
    let seen = if body["kind"] == "Status" {
        json!([answer.status.as_u16(), body["reason"], body["message"], body["details"]["causes"]])
    } else {
        let entries = body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let shown: Vec<Value> = entries
            .iter()
            .map(|entry| {
                json!([entry["manager"], entry["operation"], entry["fieldsV1"], entry["time"].is_string()])
            })
            .collect();
        // Sorted: two writes of one second are in the order of their names, of two seconds in that of their times.
        let mut shown: Vec<String> = shown.iter().map(Value::to_string).collect();
        shown.sort();
        json!([answer.status.as_u16(), shown, body["metadata"]["labels"], body["spec"]["subdomain"]])
    };
    let text = seen.to_string().replace(group, "GROUP").replace(plural, "PLURAL").replace(kind, "KIND");
    Ok(serde_json::from_str(&text)?)
}

fn merge(into: &mut Value, parts: &Value) {
    match (into, parts) {
        (Value::Object(into), Value::Object(parts)) => {
            for (key, value) in parts {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, parts) => *into = parts.clone(),
    }
}

#[tokio::test]
async fn who_may_not_create_may_not_apply_into_being() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "patcher").await?;
    let patcher = newcomer(&plane, "patcher")?;
    let rules =
        json!([{"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["patch", "get"]}]);
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "patch"},
        "rules": rules});
    admin.api.post(&format!("{rbac}/roles"), &role).await?.expect_code(201)?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "patch"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patch"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": patcher.name}]});
    admin.api.post(&format!("{rbac}/rolebindings"), &binding).await?.expect_code(201)?;
    let path = format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes/web?fieldManager=m");
    let apply = || patcher.api.patch(&path, APPLY, &ROUTE);
    let refused = apply().await?.expect_code(403)?;
    crate::support::assert_forbidden(&refused, &patcher.name);
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(message.contains("cannot create resource \"routes\""), "{message}");
    let created = format!("/apis/route.openshift.io/v1/namespaces/{namespace}/routes");
    admin.api.post(&created, &ROUTE).await?.expect_code(201)?;
    apply().await?.expect_code(200)?;
    Ok(())
}

static ROUTE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| route("web", "a"));

/// A Project's managed fields are its Namespace's, and so is what is applied to it.
#[tokio::test]
async fn projects_are_applied_to() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let alice = newcomer(&plane, "alice")?;
    let project = new_project(&alice, "applied").await?;
    let config = json!({"apiVersion": "project.openshift.io/v1", "kind": "Project",
        "metadata": {"name": project, "annotations": {"openshift.io/description": "applied"}}});
    let config = file(&plane, &config)?;
    let said = alice.kubectl.ok(&["apply", "--server-side", "-f", &config]).await?;
    ensure!(said.contains("serverside-applied"), "{said}");
    let shown =
        ["get", "project", &project, "-o", "jsonpath={.metadata.annotations.openshift\\.io/description}"];
    assert_eq!(alice.kubectl.ok(&shown).await?, "applied");
    let project_path = format!("/apis/project.openshift.io/v1/projects/{project}");
    let namespace_path = format!("/api/v1/namespaces/{project}");
    let admin = plane.admin()?;
    let of = |object: &Value| object["metadata"]["managedFields"].clone();
    let shown = admin.api.get(&project_path).await?.expect_code(200)?;
    assert_eq!(of(&shown), of(&admin.api.get(&namespace_path).await?.expect_code(200)?));
    assert_eq!(managers(&alice, "project", &project, "").await?, ["openshift-apiserver Update"]);
    Ok(())
}
