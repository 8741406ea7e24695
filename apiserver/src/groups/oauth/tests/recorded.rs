//! Answers that the real server gave, replayed in their order.

use super::*;

const RECORDED: &str = include_str!("../testdata/recorded.json");
/// The uid of the recorded user.
const UID: &str = "1bed1c92-cb83-411b-961a-fb5d49d2f4e1";

/// Takes out what differs from run to run, and who is noted for which field.
fn plain(value: &Value, uid: &str) -> Value {
    let mut value: Value = serde_json::from_str(&value.to_string().replace(uid, UID)).unwrap();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(field);
        }
    }
    value
}

#[tokio::test]
async fn answers_are_the_real_servers() {
    let recorded: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 10);
    let world = World::new().await;
    let uid = world.new_user("u2").await;
    for case in recorded {
        let (method, path) = (case["method"].as_str().unwrap(), case["path"].as_str().unwrap());
        let body = serde_json::from_str(&case["body"].to_string().replace(UID, &uid)).unwrap();
        let (code, got) = world.send(method, path, &body).await;
        assert_eq!(code, case["code"], "{method} {path} {body}: {got}");
        assert_eq!(plain(&got, &uid), plain(&case["answer"], &uid), "{method} {path} {body}");
    }
}
