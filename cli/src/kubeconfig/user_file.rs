//! The user's own kubeconfig: our entry goes in and comes out again, and nothing else in it changes.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Access, NAME};
use crate::failure::Failure;
use crate::paths::write_atomically;
use crate::yaml;

/// How long we wait for another program that is changing the file.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What `up` did to the file, so that `down` can take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Merged {
    /// The file.
    pub(crate) path: PathBuf,
    /// The context that was current before.
    previous_context: Option<String>,
    /// Whether there was no file.
    created: bool,
}

/// The file that kubectl writes to: the first entry of `KUBECONFIG`, or `~/.kube/config`.
pub(crate) fn default_path() -> Option<PathBuf> {
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&list)
        .find(|path| !path.as_os_str().is_empty())
        .and_then(|path| std::path::absolute(path).ok())
        .or_else(|| Some(std::env::home_dir()?.join(".kube/config")))
}

/// Puts our cluster in, and a user and a context called `name`, and makes that current. `before` is what the last merge said.
pub(crate) async fn merge(
    path: &Path,
    name: &str,
    access: &Access,
    before: Option<&Merged>,
) -> Result<Merged> {
    let file = Locked::open(path).await?;
    let mut merged = Merged { path: path.to_owned(), previous_context: None, created: file.config.is_none() };
    let mut config = file.config.clone().unwrap_or_else(|| json!({"apiVersion": "v1", "kind": "Config"}));
    merged.previous_context = insert(&mut config, name, access).map_err(|what| unusable(path, what))?;
    if let Some(before) = before.filter(|before| before.path == path) {
        merged.created = before.created;
        if merged.previous_context.as_deref().is_some_and(is_ours) {
            merged.previous_context.clone_from(&before.previous_context);
        }
    }
    merged.previous_context = merged.previous_context.filter(|name| !is_ours(name) && !name.is_empty());
    file.replace(&config)?;
    Ok(merged)
}

/// Takes our entry out, if it is still the one of this control plane (`cluster` is its `cluster` content).
/// Says whether it was there.
pub(crate) async fn remove(merged: &Merged, cluster: &Value) -> Result<bool> {
    if !merged.path.exists() {
        return Ok(false);
    }
    let file = Locked::open(&merged.path).await?;
    let Some(mut config) = file.config.clone() else {
        return Ok(false);
    };
    if !take_out(&mut config, cluster, merged.previous_context.as_deref()) {
        return Ok(false);
    }
    if merged.created && is_empty(&config) {
        fs::remove_file(&file.path).with_context(|| format!("cannot remove {}", file.path.display()))?;
    } else {
        file.replace(&config)?;
    }
    Ok(true)
}

fn unusable(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::new(
        format!("{} is not a kubeconfig that can be changed: {what}; it was left as it is", path.display()),
        "repair it, name another file by KUBECONFIG, or use --no-kubeconfig",
    )
}

/// The lists of a kubeconfig, and what the content of their entries is called.
const LISTS: [(&str, &str); 3] = [("clusters", "cluster"), ("users", "user"), ("contexts", "context")];

