//! What a CRD's objects and ours cannot have in common, taken away on both sides before anything is compared.
//!
//! - The two groups are one word.
//! - `status.ingress` of the `default` router, and what is empty without it: ours is computed on read (design, section 2).
//! - An empty `continue` of a list: only that of a CRD says that there is none.
//! - The key of an object in its store, whose prefix is the server's own affair.
//! - `apiVersion` and `kind` of the items of a list: a compiled-in kind has none there (recorded in `answers/`), a CRD has.

use serde_json::{Map, Value};

use crate::scan;

/// What stands for both groups.
const GROUP: &str = "GROUP";

/// A text without the name of the group.
pub(crate) fn text(group: &str, text: &str) -> String {
    let text = text.replace(group, GROUP);
    if let Some((before, value, after)) = scan::value_in_message(&text) {
        return format!("{before}{}{after}", body(group, &value));
    }
    let Some((before, after)) = text.split_once("Key: /") else { return text };
    let Some((_, key)) = after.split_once("routes/") else { return text };
    format!("{before}Key: <prefix>/routes/{key}")
}

/// A body without what only one side can have.
pub(crate) fn body(group: &str, value: &Value) -> Value {
    match value {
        Value::String(plain) => text(group, plain).into(),
        Value::Array(items) => items.iter().map(|item| body(group, item)).collect(),
        Value::Object(map) => {
            let mut map: Map<String, Value> =
                map.iter().map(|(key, value)| (text(group, key), body(group, value))).collect();
            if map.contains_key("metadata") {
                drop_computed(&mut map);
            }
            if map.get("continue").is_some_and(|token| token == "") {
                map.remove("continue");
            }
            for item in map.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                if item["kind"] == "Route"
                    && let Some(item) = item.as_object_mut()
                {
                    item.retain(|key, _| key != "kind" && key != "apiVersion");
                }
            }
            Value::Object(map)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn drop_computed(object: &mut Map<String, Value>) {
    let Some(Value::Object(status)) = object.get_mut("status") else { return };
    if let Some(Value::Array(ingress)) = status.get_mut("ingress") {
        ingress.retain(|entry| entry["routerName"] != "default");
        if ingress.is_empty() {
            status.remove("ingress");
        }
    }
    if status.is_empty() {
        object.remove("status");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_one_side_cannot_have_goes() {
        let ingress = json!([{"routerName": "default"}, {"routerName": "mine"}]);
        let ours = json!({"apiVersion": "g.io/v1", "kind": "RouteList", "metadata": {}, "items": [
            {"metadata": {"name": "a"}, "status": {"ingress": [{"routerName": "default"}]}},
            {"metadata": {"name": "b"}, "status": {"ingress": ingress}},
        ]});
        let crd = json!({"apiVersion": "GROUP/v1", "kind": "RouteList", "metadata": {}, "items": [
            {"apiVersion": "g.io/v1", "kind": "Route", "metadata": {"name": "a"}},
            {"metadata": {"name": "b"}, "status": {"ingress": [{"routerName": "mine"}]}},
        ]});
        assert_eq!(body("g.io", &ours), body("g.io", &crd));
        let status =
            json!({"kind": "Status", "metadata": {}, "status": "Failure", "message": "no routes.g.io"});
        assert_eq!(body("g.io", &status)["message"], "no routes.GROUP");
        assert_eq!(body("g.io", &status)["status"], "Failure");
        assert_eq!(
            text("g.io", "Code: 4, Key: /registry/g.io/routes/a/b, x"),
            "Code: 4, Key: <prefix>/routes/a/b, x"
        );
        assert_eq!(
            body("g.io", &json!({"continue": "", "resourceVersion": ""})),
            json!({"resourceVersion": ""})
        );
    }
}
