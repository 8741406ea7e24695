//! What makes a cluster look like OpenShift: kinds and objects, applied once, never over somebody else's, and removed by label.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use picoshift_tests::ControlPlane;
use picoshift_tests::actor::Actor;
use picoshift_tests::eventually::eventually;
use picoshift_tests::home::{Home, TemporaryHome, picoshift_program};
use picoshift_tests::http::{Answer, patch};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES: &str = "/api/v1/namespaces";
const CLUSTER_VERSION: &str = "/apis/config.openshift.io/v1/clusterversions/version";
const CONFIG: &str = "/apis/config.openshift.io/v1";
const LINKS: &str = "/apis/console.openshift.io/v1/consolelinks";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.map_or(&Value::Null, |condition| &condition["status"])
}

/// An answer other than that a kind's cache is being made, which the first who asks for a kind gets.
async fn get(admin: &Actor, path: &str) -> anyhow::Result<Answer> {
    let ask = || async {
        let answer = admin.api.get(path).await?;
        Ok(if answer.status == 429 { Err(answer.text()) } else { Ok(answer) })
    };
    eventually(path, 30, ask).await
}

/// The resource versions of what has our label, by kind and name.
async fn ours(admin: &Actor) -> anyhow::Result<BTreeMap<String, String>> {
    let mut lists = vec![CRDS.to_owned(), NAMESPACES.to_owned(), "/api/v1/configmaps".to_owned()];
    lists.push("/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned());
    for group in ["config.openshift.io/v1", "operator.openshift.io/v1", "operators.coreos.com/v1"] {
        let document = get(admin, &format!("/apis/{group}")).await?;
        let document = if document.status == 404 { continue } else { document.ok()? };
        let names = document["resources"].as_array().into_iter().flatten().map(|resource| &resource["name"]);
        let names = names.filter_map(Value::as_str).filter(|name| !name.contains('/'));
        lists.extend(names.map(|name| format!("/apis/{group}/{name}")));
    }
    let mut found = BTreeMap::new();
    for list in lists {
        let document = get(admin, &format!("{list}?labelSelector={MANAGED_BY}%3Dpicoshift")).await?.ok()?;
        for object in document["items"].as_array().into_iter().flatten() {
            let metadata = &object["metadata"];
            let key = format!("{list} {} {}", metadata["namespace"], metadata["name"]);
            found.insert(key, metadata["resourceVersion"].to_string());
        }
    }
    Ok(found)
}

#[tokio::test]
async fn a_second_up_writes_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let before = ours(&admin).await?;
    ensure!(before.len() > 200, "{} objects", before.len());
    plane.up().await?;
    assert_eq!(ours(&admin).await?, before);
    Ok(())
}