/// Whether an entry is one of ours: the administrator's, or that of a login, `picoshift/USER`.
fn is_ours(name: &str) -> bool {
    name.strip_prefix(NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Puts our entries in; returns the context that was current.
fn insert(config: &mut Value, name: &str, access: &Access) -> Result<Option<String>, String> {
    let config = config.as_object_mut().ok_or("it is no map")?;
    for (list, content_key) in LISTS {
        let (name, content) = match list {
            "clusters" => (NAME, access.cluster.clone()),
            "users" => (name, access.user.clone()),
            _ => (name, json!({"cluster": NAME, "user": name})),
        };
        let entries = config.entry(list).or_insert(Value::Null);
        if entries.is_null() {
            *entries = json!([]);
        }
        let entries = entries.as_array_mut().ok_or_else(|| format!("{list} is no list"))?;
        match entries.iter_mut().find(|entry| entry["name"] == name) {
            // A namespace that the user set in our context stays.
            Some(entry) if list == "contexts" && entry[content_key].is_object() => {
                entry[content_key]["cluster"] = json!(NAME);
                entry[content_key]["user"] = json!(name);
            }
            Some(entry) => *entry = json!({"name": name, content_key: content}),
            None => entries.push(json!({"name": name, content_key: content})),
        }
    }
    let previous = config.insert("current-context".to_owned(), json!(name));
    Ok(previous.and_then(|name| name.as_str().map(str::to_owned)))
}

/// Takes our entries out, unless they lead to another control plane.
fn take_out(config: &mut Value, cluster: &Value, previous: Option<&str>) -> bool {
    const AUTHORITY: &str = "certificate-authority-data";
    let is_list = |list: &Value| {
        list.as_array().is_some_and(|entries| entries.iter().any(|entry| entry["name"] == NAME))
    };
    let ours = |entry: &Value| entry["name"] == NAME && entry["cluster"][AUTHORITY] == cluster[AUTHORITY];
    if !is_list(&config["clusters"])
        || !config["clusters"].as_array().is_some_and(|list| list.iter().any(ours))
    {
        return false;
    }
    for (list, _) in LISTS {
        if let Some(entries) = config[list].as_array_mut() {
            entries.retain(|entry| !entry["name"].as_str().is_some_and(is_ours));
        }
    }
    if config["current-context"].as_str().is_some_and(is_ours) {
        let contexts = config["contexts"].as_array();
        let still_there =
            |name: &&str| contexts.is_some_and(|list| list.iter().any(|entry| entry["name"] == **name));
        config["current-context"] = json!(previous.filter(still_there).unwrap_or_default());
    }
    true
}

fn is_empty(config: &Value) -> bool {
    let known = |key: &str| {
        matches!(key, "apiVersion" | "kind" | "current-context" | "clusters" | "users" | "contexts")
    };
    let lists_empty = LISTS.iter().all(|(list, _)| config[*list].as_array().is_none_or(Vec::is_empty));
    lists_empty && config.as_object().is_some_and(|map: &Map<String, Value>| map.keys().all(|key| known(key)))
}

/// The file, while no other well-behaved program (kubectl, kind) changes it.
struct Locked {
    /// Where it really is, after symbolic links.
    path: PathBuf,
    config: Option<Value>,
    lock: PathBuf,
}

impl Locked {
    async fn open(path: &Path) -> Result<Self> {
        if let Some(dir) = path.parent() {
            crate::paths::create_private_dir(dir)?;
        }
        // As client-go does: beside the name that was given, not beside what it links to.
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        take_lock(&lock).await?;
        let mut locked = Self { path: resolve(path), config: None, lock };
        locked.config = read(&locked.path).map_err(|err| unusable(path, format!("{err:#}")))?;
        Ok(locked)
    }

    fn replace(&self, config: &Value) -> Result<()> {
        if self.config.as_ref() == Some(config) {
            return Ok(());
        }
        write_atomically(&self.path, yaml::emit(config).as_bytes(), 0o600)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock);
    }
}

/// What a symbolic link leads to, also if nothing is there yet.
fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => break,
        }
    }
    path
}

fn read(path: &Path) -> Result<Option<Value>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err.into()),
    };
    let mut documents = yaml::documents(&text)?;
    match documents.len() {
        0 => Ok(None),
        1 => Ok(documents.pop()),
        several => anyhow::bail!("it has {several} documents"),
    }
}

async fn take_lock(lock: &Path) -> Result<()> {
    let deadline = tokio::time::Instant::now() + LOCK_WAIT;
    loop {
        match OpenOptions::new().write(true).create_new(true).open(lock) {
            Ok(_) => return Ok(()),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
            Err(err) => return Err(err).with_context(|| format!("cannot create {}", lock.display())),
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Failure::new(
                format!("another program is changing the kubeconfig: {} exists", lock.display()),
                "if no kubectl or kind is running, remove that file; or use --no-kubeconfig",
            )
            .into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests;
