//! Image streams: generations, status, tags that follow tags, many writers, and the end of their namespace.

use anyhow::ensure;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{stream, streams_path};
use picoshift_tests::process::OUR_CONTROLLERS;
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{new_namespace, newcomer};

const WRITERS: usize = 20;
const TAGS_EACH: usize = 5;

fn docker(tag: &str, source: &str) -> Value {
    json!({"name": tag, "from": {"kind": "DockerImage", "name": source}})
}

/// A tag that nobody imports meanwhile.
fn reference(tag: &str, source: &str) -> Value {
    let mut tag = docker(tag, source);
    tag["reference"] = json!(true);
    tag
}

fn follow(tag: &str, namespace: &str, source: &str) -> Value {
    json!({"name": tag, "from": {"kind": "ImageStreamTag", "namespace": namespace, "name": source}})
}

/// Lets a user do with image streams of a namespace what `verbs` say.
async fn grant(
    admin: &Actor,
    namespace: &str,
    user: &str,
    resource: &str,
    verbs: &[&str],
) -> anyhow::Result<()> {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let name = format!("{user}-{}", resource.replace('/', "-"));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
        "rules": [{"apiGroups": ["image.openshift.io"], "resources": [resource], "verbs": verbs}],
    });
    admin.api.post(&format!("{rbac}/roles"), &role).await?.expect_code(201)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    admin.api.post(&format!("{rbac}/rolebindings"), &binding).await?.expect_code(201)?;
    Ok(())
}

/// What a tag of a stream meant, newest first: the images' names, or pull specs where there is no image.
fn history(stream: &Value, tag: &str) -> Vec<String> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let tags = stream["status"]["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    let entry = tags.iter().find(|entry| entry["tag"] == tag);
    let events = entry.and_then(|entry| entry["items"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let shown = |event: &Value| {
        let image = text(event, "image");
        if image.is_empty() { text(event, "dockerImageReference") } else { image }
    };
    events.iter().map(shown).collect()
}

async fn push(admin: &Actor, namespace: &str, name: &str, tag: &str, image: &str) -> anyhow::Result<()> {
    let path = format!("/apis/image.openshift.io/v1/namespaces/{namespace}/imagestreammappings");
    let mapping = json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping", "metadata": {"name": name},
        "tag": tag, "image": {"metadata": {"name": image}, "dockerImageReference": format!("quay.io/lab/{image}")},
    });
    admin.api.post(&path, &mapping).await?.expect_code(201)?;
    Ok(())
}

#[tokio::test]
async fn a_stream_answers_with_its_tags_at_once() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    // An import would change the stream meanwhile.
    plane.home.component(OUR_CONTROLLERS)?.kill_9()?;
    let done = answers_at_once(&plane).await;
    plane.up().await?;
    done
}

