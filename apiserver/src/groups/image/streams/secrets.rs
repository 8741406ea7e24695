//! `imagestreams/secrets`: the pull secrets of a namespace. Who may get them may read these secrets of the namespace
//! without a permission for secrets, as in OpenShift.

use picoshift_machinery::Object;
use serde_json::{Value, json};

use crate::groups::image::GROUP;
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::rest::Item;

/// A secret with this annotation is not used for images.
const EXCLUDED: &str = "openshift.io/image.excludeSecret";
const PULL_TYPES: [&str; 2] = ["kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"];

/// The pull secrets among all `secrets` of a namespace.
pub(super) fn answer(secrets: &Object) -> Item {
    let revision = secrets.resource_version().parse().unwrap_or(0);
    Item::new(&IMAGE_STREAMS, pull_secrets(secrets), revision)
}

fn pull_secrets(list: &Object) -> Object {
    let secrets = list.0.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of_images = |secret: &&Value| {
        let kind = secret.get("type").and_then(Value::as_str).unwrap_or("");
        let excluded =
            secret.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(EXCLUDED)?.as_str());
        PULL_TYPES.contains(&kind) && excluded != Some("true")
    };
    let items: Vec<Value> = secrets.iter().filter(of_images).cloned().collect();
    let mut object = Object::new(&format!("{GROUP}/v1"), "SecretList");
    object.0.insert("metadata".to_owned(), json!({}));
    object.0.insert("items".to_owned(), items.into());
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pull_secrets_that_are_not_excluded_are_shown() {
        let secret = |name: &str, kind: &str, excluded: &str| json!({"metadata": {"name": name, "annotations": {EXCLUDED: excluded}}, "type": kind, "data": {}});
        let list = Object::from_value(json!({"metadata": {"resourceVersion": "656"}, "items": [
            secret("a", "kubernetes.io/dockercfg", "false"),
            secret("b", "kubernetes.io/dockerconfigjson", "true"),
            secret("c", "Opaque", ""),
            {"metadata": {"name": "d"}, "type": "kubernetes.io/dockerconfigjson"},
        ]}))
        .unwrap();
        let shown = pull_secrets(&list);
        let names: Vec<&str> = shown.0["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|secret| secret["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names, ["a", "d"]);
        let none = Object::from_value(json!({"items": []})).unwrap();
        let recorded = json!({"kind": "SecretList", "apiVersion": "image.openshift.io/v1",
            "metadata": {"resourceVersion": "656"}, "items": []});
        let item = Item::new(&IMAGE_STREAMS, pull_secrets(&none), 656);
        assert_eq!(serde_json::from_slice::<Value>(&item.bytes).unwrap(), recorded);
    }
}