#[tokio::test]
async fn programs_take_it_for_openshift() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let version = get(&admin, CLUSTER_VERSION).await?.ok()?;
    let said = &version["status"]["desired"]["version"];
    ensure!(said.as_str().is_some_and(|said| said.starts_with("4.")), "{version}");
    assert_eq!(version["status"]["history"][0]["version"], *said);
    assert_eq!(condition(&version, "Available"), "True");

    let operators = get(&admin, &format!("{CONFIG}/clusteroperators")).await?.ok()?;
    let operators = operators["items"].as_array().context("no list")?;
    ensure!(operators.len() > 30, "{} ClusterOperators", operators.len());
    for operator in operators {
        let conditions = ["Available", "Progressing", "Degraded"].map(|kind| condition(operator, kind));
        assert_eq!(conditions, ["True", "False", "False"], "{operator}");
        assert_eq!(operator["status"]["versions"][0]["version"], *said);
    }

    let infrastructure = get(&admin, &format!("{CONFIG}/infrastructures/cluster")).await?.ok()?;
    assert_eq!(infrastructure["status"]["controlPlaneTopology"], "SingleReplica");
    assert_eq!(infrastructure["status"]["apiServerURL"], json!(plane.stage.kube.url));
    let ingress = get(&admin, &format!("{CONFIG}/ingresses/cluster")).await?.ok()?;
    let controller =
        "/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers/default";
    let controller = get(&admin, controller).await?.ok()?;
    ensure!(ingress["spec"]["domain"].is_string(), "{ingress}");
    assert_eq!(controller["status"]["domain"], ingress["spec"]["domain"]);
    for (kind, name) in [
        ("authentications", "cluster"),
        ("apiservers", "cluster"),
        ("proxies", "cluster"),
        ("featuregates", "cluster"),
    ] {
        get(&admin, &format!("{CONFIG}/{kind}/{name}")).await?.expect_code(200)?;
    }
    let gates = get(&admin, &format!("{CONFIG}/featuregates/cluster")).await?.ok()?;
    assert_eq!(gates["status"]["featureGates"][0]["version"], *said);
    let install =
        get(&admin, &format!("{NAMESPACES}/kube-system/configmaps/cluster-config-v1")).await?.ok()?;
    ensure!(install["data"]["install-config"].as_str().is_some_and(|text| text.contains("fips: false")));

    let kubectl = admin.kubectl.ok(&["get", "clusterversion,co,infrastructure"]).await?;
    ensure!(kubectl.contains("clusteroperator.config.openshift.io/kube-apiserver"), "{kubectl}");
    Ok(())
}

/// Every kind is established; of one that our server answers for there is the definition only.
#[tokio::test]
async fn kinds_of_shared_groups_are_defined_and_served_once() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let crds = get(&admin, &format!("{CRDS}?labelSelector={MANAGED_BY}%3Dpicoshift")).await?.ok()?;
    let services = get(&admin, "/apis/apiregistration.k8s.io/v1/apiservices").await?.ok()?;
    let answers = |group: &Value| {
        services["items"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|service| service["spec"]["group"] == *group && service["spec"]["service"].is_object())
    };
    let mut shared = Vec::new();
    for crd in crds["items"].as_array().into_iter().flatten() {
        assert_eq!(condition(crd, "Established"), "True", "{}", crd["metadata"]["name"]);
        assert_ne!(condition(crd, "NonStructuralSchema"), "True", "{}", crd["metadata"]["name"]);
        let versions = crd["spec"]["versions"].as_array().context("no versions")?;
        let served = versions.iter().any(|version| version["served"] == true);
        assert_eq!(served, !answers(&crd["spec"]["group"]), "{}", crd["metadata"]["name"]);
        if !served {
            shared.push(crd["spec"]["group"].as_str().context("no group")?.to_owned());
        }
    }
    ensure!(shared.contains(&"authorization.openshift.io".to_owned()), "{shared:?}");
    for group in shared {
        let path = format!("/openapi/v3/apis/{group}/v1");
        let first = get(&admin, &path).await?;
        first.expect_code(200)?;
        for _ in 0..50 {
            ensure!(get(&admin, &path).await?.body == first.body, "{path} changes");
        }
    }
    Ok(())
}

/// A definition of ours with the schema of pods that a module has.
#[tokio::test]
async fn job_sets_are_checked_down_to_their_containers() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let job_set = |container: Value| {
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        let job = json!({"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 1, "template": pod}}});
        json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"},
            "spec": {"replicatedJobs": [job]},
        })
    };
    let path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets?dryRun=All&fieldValidation=Strict";
    let good = json!({"name": "main", "image": "example.org/train", "env": [{"name": "A", "value": "b"}]});
    let made = admin.api.post(path, &job_set(good)).await?.expect_code(201)?;
    assert_eq!(made["spec"]["replicatedJobs"][0]["groupName"], "default");
    for bad in [
        json!({"name": "main", "imag": "x"}),
        json!({"image": "x"}),
        json!({"name": "main", "env": [{"value": "b"}]}),
    ] {
        let answer = admin.api.post(path, &job_set(bad)).await?;
        ensure!([400, 422].contains(&answer.status.as_u16()), "{}", answer.text());
    }
    Ok(())
}

