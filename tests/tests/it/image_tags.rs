//! Tags of image streams as `imagestreamtags`, `imagetags` and `imagestreamimages`: written and read on their own, while
//! the stream is what is stored.

use anyhow::ensure;
use futures::future::try_join_all;
use picoshift_tests::eventually::eventually;
use picoshift_tests::http::patch;
use picoshift_tests::objects::{names, unique};
use picoshift_tests::{Actor, ControlPlane};
use serde_json::{Value, json};

use crate::support::{assert_forbidden, new_namespace, newcomer};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const DIGEST: &str = "sha256:a51146d38077ff992eba84cf1d5e9b249073503eb74868699016153b031a38f7";

fn path(namespace: &str, resource: &str) -> String {
    format!("/apis/image.openshift.io/v1/namespaces/{namespace}/{resource}")
}

/// An imagestreamtag `stream:tag` of a pull spec, which nobody imports meanwhile.
fn docker(name: &str, pull_spec: &str) -> Value {
    let tag = name.split_once(':').map_or(name, |(_, tag)| tag);
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStreamTag", "metadata": {"name": name},
        "tag": {"name": tag, "from": {"kind": "DockerImage", "name": pull_spec}, "reference": true},
    })
}

async fn set(actor: &Actor, namespace: &str, name: &str, pull_spec: &str) -> anyhow::Result<Value> {
    let one = format!("{}/{name}", path(namespace, "imagestreamtags"));
    let answer = actor.api.put(&one, &docker(name, pull_spec)).await?;
    ensure!([200, 201].contains(&answer.status.as_u16()), "{}: {}", answer.status, answer.text());
    answer.json()
}

