//! The credentials of a namespace, out of its pull secrets.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use picoshift_machinery::Object;
use serde_json::Value;

use crate::oci::Keyring;

/// The credentials in a list of secrets; a secret that cannot be read has none.
pub(super) fn keyring(secrets: &Object) -> Keyring {
    let mut keyring = Keyring::default();
    for secret in secrets.0.get("items").and_then(Value::as_array).into_iter().flatten() {
        let data = |key: &str| {
            let text = secret.get("data")?.get(key)?.as_str()?;
            BASE64_STANDARD.decode(text).ok()
        };
        let added = match secret.get("type").and_then(Value::as_str) {
            Some("kubernetes.io/dockerconfigjson") => {
                data(".dockerconfigjson").map(|bytes| keyring.add_config_json(&bytes))
            }
            Some("kubernetes.io/dockercfg") => data(".dockercfg").map(|bytes| keyring.add_config(&bytes)),
            _ => continue,
        };
        if !matches!(added, Some(Ok(()))) {
            let name =
                secret.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
            tracing::warn!(secret = name.unwrap_or_default(), "a pull secret cannot be read");
        }
    }
    keyring
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_types_of_secrets_are_read_and_broken_ones_left_out() {
        let secret = |kind: &str, key: &str, text: &str| json!({"metadata": {"name": "s"}, "type": kind, "data": {key: BASE64_STANDARD.encode(text)}});
        let user = |place: &str| format!(r#"{{"{place}":{{"username":"u","password":"p"}}}}"#);
        let list = Object::from_value(json!({"items": [
            secret("kubernetes.io/dockercfg", ".dockercfg", &user("a.io")),
            secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &format!(r#"{{"auths":{}}}"#, user("b.io"))),
            secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", "{"),
            secret("kubernetes.io/dockercfg", "other", &user("c.io")),
            secret("Opaque", ".dockercfg", &user("d.io")),
            {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "not base64"}},
        ]}))
        .unwrap();
        let keyring = keyring(&list);
        let found = ["a.io/x", "b.io/x", "c.io/x", "d.io/x"].map(|image| keyring.find(image).is_some());
        assert_eq!(found, [true, true, false, false]);
    }
}
