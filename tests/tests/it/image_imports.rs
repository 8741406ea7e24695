//! Imports of images from a real registry: by plain HTTP and TLS, for everybody and for those who may, one by one and
//! whole repositories; what is answered, what is recorded, and what is said when it fails.

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use picoshift_tests::registry::{Access, INDEX, MANIFEST, PASSWORD, Registry, Speaks, Storage, USER};
use picoshift_tests::token_server::TokenServer;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::new_namespace;

const GROUP: &str = "/apis/image.openshift.io/v1";

/// A namespace, an administrator, and a registry with one repository.
struct Scene {
    admin: Actor,
    namespace: String,
    storage: Storage,
}

impl Scene {
    async fn new(plane: &ControlPlane) -> anyhow::Result<Self> {
        let admin = plane.admin()?;
        let namespace = new_namespace(&admin, "imports").await?;
        Ok(Self { admin, namespace, storage: Storage::new()? })
    }

    fn path(&self, resource: &str) -> String {
        format!("{GROUP}/namespaces/{}/{resource}", self.namespace)
    }

    /// Imports into stream `app`.
    async fn import(&self, spec: Value) -> anyhow::Result<Value> {
        let import = import("app", spec);
        self.admin.api.post(&self.path("imagestreamimports"), &import).await?.expect_code(201)
    }

    /// Imports one image as tag `one`, and answers its status.
    async fn one(&self, from: &str, policy: Value) -> anyhow::Result<Value> {
        let answer = self.import(json!({"import": true, "images": [image(from, "one", policy)]})).await?;
        Ok(answer["status"]["images"][0].clone())
    }

    async fn stream(&self) -> anyhow::Result<Value> {
        self.admin.api.get(&self.path("imagestreams/app")).await?.ok()
    }
}

fn import(stream: &str, spec: Value) -> Value {
    let mut import = json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamImport",
        "metadata": {"name": stream}, "status": {}});
    import["spec"] = spec;
    import
}

fn image(from: &str, to: &str, policy: Value) -> Value {
    let mut image = json!({"from": {"kind": "DockerImage", "name": from}, "to": {"name": to}});
    image["importPolicy"] = policy;
    image
}

fn pull_spec(registry: &Registry, rest: &str) -> String {
    format!("{}/lab/app{rest}", registry.address)
}