#[tokio::test]
async fn a_blind_put_makes_stream_and_tag_and_is_seen_at_once() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    let (istags, itags) = (path(&namespace, "imagestreamtags"), path(&namespace, "imagetags"));
    let one = format!("{istags}/app:1");
    let made = admin.api.put(&one, &docker("app:1", "quay.io/lab/app:1")).await?.expect_code(201)?;
    assert_eq!(made["image"]["dockerImageReference"], "quay.io/lab/app:1");
    assert_eq!(made["tag"]["generation"], 1);
    assert_eq!(made["lookupPolicy"], json!({"local": false}));
    assert_eq!(admin.api.get(&one).await?.ok()?, made);
    assert_eq!(admin.direct()?.get(&one).await?.ok()?, made);
    let again = admin.api.put(&one, &docker("app:1", "quay.io/lab/app:2")).await?.ok()?;
    assert_eq!(again["tag"]["generation"], 2);
    assert_eq!(again["metadata"]["uid"], made["metadata"]["uid"], "the stream's");

    let taken = admin.api.post(&istags, &docker("app:1", "quay.io/lab/app:1")).await?.expect_code(409)?;
    assert_eq!(taken["message"], "imagestreamtag.image.openshift.io \"app:1\" already exists");
    let form = admin.api.get(&format!("{istags}/app")).await?.expect_code(400)?;
    assert_eq!(form["message"], "ImageStreamTags must be retrieved with <name>:<tag>");
    let missing = admin.api.get(&format!("{istags}/nosuch:1")).await?.expect_code(404)?;
    assert_eq!(missing["message"], "imagestreamtags.image.openshift.io \"nosuch\" not found");
    let mut old = docker("app:1", "quay.io/lab/app:3");
    old["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    assert_eq!(admin.api.put(&one, &old).await?.expect_code(409)?["reason"], "Conflict");
    let watch = admin.api.get(&format!("{istags}?watch=1")).await?.expect_code(405)?;
    assert_eq!(
        watch["message"],
        "watch is not supported on resources of kind \"imagestreamtags.image.openshift.io\""
    );
    let nowhere = admin.api.get(&path(&namespace, "imagestreamimages")).await?.expect_code(404)?;
    assert_eq!(nowhere["message"], "the server could not find the requested resource");

    let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
    let annotated = admin.api.patch(&one, patch::MERGE, &annotated).await?.ok()?;
    assert_eq!(annotated["tag"]["annotations"], json!({"a": "b"}));
    let shown = admin.api.get(&format!("{itags}/app:1")).await?.ok()?;
    assert_eq!(shown["spec"]["annotations"], json!({"a": "b"}));
    // Of pull specs that were never imported there is no history.
    assert_eq!(shown["status"]["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(shown["status"]["items"][0]["dockerImageReference"], "quay.io/lab/app:2");
    assert_eq!(shown["image"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn lists_come_in_pages_and_tables() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    for name in ["b:1", "a:2", "a:1", "a:3", "c:1"] {
        set(&admin, &namespace, name, &format!("quay.io/lab/{name}")).await?;
    }
    let (istags, itags) = (path(&namespace, "imagestreamtags"), path(&namespace, "imagetags"));
    let all = ["a:1", "a:2", "a:3", "b:1", "c:1"];
    for resource in [&istags, &itags] {
        let whole = admin.api.get(resource).await?.ok()?;
        assert_eq!(names(&whole), all);
        let (mut token, mut paged) = (String::new(), Vec::new());
        loop {
            let page = admin.api.get(&format!("{resource}?limit=2&continue={token}")).await?.ok()?;
            assert_eq!(page["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);
            paged.extend(names(&page).into_iter().map(str::to_owned));
            page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut token);
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(paged, all, "{resource}");
    }
    let streams = admin.api.get(&path(&namespace, "imagestreams")).await?.ok()?;
    let whole = admin.api.get(&istags).await?.ok()?;
    assert_eq!(streams["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);

    let table = admin.api.get_as(&itags, TABLE).await?.ok()?;
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(columns, ["Name", "Spec", "Status", "History", "Updated"]);
    let cells = table["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
    assert_eq!(cells[..4], [json!("a:1"), json!("Ref"), json!("quay.io/lab/a:1"), json!(1)]);
    ensure!(cells[4].as_str().is_some_and(|age| age.ends_with(" ago")), "{cells:?}");
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let metadata = admin.api.get_as(&istags, metadata).await?.ok()?;
    assert_eq!(names(&metadata), all);
    Ok(())
}

#[tokio::test]
async fn kubectl_reads_changes_and_deletes_tags() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    let file = plane.stage.directory.join(unique("istag")).with_extension("json");
    std::fs::write(&file, serde_json::to_vec(&docker("app:1", "quay.io/lab/app:1"))?)?;
    let file = file.to_string_lossy().into_owned();
    let kubectl = async |args: &[&str]| {
        let args: Vec<&str> = ["-n", &namespace].into_iter().chain(args.iter().copied()).collect();
        admin.kubectl.ok(&args).await
    };
    let dry = kubectl(&["create", "-f", &file, "--dry-run=server", "-o", "name"]).await?;
    assert_eq!(dry, "imagestreamtag.image.openshift.io/app:1\n");
    assert_eq!(kubectl(&["get", "istag"]).await?, "");
    assert_eq!(kubectl(&["create", "-f", &file]).await?, "imagestreamtag.image.openshift.io/app:1 created\n");
    let listed = kubectl(&["get", "istag", "--no-headers"]).await?;
    ensure!(listed.starts_with("app:1   quay.io/lab/app:1   ") && listed.ends_with(" ago\n"), "{listed}");
    let listed = kubectl(&["get", "itag", "app:1", "--no-headers"]).await?;
    let words: Vec<_> = listed.split_whitespace().take(4).collect();
    assert_eq!(words, ["app:1", "Ref", "quay.io/lab/app:1", "1"]);
    std::fs::write(&file, serde_json::to_vec(&docker("app:1", "quay.io/lab/app:2"))?)?;
    kubectl(&["replace", "-f", &file]).await?;
    let change = r#"{"tag":{"from":{"name":"quay.io/lab/app:3"}}}"#;
    kubectl(&["patch", "istag", "app:1", "--type=merge", "-p", change]).await?;
    let reference =
        kubectl(&["get", "istag", "app:1", "-o", "jsonpath={.image.dockerImageReference}"]).await?;
    assert_eq!(reference, "quay.io/lab/app:3");

    let explained = kubectl(&["explain", "imagetags"]).await?;
    for line in ["spec\t<TagReference>", "status\t<NamedTagEventList>"] {
        ensure!(explained.contains(line), "no {line:?} in {explained}");
    }
    let short =
        admin.kubectl.ok(&["api-resources", "--api-group=image.openshift.io", "--no-headers"]).await?;
    for name in ["istag", "itag", "isimage"] {
        ensure!(short.split_whitespace().any(|word| word == name), "no {name} in {short}");
    }

    let gone = kubectl(&["delete", "istag", "app:1"]).await?;
    ensure!(gone.contains("\"app:1\" deleted"), "{gone}");
    let stream: Value = serde_json::from_str(&kubectl(&["get", "is", "app", "-o", "json"]).await?)?;
    ensure!(stream["spec"].get("tags").is_none() && stream["status"].get("tags").is_none(), "{stream}");
    let said = admin.kubectl.run(&["-n", &namespace, "delete", "istag", "app:1"]).await?;
    ensure!(
        said.stderr.contains("imagestreamtags.image.openshift.io \"app:1\" not found"),
        "{}",
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn twenty_writers_of_one_stream_lose_nothing() -> anyhow::Result<()> {
    const WRITERS: usize = 20;
    const ROUNDS: usize = 5;
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    let writers = (0..WRITERS).map(|writer| {
        let (admin, namespace) = (admin.clone(), namespace.clone());
        async move {
            for round in 0..ROUNDS {
                // Of five tags each is written by four.
                let name = format!("app:t{}", writer % 5);
                set(&admin, &namespace, &name, &format!("quay.io/lab/app:{writer}-{round}")).await?;
                set(&admin, &namespace, &format!("app:own{writer}"), &format!("quay.io/lab/app:{round}"))
                    .await?;
            }
            anyhow::Ok(())
        }
    });
    try_join_all(writers).await?;
    let stream = admin.api.get(&format!("{}/app", path(&namespace, "imagestreams"))).await?.ok()?;
    assert_eq!(stream["spec"]["tags"].as_array().map(Vec::len), Some(WRITERS + 5));
    let tags = stream["status"]["tags"].as_array().cloned().unwrap_or_default();
    assert_eq!(tags.len(), WRITERS + 5);
    for tag in &tags {
        ensure!(tag["items"].as_array().is_some_and(|items| !items.is_empty()), "no history: {tag}");
    }
    assert_eq!(stream["metadata"]["generation"], 2 * WRITERS * ROUNDS, "every write counted once");
    Ok(())
}

#[tokio::test]
async fn who_may_write_tags_needs_no_more() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    let bob = newcomer(&plane, "bob")?;
    let refused =
        bob.api.put(&format!("{}/app:1", path(&namespace, "imagestreamtags")), &docker("app:1", "a")).await?;
    assert_forbidden(&refused.expect_code(403)?, &bob.name);
    let role = |verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tagger"},
            "rules": [{"apiGroups": ["image.openshift.io"], "resources": ["imagestreamtags"], "verbs": verbs}]})
    };
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    admin.api.post(&format!("{rbac}/roles"), &role(&["get", "list", "update"])).await?.expect_code(201)?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "tagger"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tagger"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": bob.name}]});
    admin.api.post(&format!("{rbac}/rolebindings"), &binding).await?.expect_code(201)?;
    let one = format!("{}/app:1", path(&namespace, "imagestreamtags"));
    // A stream is created by an update only for who may create.
    let refused = eventually("the role to reach the authorizer", 60, || async {
        let answer = bob.api.put(&one, &docker("app:1", "a")).await?.expect_code(403)?;
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        Ok(if message.contains("cannot create resource") { Ok(message) } else { Err(message) })
    })
    .await?;
    ensure!(refused.contains("\"imagestreamtags\" in API group \"image.openshift.io\""), "{refused}");
    set(&admin, &namespace, "app:0", "quay.io/lab/app:0").await?;
    bob.api.put(&one, &docker("app:1", "quay.io/lab/app:1")).await?.expect_code(201)?;
    bob.api.get(&one).await?.ok()?;
    let streams = bob.api.get(&format!("{}/app", path(&namespace, "imagestreams"))).await?;
    assert_forbidden(&streams.expect_code(403)?, &bob.name);

    // Another namespace's images are not his to take.
    let elsewhere = new_namespace(&admin, "secret").await?;
    set(&admin, &elsewhere, "app:1", "quay.io/lab/secret:1").await?;
    let mut theirs = docker("app:2", "app:1");
    theirs["tag"]["from"] = json!({"kind": "ImageStreamTag", "name": "app:1", "namespace": elsewhere});
    let two = format!("{}/app:2", path(&namespace, "imagestreamtags"));
    let refused = bob.api.put(&two, &theirs).await?.expect_code(422)?;
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(message.contains(&format!("{elsewhere}/app")) && message.contains("Forbidden"), "{message}");
    let taken = admin.api.put(&two, &theirs).await?.expect_code(201)?;
    assert_eq!(taken["image"]["dockerImageReference"], "quay.io/lab/secret:1");
    Ok(())
}

#[tokio::test]
async fn a_pushed_image_is_shown_by_tag_and_by_digest() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    set(&admin, &namespace, "app:1", "quay.io/lab/app:1").await?;
    let mapping = json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamMapping",
        "metadata": {"name": "app"}, "tag": "pushed",
        "image": {"metadata": {"name": DIGEST}, "dockerImageReference": format!("registry.example/a@{DIGEST}")}});
    admin.api.post(&path(&namespace, "imagestreammappings"), &mapping).await?.expect_code(201)?;
    let pushed = admin.api.get(&format!("{}/app:pushed", path(&namespace, "imagestreamtags"))).await?.ok()?;
    assert_eq!(pushed["tag"], Value::Null);
    assert_eq!(pushed["image"]["metadata"]["name"], DIGEST);
    let images = path(&namespace, "imagestreamimages");
    let shown = admin.api.get(&format!("{images}/app@a51146")).await?.ok()?;
    assert_eq!(shown["metadata"]["name"], "app@a51146");
    assert_eq!(shown["image"]["metadata"]["name"], DIGEST);
    let missing = admin.api.get(&format!("{images}/app@sha256:dead")).await?.expect_code(404)?;
    assert_eq!(missing["message"], "imagestreamimage.image.openshift.io \"app@sha256:dead\" not found");
    let form = admin.api.get(&format!("{images}/app")).await?.expect_code(400)?;
    assert_eq!(form["message"], "ImageStreamImages must be retrieved with <name>@<id>");
    let table =
        admin.api.get_as(&format!("{}/app:pushed", path(&namespace, "imagetags")), TABLE).await?.ok()?;
    assert_eq!(table["rows"][0]["cells"][1], "Push");
    assert_eq!(table["rows"][0]["cells"][2], format!("image/{DIGEST}"));
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_tags_inside_goes() -> anyhow::Result<()> {
    let plane = ControlPlane::shared().await?;
    let admin = plane.admin()?;
    let namespace = new_namespace(&admin, "tags").await?;
    set(&admin, &namespace, "app:1", "quay.io/lab/app:1").await?;
    set(&admin, &namespace, "other:1", "quay.io/lab/app:1").await?;
    let whole = format!("/api/v1/namespaces/{namespace}");
    admin.api.delete(&whole, &json!({})).await?.ok()?;
    // As soon as our server has heard of it, nothing more goes in.
    eventually("new tags to be refused", 60, || async {
        let one = format!("{}/{}:1", path(&namespace, "imagestreamtags"), unique("new"));
        let answer = admin.api.put(&one, &docker(one.rsplit('/').next().unwrap_or_default(), "a")).await?;
        Ok(if [403, 404].contains(&answer.status.as_u16()) { Ok(()) } else { Err(answer.text()) })
    })
    .await?;
    eventually("the namespace to go", 120, || async {
        let answer = admin.api.get(&whole).await?;
        Ok(if answer.status.as_u16() == 404 { Ok(()) } else { Err(answer.text()) })
    })
    .await?;
    assert_eq!(names(&admin.api.get(&path(&namespace, "imagestreamtags")).await?.ok()?), [""; 0]);
    Ok(())
}
