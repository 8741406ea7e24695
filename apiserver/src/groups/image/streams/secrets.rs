//! `imagestreams/secrets`: the pull secrets of a namespace. Who may get them may read these secrets of the namespace
//! without a permission for secrets, as in OpenShift.

use picoshift_machinery::Object;
use serde_json::{Value, json};

use crate::groups::image::GROUP;
use crate::groups::image::columns::IMAGE_STREAMS;
use crate::rest::Item;

/// A secret with this annotation is not used for images.
const EXCLUDED: &str = "openshift.io/image.excludeSecret";
/// The types of pull secrets.
pub(super) const TYPES: [&str; 2] = ["kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"];

/// The pull secrets of a namespace, out of a list of each of [`TYPES`].
pub(super) fn answer(lists: Vec<Object>) -> Item {
    let revision = lists.iter().filter_map(|list| list.resource_version().parse().ok()).min().unwrap_or(0);
    Item::new(&IMAGE_STREAMS, pull_secrets(lists), revision)
}

fn pull_secrets(lists: Vec<Object>) -> Object {
    let items = lists.into_iter().filter_map(|mut list| match list.0.remove("items") {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    });
    let used = |secret: &Value| {
        secret.pointer("/metadata/annotations").and_then(|all| all.get(EXCLUDED)?.as_str()) != Some("true")
    };
    let mut items: Vec<Value> = items.flatten().filter(used).collect();
    // As one list has them.
    items.sort_by(|a, b| name(a).cmp(name(b)));
    let mut object = Object::new(&format!("{GROUP}/v1"), "SecretList");
    object.0.insert("metadata".to_owned(), json!({}));
    object.0.insert("items".to_owned(), items.into());
    object
}

fn name(secret: &Value) -> &str {
    secret.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pull_secrets_that_are_not_excluded_are_shown() {
        let secret = |name: &str, excluded: &str| json!({"metadata": {"name": name, "annotations": {EXCLUDED: excluded}}, "data": {}});
        let list = |items: Value| {
            Object::from_value(json!({"metadata": {"resourceVersion": "656"}, "items": items})).unwrap()
        };
        let lists = vec![
            list(json!([secret("a", "false"), {"metadata": {"name": "d"}}])),
            list(json!([secret("b", "true"), secret("c", "")])),
        ];
        let shown = pull_secrets(lists);
        let names: Vec<&str> = shown.0["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|secret| secret["metadata"]["name"].as_str())
            .collect();
        assert_eq!(names, ["a", "c", "d"]);
        let recorded = json!({"kind": "SecretList", "apiVersion": "image.openshift.io/v1",
            "metadata": {"resourceVersion": "656"}, "items": []});
        let item = answer(vec![list(json!([])), list(json!([]))]);
        assert_eq!(serde_json::from_slice::<Value>(&item.bytes).unwrap(), recorded);
    }
}
