//! What an image lets be changed, and what it takes from its manifest.

use picoshift_machinery::Object;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::groups::image::manifest::{DOCKER_LIST, DOCKER_MANIFEST, OCI_MANIFEST, has_digest};
use crate::groups::image::testing::Fixture;

fn digest(text: &str) -> String {
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

const CONFIG: &str = r#"{"architecture":"amd64","os":"linux","created":"2020-01-02T03:04:05.6Z","config":{"Env":["A=b"]},"rootfs":{"type":"layers"}}"#;

fn manifest(media_type: &str) -> String {
    json!({
        "schemaVersion": 2, "mediaType": media_type,
        "config": {"digest": digest(CONFIG), "size": CONFIG.len(), "mediaType": "c"},
        "layers": [{"digest": "sha256:l1", "size": 10, "mediaType": "l"}, {"digest": "sha256:l1", "size": 10, "mediaType": "l"},
                   {"digest": "sha256:l2", "size": 5, "mediaType": "l"}],
    })
    .to_string()
}

fn image(name: &str, more: &Value) -> Value {
    let mut image = json!({"metadata": {"name": name}, "dockerImageReference": "quay.io/x"});
    for (field, value) in more.as_object().unwrap() {
        image[field] = value.clone();
    }
    image
}

#[tokio::test]
async fn an_image_is_filled_from_its_manifest() {
    let fixture = Fixture::bare().await;
    let raw = manifest(OCI_MANIFEST);
    let more = json!({"dockerImageManifest": raw, "dockerImageConfig": CONFIG});
    let made = fixture.post("images", "", &image(&digest(&raw), &more)).await.unwrap();
    let metadata = &made["dockerImageMetadata"];
    assert_eq!(metadata["Id"], digest(CONFIG));
    assert_eq!(metadata["Created"], "2020-01-02T03:04:05Z");
    assert_eq!(metadata["Size"], CONFIG.len() + 15, "each layer counts once");
    assert_eq!(metadata["Config"], json!({"Env": ["A=b"]}));
    assert_eq!(made["dockerImageManifestMediaType"], OCI_MANIFEST);
    assert_eq!(made["dockerImageLayers"].as_array().unwrap().len(), 3);
    assert_eq!(made["metadata"]["annotations"], json!({"image.openshift.io/dockerLayersOrder": "ascending"}));
    assert!(made["metadata"].get("generation").is_none());

    let list = json!({"schemaVersion": 2, "mediaType": DOCKER_LIST, "manifests": [
        {"digest": digest("a"), "mediaType": DOCKER_MANIFEST, "size": 7, "platform": {"architecture": "arm", "os": "linux", "variant": "v7"}},
    ]});
    let more = json!({"dockerImageManifest": list.to_string(), "dockerImageManifestMediaType": DOCKER_LIST});
    let made = fixture.post("images", "", &image("list", &more)).await.unwrap();
    assert_eq!(
        made["dockerImageManifests"],
        json!([{"digest": digest("a"), "mediaType": DOCKER_MANIFEST, "manifestSize": 7, "architecture": "arm", "os": "linux", "variant": "v7"}])
    );
    assert_eq!(made["dockerImageMetadata"]["Id"], "list");
}

#[tokio::test]
async fn a_manifest_of_countless_layers_fills_nothing() {
    let fixture = Fixture::bare().await;
    for (name, layers) in [("few", 1_000_usize), ("many", 1_001)] {
        let list: Vec<Value> = (0..layers).map(|n| json!({"digest": n.to_string(), "size": 1})).collect();
        let manifest = json!({"schemaVersion": 2, "config": {"digest": "c"}, "layers": list}).to_string();
        let body = image(name, &json!({"dockerImageManifest": manifest, "dockerImageConfig": "{}"}));
        let made = fixture.post("images", "", &body).await.unwrap();
        let filled = made.get("dockerImageLayers").and_then(Value::as_array).map_or(0, Vec::len);
        let size = made["dockerImageMetadata"]["Size"].as_u64().unwrap_or_default();
        assert_eq!((filled, size), if name == "few" { (1_000, 1_002) } else { (0, 0) });
    }
}

#[tokio::test]
async fn what_cannot_change_is_put_back_in_silence() {
    let fixture = Fixture::bare().await;
    let raw = manifest(DOCKER_MANIFEST);
    let name = digest(&raw);
    let more = json!({"dockerImageManifestMediaType": DOCKER_MANIFEST, "dockerImageMetadata": {"Architecture": "amd64"},
        "dockerImageLayers": [{"name": "l", "size": 1, "mediaType": "m"}], "dockerImageSignatures": ["YQ=="]});
    let made = fixture.post("images", "", &image(&name, &more)).await.unwrap();

    let mut other = made.clone();
    other["dockerImageMetadata"]["Architecture"] = json!("arm");
    other["dockerImageLayers"] = json!([]);
    other["dockerImageSignatures"] = json!(["Yg=="]);
    other["dockerImageManifest"] = json!("{}");
    other["dockerImageConfig"] = json!("{}");
    assert_eq!(fixture.put("images", &other).await.unwrap(), made, "nothing is left to write");

    let mut right = made.clone();
    right["dockerImageManifest"] = json!(raw);
    right["dockerImageConfig"] = json!(CONFIG);
    let filled = fixture.put("images", &right).await.unwrap();
    assert_eq!((&filled["dockerImageManifest"], &filled["dockerImageConfig"]), (&json!(raw), &json!(CONFIG)));
    assert_eq!(filled["dockerImageMetadata"]["Id"], digest(CONFIG));

    let mut stored = filled.clone();
    stored["metadata"]["annotations"]["image.openshift.io/manifestBlobStored"] = json!("true");
    let stored = fixture.put("images", &stored).await.unwrap();
    assert!(stored.get("dockerImageManifest").is_none() && stored.get("dockerImageConfig").is_none());
}

#[tokio::test]
async fn rules_of_images_and_signatures() {
    let fixture = Fixture::bare().await;
    let refuse = async |more: Value| {
        let status = fixture.post("images", "", &image("x", &more)).await.unwrap_err();
        status.message.trim_start_matches("Image.image.openshift.io \"x\" is invalid: ").to_owned()
    };
    assert_eq!(
        refuse(json!({"dockerImageReference": "a:b:c"})).await,
        "dockerImageReference: Invalid value: \"a:b:c\": invalid reference format"
    );
    let metadata = refuse(json!({"dockerImageMetadata": {"Size": "x"}})).await;
    assert!(
        metadata.starts_with(
            "Image in version \"v1\" cannot be handled as a Image: json: cannot unmarshal string"
        )
    );
    let bad =
        json!([{"digest": "d", "mediaType": "m", "manifestSize": -1, "architecture": "", "os": "linux"}]);
    let errors = refuse(json!({"dockerImageManifests": bad, "dockerImageLayers": [{"name": "l", "size": 1, "mediaType": "m"}]})).await;
    for part in [
        "dockerImageManifests[0].digest: Invalid value: \"d\": digest does not conform with OCI image specification",
        "dockerImageManifests[0].mediaType: Invalid value: \"m\": media type does not conform to RFC6838",
        "dockerImageManifests[0].architecture: Required value",
        "dockerImageManifests[0].size: Invalid value: -1: manifest size cannot be negative",
        "dockerImageLayers should not be set when dockerImageManifests is set",
    ] {
        assert!(errors.contains(part), "{part} is not in {errors}");
    }
    let signature = json!([{"metadata": {"name": "noat", "labels": {"a": "b"}}, "type": "", "content": "c2ln", "imageIdentity": "me"}]);
    let errors = refuse(json!({"signatures": signature})).await;
    for part in [
        "signatures[0].metadata.labels: Forbidden: signature labels cannot be set",
        "signatures[0].metadata.name: Invalid value: \"noat\": name must be of format",
        "signatures[0].type: Required value",
        "signatures[0].imageIdentity: Invalid value: \"me\": must be unset for unknown signature state",
    ] {
        assert!(errors.contains(part), "{part} is not in {errors}");
    }
}

#[tokio::test]
async fn signatures_are_kept_in_the_image() {
    let fixture = Fixture::bare().await;
    fixture.post("images", "", &image("img", &json!({}))).await.unwrap();
    let body =
        |name: &str, content: &str| json!({"metadata": {"name": name}, "type": "atomic", "content": content});
    fixture.post("imagesignatures", "", &body("img@one", "YQ==")).await.unwrap();
    fixture.post("imagesignatures", "", &body("img@two", "Yg==")).await.unwrap();
    for taken in [body("img@one", "Yw=="), body("img@three", "YQ==")] {
        let status = fixture.post("imagesignatures", "", &taken).await.unwrap_err();
        let name = taken["metadata"]["name"].as_str().unwrap();
        assert_eq!(status.message, format!("imageSignatures.image.openshift.io \"{name}\" already exists"));
    }
    let missing = fixture.post("imagesignatures", "", &body("no@one", "YQ==")).await.unwrap_err();
    assert_eq!(missing.message, "images.image.openshift.io \"no\" not found");
    fixture.delete("imagesignatures", "", "img@one").await;
    let image: Object = fixture.group.access.image("img").await.unwrap();
    let signatures = image.0["signatures"].as_array().unwrap();
    assert_eq!(signatures.len(), 1);
    assert_eq!(signatures[0]["metadata"]["name"], "img@two");
    assert!(signatures[0].get("kind").is_none());
}

#[test]
fn digests_are_checked_by_their_algorithm() {
    assert!(has_digest(b"x", &digest("x")));
    assert!(!has_digest(b"y", &digest("x")));
    for other in ["", "sha256:", "md5:9dd4e461268c8034f5c8564e155c67a6"] {
        assert!(!has_digest(b"x", other));
    }
}