/// Standard error of `picoshift ARGS`, and whether it did its work.
async fn run(home: &Home, args: &[&str]) -> anyhow::Result<(bool, String)> {
    let mut command = home.command(args);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

async fn succeed(home: &Home, args: &[&str]) -> anyhow::Result<String> {
    let (done, said) = run(home, args).await?;
    ensure!(done, "picoshift {args:?}: {said}");
    Ok(said)
}

async fn refuse(home: &Home, args: &[&str], why: &str) -> anyhow::Result<()> {
    let (done, said) = run(home, args).await?;
    ensure!(!done && said.contains(why), "picoshift {args:?}: {said}");
    Ok(())
}

#[tokio::test]
async fn versions_foreign_objects_and_removal() -> anyhow::Result<()> {
    let temporary = TemporaryHome::new(picoshift_program()?)?;
    let home = &temporary.home;
    succeed(home, &["up", "--openshift-version", "4.18"]).await?;
    let plane = ControlPlane::open(home.clone()).await?;
    let admin = plane.admin()?;
    versions(home, &admin).await?;
    foreign(home, &admin).await?;
    shared_group(home, &admin).await?;
    real(home, &admin).await?;
    removal(home, &admin).await?;
    succeed(home, &["down", "--purge"]).await.map(drop)
}

async fn versions(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let gateways = format!("{CRDS}/gateways.gateway.networking.k8s.io");
    get(admin, &gateways).await?.expect_code(404)?;
    let first = get(admin, CLUSTER_VERSION).await?.ok()?;
    assert_eq!(first["status"]["history"][0]["version"], "4.18.0");
    // What an administrator chooses stays.
    let proxy = json!({"spec": {"noProxy": "example.org"}});
    admin.api.patch(&format!("{CONFIG}/proxies/cluster"), patch::MERGE, &proxy).await?.expect_code(200)?;

    succeed(home, &["up", "--openshift-version", "4.20.2"]).await?;
    let second = get(admin, CLUSTER_VERSION).await?.ok()?;
    let history = second["status"]["history"].as_array().context("no history")?;
    let versions: Vec<_> = history.iter().filter_map(|release| release["version"].as_str()).collect();
    assert_eq!(versions, ["4.20.2", "4.18.0"]);
    assert_eq!(second["spec"]["clusterID"], first["spec"]["clusterID"]);
    let gateways = get(admin, &gateways).await?.ok()?;
    assert_eq!(gateways["metadata"]["annotations"]["gateway.networking.k8s.io/bundle-version"], "v1.2.1");
    let proxy = get(admin, &format!("{CONFIG}/proxies/cluster")).await?.ok()?;
    assert_eq!(proxy["spec"]["noProxy"], "example.org");
    refuse(home, &["up", "--openshift-version", "4.19"], "does not go back").await
}

/// An object without our label is left, and named.
async fn foreign(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let path = format!("{CONFIG}/schedulers/cluster");
    admin.api.delete(&path, &json!({})).await?.expect_code(200)?;
    let theirs = json!({"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "cluster"}, "spec": {}});
    let before = admin.api.post(&format!("{CONFIG}/schedulers"), &theirs).await?.ok()?;
    let said = succeed(home, &["up"]).await?;
    ensure!(said.contains("Scheduler.config.openshift.io cluster is somebody else's"), "{said}");
    assert_eq!(get(admin, &path).await?.ok()?, before);
    Ok(())
}

/// A group that kube-apiserver has taken over for a definition is taken back, as when an earlier version left it to that.
async fn shared_group(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let crd = format!("{CRDS}/rolebindingrestrictions.authorization.openshift.io");
    let service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.authorization.openshift.io";
    let served = json!([
        {"op": "replace", "path": "/spec/versions/0/served", "value": true},
        {"op": "replace", "path": "/metadata/annotations/picoshift.io~1content", "value": "earlier"},
    ]);
    admin.api.patch(&crd, patch::JSON, &served).await?.expect_code(200)?;
    admin.api.delete(service, &json!({})).await?.expect_code(200)?;
    let taken_over = || async {
        let found = get(admin, service).await?.json()?;
        let label = &found["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"];
        Ok(if label.is_string() { Ok(()) } else { Err(found.to_string()) })
    };
    eventually("kube-apiserver takes the group over", 30, taken_over).await?;
    succeed(home, &["up"]).await?;
    let ours = get(admin, service).await?.ok()?;
    assert_eq!(ours["spec"]["service"]["name"], "openshift-apiserver");
    assert!(ours["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"].is_null(), "{ours}");
    let crd = get(admin, &crd).await?.ok()?;
    assert_eq!(crd["spec"]["versions"][0]["served"], false);
    assert_eq!(condition(&crd, "Established"), "True");
    get(admin, "/apis/authorization.openshift.io/v1").await?.expect_code(200)?;
    Ok(())
}

/// An OpenShift whose ClusterVersion is not ours is left alone by all that writes.
async fn real(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let label = |value: Value| json!({"metadata": {"labels": {MANAGED_BY: value}}});
    admin.api.patch(CLUSTER_VERSION, patch::MERGE, &label(Value::Null)).await?.expect_code(200)?;
    let before = ours(admin).await?;
    let why = "an OpenShift that picoshift did not make: its ClusterVersion version has not the label";
    refuse(home, &["up"], why).await?;
    refuse(home, &["uninstall"], why).await?;
    refuse(home, &["user", "add", "mallory", "--password", "x"], why).await?;
    assert_eq!(ours(admin).await?, before);
    admin.api.patch(CLUSTER_VERSION, patch::MERGE, &label(json!("picoshift"))).await?.expect_code(200)?;
    Ok(())
}

async fn removal(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}});
    let maps = format!("{NAMESPACES}/openshift-operators/configmaps");
    admin.api.post(&maps, &map).await?.expect_code(201)?;
    let link = json!({
        "apiVersion": "console.openshift.io/v1", "kind": "ConsoleLink", "metadata": {"name": "theirs"},
        "spec": {"href": "https://example.org", "location": "HelpMenu", "text": "Theirs"},
    });
    admin.api.post(LINKS, &link).await?.expect_code(201)?;

    let said = succeed(home, &["uninstall"]).await?;
    ensure!(
        said.contains("namespaces/openshift-operators stays: ConfigMap openshift-operators/theirs"),
        "{said}"
    );
    ensure!(said.contains("consolelinks.console.openshift.io stays: ConsoleLink theirs"), "{said}");
    get(admin, &format!("{maps}/theirs")).await?.expect_code(200)?;
    get(admin, &format!("{LINKS}/theirs")).await?.expect_code(200)?;
    let left: Vec<String> = ours(admin).await?.into_keys().collect();
    let kept = ["schedulers.config.openshift.io", "consolelinks.console.openshift.io", "openshift-operators"];
    ensure!(
        left.len() == kept.len() && kept.iter().all(|kept| left.iter().any(|left| left.contains(kept))),
        "{left:?}"
    );
    get(admin, &format!("{NAMESPACES}/kube-system")).await?.expect_code(200)?;
    other_signs(home, admin).await
}

/// What else shows that an OpenShift is not ours, where there is no ClusterVersion.
async fn other_signs(home: &Home, admin: &Actor) -> anyhow::Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "microshift-version"}});
    let maps = format!("{NAMESPACES}/kube-public/configmaps");
    admin.api.post(&maps, &map).await?.expect_code(201)?;
    refuse(home, &["uninstall"], "the ConfigMap microshift-version of MicroShift").await?;
    admin.api.delete(&format!("{maps}/microshift-version"), &json!({})).await?.expect_code(200)?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-cluster-version"}});
    admin.api.post(NAMESPACES, &namespace).await?.expect_code(201)?;
    refuse(home, &["uninstall"], "its Namespace openshift-cluster-version has not the label").await
}