fn message(status: &Value) -> &str {
    status["status"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_image_is_found_described_and_recorded() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    let digest = scene.storage.push_image("lab/app", "1", "amd64").await?;
    let registry = scene.storage.serve(Speaks::Plain, Access::Open)?;
    let from = pull_spec(&registry, ":1");

    let failed = scene.one(&from, json!({})).await?;
    let url = format!("https://{}/v2/", registry.address);
    assert_eq!(
        message(&failed),
        format!(
            "Internal error occurred: {from}: Get \"{url}\": http: server gave HTTP response to HTTPS client"
        )
    );
    let stream = scene.stream().await?;
    let tag = &stream["status"]["tags"][0];
    assert_eq!(tag["items"][0]["dockerImageReference"], from.as_str(), "{stream}");
    assert_eq!(tag["items"][0]["image"], "");
    assert_eq!(tag["conditions"][0]["reason"], "InternalError");
    assert_eq!(tag["conditions"][0]["generation"], stream["spec"]["tags"][0]["generation"]);

    let found = scene.one(&from, json!({"insecure": true})).await?;
    assert_eq!(found["status"], json!({"metadata": {}, "status": "Success"}), "{found}");
    assert_eq!(found["tag"], "1");
    let shown = &found["image"];
    let by_digest = pull_spec(&registry, &format!("@{digest}"));
    assert_eq!(shown["metadata"]["name"], digest.as_str());
    assert_eq!(shown["dockerImageReference"], by_digest.as_str());
    assert_eq!(shown["dockerImageManifestMediaType"], MANIFEST);
    ensure!(shown.get("dockerImageManifest").is_none() && shown.get("kind").is_none(), "{shown}");
    let metadata = &shown["dockerImageMetadata"];
    assert_eq!(metadata["Created"], "2026-01-02T03:04:05Z");
    assert_eq!(metadata["Config"]["ExposedPorts"], json!({"8080/tcp": {}}));
    assert_eq!(shown["dockerImageLayers"][0]["size"], 13);

    let stream = scene.stream().await?;
    let tag = &stream["status"]["tags"][0];
    assert_eq!(tag["items"].as_array().map(Vec::len), Some(1), "{stream}");
    assert_eq!(tag["items"][0]["image"], digest.as_str());
    assert_eq!(tag["items"][0]["dockerImageReference"], by_digest.as_str());
    assert_eq!(tag["items"][0]["generation"], stream["metadata"]["generation"]);
    ensure!(tag.get("conditions").is_none(), "{tag}");
    ensure!(stream["metadata"]["annotations"]["openshift.io/image.dockerRepositoryCheck"].is_string());
    let kept = scene.admin.api.get(&format!("{GROUP}/images/{digest}")).await?.ok()?;
    assert_eq!(kept["dockerImageMetadata"], *metadata);

    // Nothing is new: nothing is written.
    let again = scene
        .import(json!({"import": true, "images": [image(&from, "one", json!({"insecure": true}))]}))
        .await?;
    assert_eq!(
        again["status"]["import"]["metadata"]["resourceVersion"],
        stream["metadata"]["resourceVersion"]
    );
    ensure!(again["status"]["import"].get("kind").is_none() && again["metadata"]["uid"].is_string());

    let missing = scene.one(&pull_spec(&registry, ":2"), json!({"insecure": true})).await?;
    let text = format!("dockerimage.image.openshift.io \"{}\" not found", pull_spec(&registry, ":2"));
    assert_eq!((message(&missing), &missing["status"]["reason"]), (text.as_str(), &json!("NotFound")));
    assert_eq!(missing["status"]["code"], 404);
    Ok(())
}

#[tokio::test]
async fn a_list_is_one_image_or_all_of_them() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    let amd = scene.storage.push_image("lab/app", "amd", "amd64").await?;
    let s390 = scene.storage.push_image("lab/app", "s390", "s390x").await?;
    let list = scene.storage.push_list("lab/app", "all", &[(&s390, "s390x"), (&amd, "amd64")]).await?;
    let registry = scene.storage.serve(Speaks::Plain, Access::Open)?;
    let from = pull_spec(&registry, ":all");

    let preserve = json!({"insecure": true, "importMode": "PreserveOriginal"});
    let found = scene.one(&from, preserve).await?;
    assert_eq!(found["image"]["metadata"]["name"], list.as_str(), "{found}");
    assert_eq!(found["image"]["dockerImageManifestMediaType"], INDEX);
    let listed = found["image"]["dockerImageManifests"].as_array().context("no manifests")?;
    assert_eq!((&listed[0]["digest"], &listed[0]["architecture"]), (&json!(s390), &json!("s390x")));
    let names: Vec<&Value> =
        found["manifests"].as_array().into_iter().flatten().map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(names, [&json!(s390), &json!(amd)]);
    for digest in [&list, &amd, &s390] {
        scene.admin.api.get(&format!("{GROUP}/images/{digest}")).await?.ok()?;
    }

    // One by the preference of the tag; by digest there is none.
    let mut stream = scene.stream().await?;
    stream["spec"]["tags"][0]["annotations"] = json!({"importer.image.openshift.io/prefer-arch": "s390x"});
    scene.admin.api.put(&scene.path("imagestreams/app"), &stream).await?.ok()?;
    let found = scene.one(&from, json!({"insecure": true})).await?;
    assert_eq!(found["image"]["metadata"]["name"], s390.as_str(), "{found}");
    let by_digest = pull_spec(&registry, &format!("@{list}"));
    let found = scene.one(&by_digest, json!({"insecure": true})).await?;
    ensure!(found.get("tag").is_none() && found["image"]["metadata"]["name"].is_string(), "{found}");
    Ok(())
}