async fn answers_at_once(plane: &ControlPlane) -> anyhow::Result<()> {
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "streams").await?;
    let path = streams_path(&namespace);
    let tags = json!([docker("b", "quay.io/lab/app:2"), docker("a", "quay.io/lab/app:1")]);
    let answer = admin.api.post(&path, &stream("app", &tags)).await?;
    let made = answer.expect_code(201)?;
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"]["dockerImageRepository"], "");
    let first = json!({
        "name": "a", "annotations": null, "from": {"kind": "DockerImage", "name": "quay.io/lab/app:1"},
        "generation": 1, "importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"},
    });
    assert_eq!(made["spec"]["tags"][0], first);
    assert_eq!(history(&made, "a"), ["quay.io/lab/app:1"]);
    assert_eq!(admin.api.get(&format!("{path}/app")).await?.text(), answer.text());

    let one = format!("{path}/app");
    let moved = json!([{"op": "replace", "path": "/spec/tags/0/from/name", "value": "quay.io/lab/app:3"}]);
    let moved = admin.api.patch(&one, patch::JSON, &moved).await?.ok()?;
    assert_eq!(moved["metadata"]["generation"], 2);
    assert_eq!(
        (&moved["spec"]["tags"][0]["generation"], &moved["spec"]["tags"][1]["generation"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(history(&moved, "a"), ["quay.io/lab/app:3"], "a guess replaces a guess");

    let status = json!({"status": {"dockerImageRepository": "x"}});
    let written = admin.api.patch(&format!("{one}/status"), patch::MERGE, &status).await?.ok()?;
    assert_eq!(written["status"]["dockerImageRepository"], "x");
    assert_eq!(written["metadata"]["generation"], 2);
    assert_eq!(admin.api.get(&one).await?.ok()?["status"]["dockerImageRepository"], "");

    let secrets = admin.api.get(&format!("{one}/layers")).await?.ok()?;
    assert_eq!((&secrets["kind"], &secrets["images"]), (&json!("ImageStreamLayers"), &json!({})));
    let refused =
        admin.api.post(&path, &stream("e5", &json!([docker("a", "x:y:z")]))).await?.expect_code(422)?;
    assert_eq!(
        refused["message"],
        "ImageStream.image.openshift.io \"e5\" is invalid: spec.tags[a].from.name: Invalid value: \"x:y:z\": invalid reference format"
    );
    Ok(())
}

#[tokio::test]
async fn a_followed_tag_moves_its_followers_and_watchers_see_it() -> anyhow::Result<()> {
    let plane = ControlPlane::exclusive().await?;
    let admin = plane.admin()?;
    let alice = newcomer(&plane, "alice")?;
    let source = new_namespace(&admin, "source").await?;
    let own = new_namespace(&admin, "own").await?;
    let verbs = ["create", "get", "list", "watch", "update", "patch"];
    grant(&admin, &own, &alice.name, "imagestreams", &verbs).await?;
    admin.api.post(&streams_path(&source), &stream("base", &json!([]))).await?.expect_code(201)?;
    push(&admin, &source, "base", "1", "image-one").await?;

    // Without the permission to pull there is nothing to follow.
    let path = streams_path(&own);
    let body = stream("app", &json!([follow("t", &source, "base:1")]));
    eventually("alice may create streams", 30, || async {
        let answer = alice.api.post(&path, &body).await?;
        Ok(if answer.status == 422 { Ok(answer.text()) } else { Err(answer.text()) })
    })
    .await
    .and_then(|text| {
        ensure!(text.contains(&format!("spec.tags[t].from: Forbidden: {source}/base")), "{text}");
        Ok(())
    })?;
    grant(&admin, &source, &alice.name, "imagestreams/layers", &["get"]).await?;
    let made = eventually("alice may pull", 30, || async {
        let answer = alice.api.post(&path, &body).await?;
        Ok(if answer.status == 201 { answer.json().map(Ok)? } else { Err(answer.text()) })
    })
    .await?;
    assert_eq!(history(&made, "t"), ["image-one"]);

    let version = made["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut watch = alice.api.watch(&format!("{path}?watch=1&resourceVersion={version}")).await?;
    push(&admin, &source, "base", "1", "image-two").await?;
    let event = watch.until(30, |event| event.kind == "MODIFIED" && event.name() == "app").await?;
    assert_eq!(history(&event.object, "t"), ["image-two", "image-one"]);
    assert_eq!(event.object["metadata"]["generation"], 1);
    ensure!(event.revision() > version.parse()?, "not a new revision: {}", event.revision());

    // The same bytes at the same revision, whatever becomes of the server.
    let before = alice.api.get(&format!("{path}/app")).await?.text();
    plane.crash_and_restart_our_server().await?;
    let after = eventually("the server answers again", 60, || async {
        let answer = alice.api.get(&format!("{path}/app")).await?;
        Ok(if answer.status == 200 { Ok(answer.text()) } else { Err(answer.text()) })
    })
    .await?;
    assert_eq!(after, before);
    push(&admin, &source, "base", "1", "image-three").await?;
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = alice.api.patch(&format!("{path}/app"), patch::MERGE, &labelled).await?.ok()?;
    assert_eq!(history(&labelled, "t"), ["image-three", "image-two", "image-one"]);
    Ok(())
}

#[tokio::test]
async fn twenty_writers_of_one_stream_lose_nothing() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "writers").await?;
    let path = streams_path(&namespace);
    admin
        .api
        .post(&path, &stream("app", &json!([reference("first", "quay.io/x")])))
        .await?
        .expect_code(201)?;
    let one = format!("{path}/app");
    let writers = (0..WRITERS).map(|writer| {
        let (admin, one, namespace) = (admin.clone(), one.clone(), namespace.clone());
        async move {
            for n in 0..TAGS_EACH {
                let tag = format!("t{:03}", writer * TAGS_EACH + n);
                let tag_it = reference(&tag, &format!("quay.io/lab/app:{tag}"));
                let add = json!([{"op": "add", "path": "/spec/tags/-", "value": tag_it}]);
                admin.api.patch(&one, patch::JSON, &add).await?.ok()?;
                push(&admin, &namespace, "app", &tag, &format!("image-{tag}")).await?;
            }
            anyhow::Ok(())
        }
    });
    futures::future::try_join_all(writers).await?;
    let stream = admin.api.get(&one).await?.ok()?;
    assert_eq!(stream["spec"]["tags"].as_array().map(Vec::len), Some(WRITERS * TAGS_EACH + 1));
    for n in 0..WRITERS * TAGS_EACH {
        let tag = format!("t{n:03}");
        assert_eq!(history(&stream, &tag), [format!("image-{tag}"), format!("quay.io/lab/app:{tag}")]);
    }
    assert_eq!(stream["metadata"]["generation"], WRITERS * TAGS_EACH + 1);
    Ok(())
}

#[tokio::test]
async fn a_namespace_takes_its_streams_with_it() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "streams-end").await?;
    let path = streams_path(&namespace);
    for name in ["a", "b"] {
        admin.api.post(&path, &stream(name, &json!([docker("t", "quay.io/x")]))).await?.expect_code(201)?;
    }
    let home = format!("/api/v1/namespaces/{namespace}");
    admin.api.delete(&home, &json!({})).await?;
    eventually("the namespace goes", 120, || async {
        let answer = admin.api.get(&home).await?;
        Ok(if answer.status == 404 { Ok(()) } else { Err(answer.text()) })
    })
    .await?;
    assert_eq!(admin.api.get(&path).await?.ok()?["items"], json!([]));
    Ok(())
}
