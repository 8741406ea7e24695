//! What an SCC gets when it is written.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::provider::VOLUME_KINDS;

/// Fills in what an SCC leaves open, and makes `volumes` agree with `allowHostDirVolumePlugin`, which wins.
pub fn complete(scc: &mut Map<String, Value>) {
    for field in ["fsGroup", "supplementalGroups"] {
        let strategy = scc.entry(field).or_insert(Value::Null);
        if strategy.is_null() {
            *strategy = json!({});
        }
        if let Some(strategy) = strategy.as_object_mut()
            && strategy.get("type").is_none_or(|kind| kind.is_null() || kind == "")
        {
            strategy.insert("type".to_owned(), json!("RunAsAny"));
        }
    }
    for (field, default) in
        [("users", json!([])), ("groups", json!([])), ("allowPrivilegeEscalation", json!(true))]
    {
        let value = scc.entry(field).or_insert(Value::Null);
        if value.is_null() {
            *value = default;
        }
    }
    let host_paths = scc.get("allowHostDirVolumePlugin") == Some(&Value::Bool(true));
    let volumes = scc.entry("volumes").or_insert(Value::Null);
    if let Some(all) = listed(volumes) {
        *volumes = json!(agreeing(all, host_paths));
    }
}

/// The kinds of volumes that are listed; `None` where the list is none of texts, which validation will say.
fn listed(volumes: &Value) -> Option<Option<BTreeSet<&str>>> {
    if volumes.is_null() {
        return Some(None);
    }
    volumes.as_array()?.iter().map(Value::as_str).collect::<Option<_>>().map(Some)
}

fn agreeing(listed: Option<BTreeSet<&str>>, host_paths: bool) -> BTreeSet<&str> {
    let mut volumes = match listed {
        // Before there was the list, all were allowed.
        None => BTreeSet::from(["*"]),
        Some(none) if none.is_empty() => BTreeSet::from([if host_paths { "hostPath" } else { "none" }]),
        Some(some) => some,
    };
    if host_paths {
        if !volumes.contains("*") {
            volumes.insert("hostPath");
        }
    } else {
        let all = volumes.remove("*");
        volumes.remove("hostPath");
        if all {
            volumes.extend(VOLUME_KINDS.iter().map(|(_, kind)| *kind).filter(|kind| *kind != "hostPath"));
        }
    }
    volumes
}
