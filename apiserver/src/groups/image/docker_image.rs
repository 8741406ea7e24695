//! `dockerImageMetadata`: what an image says about itself, decoded and encoded as the Go types do
//! (`openshift/api/image/docker10`): unknown fields go, empty ones too.

use jiff::Timestamp;
use picoshift_machinery::Object;
use serde_json::{Map, Value, json};

/// The version that is meant where none is given.
pub const VERSION: &str = "1.0";
/// The oldest version, whose metadata is kept as it is.
const OLDEST_VERSION: &str = "pre012";

/// Form of a field.
#[derive(Clone, Copy)]
enum Form {
    Bool,
    Config,
    Int,
    /// An object whose members are empty objects.
    Set,
    Text,
    TextMap,
    Texts,
    Time,
}

/// Fields of the image; the flag says whether an empty one is left out.
const IMAGE: [(&str, Form, bool); 11] = [
    ("Id", Form::Text, false),
    ("Parent", Form::Text, true),
    ("Comment", Form::Text, true),
    ("Created", Form::Time, false),
    ("Container", Form::Text, true),
    ("ContainerConfig", Form::Config, false),
    ("DockerVersion", Form::Text, true),
    ("Author", Form::Text, true),
    ("Config", Form::Config, true),
    ("Architecture", Form::Text, true),
    ("Size", Form::Int, true),
];

/// Fields of its configuration.
const CONFIG: [(&str, Form); 27] = [
    ("Hostname", Form::Text),
    ("Domainname", Form::Text),
    ("User", Form::Text),
    ("Memory", Form::Int),
    ("MemorySwap", Form::Int),
    ("CpuShares", Form::Int),
    ("Cpuset", Form::Text),
    ("AttachStdin", Form::Bool),
    ("AttachStdout", Form::Bool),
    ("AttachStderr", Form::Bool),
    ("PortSpecs", Form::Texts),
    ("ExposedPorts", Form::Set),
    ("Tty", Form::Bool),
    ("OpenStdin", Form::Bool),
    ("StdinOnce", Form::Bool),
    ("Env", Form::Texts),
    ("Cmd", Form::Texts),
    ("Dns", Form::Texts),
    ("Image", Form::Text),
    ("Volumes", Form::Set),
    ("VolumesFrom", Form::Text),
    ("WorkingDir", Form::Text),
    ("Entrypoint", Form::Texts),
    ("NetworkDisabled", Form::Bool),
    ("SecurityOpts", Form::Texts),
    ("OnBuild", Form::Texts),
    ("Labels", Form::TextMap),
];

/// Makes an image's metadata and its version what the Go types encode.
///
/// # Errors
/// What is wrong with the metadata, as Go says it; the image is unchanged then.
pub fn complete(image: &mut Object) -> Result<(), String> {
    let version = match image.str_at(&["dockerImageMetadataVersion"]) {
        "" => VERSION.to_owned(),
        given => given.to_owned(),
    };
    let raw = image.0.get("dockerImageMetadata").filter(|raw| !raw.is_null());
    let metadata = match (version.as_str(), raw) {
        (VERSION, raw) => decode(raw.unwrap_or(&json!({})))?,
        (OLDEST_VERSION, raw) => {
            let mut kept = raw.and_then(Value::as_object).cloned().unwrap_or_default();
            kept.insert("kind".to_owned(), json!("DockerImage"));
            kept.insert("apiVersion".to_owned(), json!("image.openshift.io/pre012"));
            kept
        }
        (other, _) => {
            return Err(format!(
                "no kind \"DockerImage\" is registered for version \"image.openshift.io/{other}\""
            ));
        }
    };
    image.0.insert("dockerImageMetadata".to_owned(), metadata.into());
    image.0.insert("dockerImageMetadataVersion".to_owned(), version.into());
    Ok(())
}

/// The metadata of an image configuration, as registries keep it: schema 2 and OCI, or the newest entry of a
/// schema 1 history, which has the same fields.
///
/// # Errors
/// What is wrong with it.
pub fn from_config(config: &str) -> Result<Map<String, Value>, String> {
    let config: Map<String, Value> = serde_json::from_str(config).map_err(|error| error.to_string())?;
    let names = [
        ("id", "Id"),
        ("parent", "Parent"),
        ("comment", "Comment"),
        ("created", "Created"),
        ("container", "Container"),
        ("container_config", "ContainerConfig"),
        ("docker_version", "DockerVersion"),
        ("author", "Author"),
        ("config", "Config"),
        ("architecture", "Architecture"),
        ("size", "Size"),
    ];
    let named: Map<String, Value> =
        names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), config.get(*from)?.clone()))).collect();
    decode(&named.into())
}

