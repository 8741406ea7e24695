//! Answers that the real server gave, replayed in their order.

use super::*;

/// Requests and answers; those without an answer lead from one to the next.
const RECORDED: &str = include_str!("../testdata/recorded.json");
/// The columns of its table of users.
const COLUMNS: &str = include_str!("../testdata/user_columns.json");

/// Gives every uid the number of its first appearance, and takes revisions and times out.
#[derive(Default)]
struct Plain(BTreeMap<String, usize>);

impl Plain {
    fn of(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), self.field(key, value))).collect()
            }
            Value::Array(list) => list.iter().map(|value| self.of(value)).collect(),
            other => other.clone(),
        }
    }

    fn field(&mut self, key: &str, value: &Value) -> Value {
        match (key, value) {
            ("uid", Value::String(uid)) => {
                let next = self.0.len();
                (*self.0.entry(uid.clone()).or_insert(next)).into()
            }
            ("resourceVersion" | "creationTimestamp", Value::String(_)) => "some".into(),
            (_, value) => self.of(value),
        }
    }
}

#[tokio::test]
async fn answers_are_the_real_servers() {
    let recorded: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 39);
    let world = World::new().await;
    let (mut ours, mut theirs) = (Plain::default(), Plain::default());
    for case in recorded {
        let (method, path) = (case["method"].as_str().unwrap(), case["path"].as_str().unwrap());
        let (code, mut got) = world.send(method, path, &case["body"]).await;
        assert_eq!(code, case["code"], "{method} {path} {}: {got}", case["body"]);
        let mut wanted = case["answer"].clone();
        if let (Some(list), Some(items)) = (got.as_array_mut(), wanted.get_mut("items")) {
            // The handler adds the list around the items, and leaves their kinds out.
            for item in list {
                item.as_object_mut().unwrap().retain(|field, _| field != "kind" && field != "apiVersion");
            }
            wanted = items.take();
        }
        // Of an error that a client printed, only what it printed is known.
        if let (Some(map), None) = (wanted.as_object(), wanted.get("apiVersion").or(wanted.get(0))) {
            got.as_object_mut().unwrap().retain(|field, _| map.contains_key(field));
        }
        if !wanted.is_null() {
            assert_eq!(ours.of(&got), theirs.of(&wanted), "{method} {path} {}", case["body"]);
        }
    }
}

#[test]
fn columns_are_the_real_servers() {
    let columns: Vec<Value> = USERS
        .columns
        .iter()
        .map(|c| {
            json!({"name": c.name, "type": c.r#type, "format": c.format, "description": c.description,
                "priority": c.priority})
        })
        .collect();
    assert_eq!(Value::from(columns), serde_json::from_str::<Value>(COLUMNS).unwrap());
}

#[tokio::test]
async fn rows_are_the_real_servers() {
    let world = World::new().await;
    let row = |plural: &str, object: Value| {
        let storage = world.storages.iter().find(|s| s.resource().plural == plural).unwrap();
        let row = storage.row(&Object::from_value(object).unwrap());
        assert_eq!(row.len(), storage.resource().columns.len());
        row
    };
    let object =
        json!({"metadata": {"name": "carol", "uid": "1"}, "fullName": "Newer", "identities": ["p:u", "q:u"]});
    assert_eq!(row("users", object), ["carol", "1", "Newer", "p:u, q:u"]);
    assert_eq!(
        row("groups", json!({"metadata": {"name": "devs"}, "users": ["carol", "erin"]})),
        ["devs", "carol, erin"]
    );
    assert_eq!(row("groups", json!({"metadata": {"name": "devs"}, "users": null})), ["devs", ""]);
    let object = json!({"metadata": {"name": "p:u"}, "providerName": "p", "providerUserName": "u",
        "user": {"name": "carol", "uid": "1"}});
    assert_eq!(row("identities", object), ["p:u", "p", "u", "carol", "1"]);
}
