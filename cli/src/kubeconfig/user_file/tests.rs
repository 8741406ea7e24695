//! What goes in comes out again, whatever else is in the file.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

fn access(authority: &str) -> Access {
    Access {
        cluster: json!({"server": "https://127.0.0.1:6443", "certificate-authority-data": authority}),
        user: json!({"client-certificate-data": "Yw==", "client-key-data": "aw=="}),
    }
}

const OTHER: &str = r#"# kept as values; comments are not
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- name: kind-kind
  cluster:
    server: https://127.0.0.1:5000
    extensions:
    - name: minikube
      extension: {last-update: "Mon, 02 Jan 2006", n: 1}
users:
- name: kind-kind
  user:
    password: "0123"
    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: ["--yes", "on"], env: null}
contexts:
- name: kind-kind
  context: {cluster: kind-kind, user: kind-kind, namespace: "yes"}
current-context: kind-kind
"#;

fn value(path: &Path) -> Value {
    read(path).unwrap().unwrap()
}

#[tokio::test]
async fn a_login_makes_a_context_that_goes_with_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, OTHER).unwrap();
    let before = read(&path).unwrap().unwrap();
    let merged = merge(&path, NAME, &access("A"), None).await.unwrap();
    let login = Access { user: json!({"token": "sha256~t"}), ..access("A") };
    let merged = merge(&path, "picoshift/user1", &login, Some(&merged)).await.unwrap();
    let config = read(&path).unwrap().unwrap();
    assert_eq!(config["current-context"], "picoshift/user1");
    let context =
        config["contexts"].as_array().unwrap().iter().find(|entry| entry["name"] == "picoshift/user1");
    assert_eq!(context.unwrap()["context"], json!({"cluster": "picoshift", "user": "picoshift/user1"}));
    assert_eq!(merged.previous_context.as_deref(), before["current-context"].as_str());
    assert!(remove(&merged, &login.cluster).await.unwrap());
    assert_eq!(read(&path).unwrap().unwrap(), before);
}

#[tokio::test]
async fn another_file_is_as_before_after_down() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, OTHER).unwrap();
    let before = value(&path);
    let merged = merge(&path, NAME, &access("A"), None).await.unwrap();
    assert_eq!(value(&path)["current-context"], "picoshift");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = merge(&path, NAME, &access("A"), Some(&merged)).await.unwrap();
    assert_eq!(again, merged);
    assert!(remove(&again, &access("A").cluster).await.unwrap());
    assert_eq!(value(&path), before);
    assert!(!remove(&again, &access("A").cluster).await.unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no lock and no temporary file is left");
}

#[tokio::test]
async fn a_file_that_was_not_there_goes_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/config");
    let merged = merge(&path, NAME, &access("A"), None).await.unwrap();
    let again = merge(&path, NAME, &access("A"), Some(&merged)).await.unwrap();
    assert!(remove(&again, &access("A").cluster).await.unwrap());
    assert!(!path.exists());
}

#[tokio::test]
async fn an_unparsable_file_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    for text in ["clusters: [", "- a\n- b\n", "clusters: 3\n", "a: 1\n---\nb: 2\n", "just words\n"] {
        fs::write(&path, text).unwrap();
        let err = merge(&path, NAME, &access("A"), None).await.unwrap_err();
        assert!(err.downcast_ref::<Failure>().is_some(), "{err:#}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn the_entry_of_another_control_plane_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let first = merge(&path, NAME, &access("A"), None).await.unwrap();
    merge(&path, NAME, &access("B"), None).await.unwrap();
    assert!(!remove(&first, &access("A").cluster).await.unwrap());
    assert_eq!(value(&path)["current-context"], "picoshift");
}

#[tokio::test]
async fn the_users_choices_meanwhile_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(&path, OTHER).unwrap();
    let merged = merge(&path, NAME, &access("A"), None).await.unwrap();
    let mut config = value(&path);
    config["contexts"][1]["context"]["namespace"] = json!("mine");
    config["contexts"].as_array_mut().unwrap().push(json!({"name": "third", "context": {}}));
    config["current-context"] = json!("third");
    fs::write(&path, yaml::emit(&config)).unwrap();
    let merged = merge(&path, NAME, &access("A"), Some(&merged)).await.unwrap();
    assert_eq!(value(&path)["contexts"][1]["context"]["namespace"], "mine");
    remove(&merged, &access("A").cluster).await.unwrap();
    assert_eq!(value(&path)["current-context"], "third");
}

#[tokio::test]
async fn a_symbolic_link_stays_one() {
    let dir = tempfile::tempdir().unwrap();
    let (link, target) = (dir.path().join("config"), dir.path().join("real"));
    fs::write(&target, OTHER).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    merge(&link, NAME, &access("A"), None).await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(value(&target)["current-context"], "picoshift");
}

#[tokio::test(start_paused = true)]
async fn another_programs_lock_is_respected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(dir.path().join("config.lock"), "").unwrap();
    let err = merge(&path, NAME, &access("A"), None).await.unwrap_err();
    assert!(err.to_string().contains("config.lock"));
    assert!(dir.path().join("config.lock").exists() && !path.exists());
}

fn named(key: &'static str) -> impl Strategy<Value = Value> {
    ("[a-z]{1,6}", "\\PC{0,10}", any::<i32>()).prop_map(move |(name, text, number)| {
        json!({"name": format!("x-{name}"), key: {"server": text, "unknown": {"n": number, "list": [text, null, true]}}})
    })
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        clusters in prop::collection::vec(named("cluster"), 0..4),
        users in prop::collection::vec(named("user"), 0..4),
        contexts in prop::collection::vec(named("context"), 1..4),
        extra in "\\PC{0,10}",
    ) {
        let before = json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {}, "extensions": [extra],
            "clusters": clusters, "users": users, "contexts": contexts, "current-context": contexts[0]["name"],
        });
        let mut config = before.clone();
        let previous = insert(&mut config, NAME, &access("A")).unwrap();
        let mut config: Value = serde_saphyr::from_str(&yaml::emit(&config)).unwrap();
        prop_assert!(take_out(&mut config, &access("A").cluster, previous.as_deref()));
        prop_assert_eq!(config, before);
    }
}