fn decode(raw: &Value) -> Result<Map<String, Value>, String> {
    let Value::Object(raw) = raw else {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type docker10.DockerImage",
            go_kind(raw)
        ));
    };
    let mut out = Map::new();
    for (name, form, omit) in IMAGE {
        let found = raw.get(name).filter(|value| !value.is_null());
        let value = match (found, form) {
            (Some(value), Form::Config) => config(value)?,
            (Some(value), form) => {
                checked(value, form).ok_or_else(|| mismatch("DockerImage", name, value, form))?
            }
            (None, _) if omit => continue,
            (None, Form::Text) => json!(""),
            (None, Form::Config) => json!({}),
            (None, _) => Value::Null,
        };
        if !(omit && !matches!(form, Form::Config) && is_empty(&value)) {
            out.insert(name.to_owned(), value);
        }
    }
    out.insert("kind".to_owned(), json!("DockerImage"));
    out.insert("apiVersion".to_owned(), json!("image.openshift.io/1.0"));
    Ok(out)
}

fn config(value: &Value) -> Result<Value, String> {
    let Value::Object(raw) = value else {
        return Err(mismatch("DockerImage", "Config", value, Form::Config));
    };
    let mut out = Map::new();
    for (name, form) in CONFIG {
        let Some(value) = raw.get(name).filter(|value| !value.is_null()) else { continue };
        let value = checked(value, form).ok_or_else(|| mismatch("DockerConfig", name, value, form))?;
        if !is_empty(&value) {
            out.insert(name.to_owned(), value);
        }
    }
    Ok(out.into())
}

/// The value as Go has it after decoding; `None` for a wrong type.
fn checked(value: &Value, form: Form) -> Option<Value> {
    match form {
        Form::Bool => value.is_boolean().then(|| value.clone()),
        Form::Int => value.as_i64().map(Value::from),
        Form::Text => value.is_string().then(|| value.clone()),
        Form::Texts => {
            let texts: Option<Vec<&str>> = value
                .as_array()?
                .iter()
                .map(|text| if text.is_null() { Some("") } else { text.as_str() })
                .collect();
            Some(texts?.into())
        }
        Form::TextMap => value.as_object()?.values().all(Value::is_string).then(|| value.clone()),
        Form::Set => Some(value.as_object()?.keys().map(|key| (key.clone(), json!({}))).collect()),
        Form::Time => {
            let time: Timestamp = value.as_str()?.parse().ok()?;
            let shown = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            // The year 1 is Go's way to say that there is no time.
            Some(if shown == "0001-01-01T00:00:00Z" { Value::Null } else { shown.into() })
        }
        Form::Config => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null => true,
    }
}

fn mismatch(structure: &str, field: &str, value: &Value, form: Form) -> String {
    let wanted = match form {
        Form::Bool => "bool",
        Form::Config => "docker10.DockerConfig",
        Form::Int => "int64",
        Form::Set => "map[string]struct {}",
        Form::Text => "string",
        Form::TextMap => "map[string]string",
        Form::Texts => "[]string",
        Form::Time => "time.Time",
    };
    format!(
        "json: cannot unmarshal {} into Go struct field {structure}.{field} of type {wanted}",
        go_kind(value)
    )
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn image(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn metadata_gets_the_defaults_that_were_recorded() {
        let mut bare = image(json!({}));
        complete(&mut bare).unwrap();
        assert_eq!(
            Value::Object(bare.0),
            json!({
                "dockerImageMetadata": {"kind": "DockerImage", "apiVersion": "image.openshift.io/1.0", "Id": "",
                    "Created": null, "ContainerConfig": {}},
                "dockerImageMetadataVersion": "1.0",
            })
        );
        let mut given = image(json!({"dockerImageMetadata": {
            "Architecture": "amd64", "Config": {"Cmd": ["/bin/sh"], "Env": ["A=b"], "Tty": false, "x": 1},
            "Created": "2020-01-02T03:04:05.678+01:00", "Size": 0, "Unknown": true,
        }}));
        complete(&mut given).unwrap();
        assert_eq!(
            given.0["dockerImageMetadata"],
            json!({"kind": "DockerImage", "apiVersion": "image.openshift.io/1.0", "Id": "",
                "Created": "2020-01-02T02:04:05Z", "ContainerConfig": {}, "Architecture": "amd64",
                "Config": {"Cmd": ["/bin/sh"], "Env": ["A=b"]}})
        );
        let once = given.clone();
        complete(&mut given).unwrap();
        assert_eq!(given, once);
    }

    #[test]
    fn what_go_cannot_decode_is_refused() {
        let refuse = |metadata: Value, version: &str| {
            let mut image =
                image(json!({"dockerImageMetadata": metadata, "dockerImageMetadataVersion": version}));
            complete(&mut image).unwrap_err()
        };
        assert_eq!(
            refuse(json!({"Architecture": 7}), "1.0"),
            "json: cannot unmarshal number into Go struct field DockerImage.Architecture of type string"
        );
        assert_eq!(
            refuse(json!({"Config": {"Env": "A"}}), ""),
            "json: cannot unmarshal string into Go struct field DockerConfig.Env of type []string"
        );
        assert!(refuse(json!({}), "9.9").starts_with("no kind \"DockerImage\" is registered"));
    }

    proptest! {
        #[test]
        fn no_configuration_panics(text in "\\PC{0,60}", created in "[0-9TZ:+.-]{0,30}") {
            let _ = from_config(&text);
            let _ = from_config(&json!({"created": created, "config": {"Env": [text]}}).to_string());
        }
    }
}