#[tokio::test]
async fn a_repository_is_imported_newest_first_up_to_a_limit() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    scene.storage.push_image("lab/app", "latest", "amd64").await?;
    for n in 0..51 {
        scene.storage.push_image("lab/app", &format!("1.{n}"), "amd64").await?;
    }
    scene.storage.push_image("lab/app", "other", "amd64").await?;
    let registry = scene.storage.serve(Speaks::Plain, Access::Open)?;
    let repository = |name: String| json!({"from": {"kind": "DockerImage", "name": name}, "importPolicy": {"insecure": true}});
    let answer =
        scene.import(json!({"import": true, "repository": repository(pull_spec(&registry, ""))})).await?;
    let status = &answer["status"]["repository"];
    assert_eq!(status["status"], json!({"metadata": {}, "status": "Success"}), "{status}");
    let tags: Vec<&str> =
        status["images"].as_array().into_iter().flatten().filter_map(|one| one["tag"].as_str()).collect();
    assert_eq!((tags.len(), &tags[..3]), (50, &["latest", "1.50", "1.49"][..]));
    assert_eq!(status["additionalTags"], json!(["1.1", "1.0", "other"]));
    let stream = scene.stream().await?;
    assert_eq!(stream["status"]["tags"].as_array().map(Vec::len), Some(50));
    let missing = format!("{}/lab/none", registry.address);
    let answer = scene.import(json!({"import": false, "repository": repository(missing.clone())})).await?;
    let status = &answer["status"]["repository"];
    assert_eq!(
        message(status),
        format!("dockerimage.image.openshift.io \"{missing}\" not found"),
        "{status}"
    );
    Ok(())
}

#[tokio::test]
async fn who_may_pull_is_known_by_the_pull_secrets() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    scene.storage.push_image("lab/app", "1", "amd64").await?;
    let tokens = TokenServer::start().await?;
    let basic = scene.storage.serve(Speaks::Plain, Access::Basic)?;
    let token = scene.storage.serve(Speaks::Plain, Access::Token(&tokens))?;
    let insecure = || json!({"insecure": true});
    for registry in [&basic, &token] {
        let from = pull_spec(registry, ":1");
        let refused = scene.one(&from, insecure()).await?;
        let text = format!("you may not have access to the container image \"{from}\"");
        assert_eq!(
            (message(&refused), &refused["status"]["reason"]),
            (text.as_str(), &json!("Unauthorized"))
        );
    }
    let auths = |password: &str| {
        let auth = BASE64_STANDARD.encode(format!("{USER}:{password}"));
        let entry = json!({"auth": auth});
        json!({"auths": {basic.address.as_str(): entry, format!("http://{}/v2/", token.address): entry}})
            .to_string()
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": auths(PASSWORD)}});
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    scene.admin.api.post(&secrets, &secret).await?.expect_code(201)?;
    for registry in [&basic, &token] {
        let found = scene.one(&pull_spec(registry, ":1"), insecure()).await?;
        assert_eq!(found["status"]["status"], "Success", "{found}");
    }

    // Somebody who may import, but not use the secrets.
    let name = picoshift_tests::objects::unique("importer");
    let importer = plane.by_certificate(&name, None)?;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", scene.namespace);
    let role = json!({"metadata": {"name": "importer"}, "rules": [{"apiGroups": ["image.openshift.io"],
        "resources": ["imagestreamimports"], "verbs": ["create"]}]});
    scene.admin.api.post(&format!("{rbac}/roles"), &role).await?.expect_code(201)?;
    let mut binding = picoshift_tests::objects::role_binding("importer", "importer", &name);
    binding["roleRef"]["kind"] = "Role".into();
    scene.admin.api.post(&format!("{rbac}/rolebindings"), &binding).await?.expect_code(201)?;
    let from = pull_spec(&basic, ":1");
    let import = import("app", json!({"import": false, "images": [image(&from, "one", insecure())]}));
    let answer = importer.api.post(&scene.path("imagestreamimports"), &import).await?.expect_code(201)?;
    assert_eq!(answer["status"]["images"][0]["status"]["reason"], "Unauthorized", "{answer}");
    let log = plane.home.component(picoshift_tests::process::OUR_SERVER)?.log_text()?;
    ensure!(!log.contains(PASSWORD) && !log.contains(&BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}"))));
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_nobody_knows_is_for_the_insecure() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    let digest = scene.storage.push_image("lab/app", "1", "amd64").await?;
    let registry = scene.storage.serve(Speaks::Tls, Access::Open)?;
    let from = pull_spec(&registry, ":1");
    let failed = scene.one(&from, json!({})).await?;
    ensure!(message(&failed).contains("tls: failed to verify certificate: x509: "), "{failed}");
    let found = scene.one(&from, json!({"insecure": true})).await?;
    assert_eq!(found["image"]["metadata"]["name"], digest.as_str(), "{found}");
    Ok(())
}

#[tokio::test]
async fn what_is_only_looked_up_or_tried_leaves_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    let digest = scene.storage.push_image("lab/only", "looked-up", "riscv64").await?;
    let registry = scene.storage.serve(Speaks::Plain, Access::Open)?;
    let from = format!("{}/lab/only:looked-up", registry.address);
    let mut wanted = image(&from, "one", json!({"insecure": true}));
    wanted["includeManifest"] = true.into();
    let answer = scene.import(json!({"import": false, "images": [wanted]})).await?;
    let found = &answer["status"]["images"][0]["image"];
    ensure!(
        found["dockerImageManifest"].as_str().is_some_and(|text| text.contains("schemaVersion")),
        "{found}"
    );
    ensure!(answer["status"].get("import").is_none(), "{answer}");
    let import = import("app", json!({"import": true, "images": [wanted]}));
    let path = format!("{}?dryRun=All", scene.path("imagestreamimports"));
    let answer = scene.admin.api.post(&path, &import).await?.expect_code(201)?;
    let tags = &answer["status"]["import"]["status"]["tags"];
    assert_eq!(tags[0]["items"][0]["image"], digest.as_str(), "{answer}");
    scene.admin.api.get(&scene.path("imagestreams/app")).await?.expect_code(404)?;
    scene.admin.api.get(&format!("{GROUP}/images/{digest}")).await?.expect_code(404)?;
    Ok(())
}

#[tokio::test]
async fn an_import_is_for_the_stream_that_the_caller_knows() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let scene = Scene::new(&plane).await?;
    // Nothing listens there.
    let spec = json!({"import": true, "images": [image("127.0.0.1:1/x/y:1", "1", json!({}))]});
    let mut import = import("app", spec);
    let path = scene.path("imagestreamimports");
    import["metadata"]["resourceVersion"] = "1".into();
    let missing = scene.admin.api.post(&path, &import).await?.expect_code(404)?;
    assert_eq!(missing["message"], "imagestreamimports.image.openshift.io \"app\" not found");
    import["metadata"] = json!({"name": "app"});
    let made = scene.admin.api.post(&path, &import).await?.expect_code(201)?;
    let text = "127.0.0.1:1/x/y:1: Get \"https://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(message(&made["status"]["images"][0]), format!("Internal error occurred: {text}"));
    let stream = made["status"]["import"].clone();
    import["metadata"]["resourceVersion"] = "1".into();
    let conflict = scene.admin.api.post(&path, &import).await?.expect_code(409)?;
    let version = stream["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    assert_eq!(
        conflict["message"],
        format!(
            "Operation cannot be fulfilled on imagestream.image.openshift.io \"app\": the image stream was updated \
             from \"1\" to \"{version}\""
        )
    );
    // A uid is not looked at, as by the real server.
    import["metadata"] = json!({"name": "app", "uid": "other"});
    scene.admin.api.post(&path, &import).await?.expect_code(201)?;
    import["metadata"] = json!({"name": "app", "resourceVersion": version, "uid": stream["metadata"]["uid"]});
    let answer = scene.admin.api.post(&path, &import).await?.expect_code(201)?;
    assert_eq!(answer["metadata"]["resourceVersion"], version);
    assert_eq!(answer["status"]["import"]["metadata"]["resourceVersion"], version, "nothing was new");
    Ok(())
}
