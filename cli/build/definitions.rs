//! The definitions: read, cleaned of what a server fills in, and marked as ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::modules::{Module, Sources};

/// Feature sets that a cluster has not by default.
const OTHER_FEATURE_SETS: [&str; 3] =
    ["-CustomNoUpgrade.", "-DevPreviewNoUpgrade.", "-TechPreviewNoUpgrade."];

/// The annotation that says where a definition was taken from.
const SOURCE: &str = "picoshift.io/source";

/// The field of a schema of ours that stands for a part of a module's definition.
const TAKE: &str = "x-picoshift-take";

/// Which part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    module: String,
    file: PathBuf,
    pointer: String,
}

/// A definition and where it comes from.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) from: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) object: Value,
}

/// Reads what `sources.yaml` says.
pub(crate) fn sources(folder: &Path) -> Result<Sources> {
    let path = folder.join("sources.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// All of them: those of the modules, then our own, by name.
pub(crate) fn all(folder: &Path, sources: &Sources) -> Result<Vec<Definition>> {
    let mut definitions = Vec::new();
    for module in &sources.modules {
        definitions.extend(of_module(module).with_context(|| module.name())?);
    }
    for file in files(folder)?.iter().filter(|file| !file.ends_with("sources.yaml")) {
        for (name, mut object) in read(file)? {
            complete(&mut object, sources).with_context(|| format!("{}", file.display()))?;
            definitions.push(Definition { name, from: None, until: None, object });
        }
    }
    definitions.sort_by(|one, other| (&one.name, &one.from).cmp(&(&other.name, &other.from)));
    for pair in definitions.windows(2) {
        let apart = pair[0].until.is_some() && pair[0].until < pair[1].from;
        ensure!(pair[0].name != pair[1].name || apart, "{} is defined twice", pair[0].name);
    }
    Ok(definitions)
}

/// Puts in, where a definition of ours says so, the part of a module's that it names.
fn complete(value: &mut Value, sources: &Sources) -> Result<()> {
    if value.get(TAKE).is_some() {
        let take: Take = serde_json::from_value(value[TAKE].take()).context(TAKE)?;
        let module = sources.modules.iter().find(|module| module.module == take.module);
        let folder = module.with_context(|| format!("{} is not pinned", take.module))?.folder()?;
        let (_, object) = read(&folder.join(&take.file))?.pop().context("the file has no definition")?;
        let part = object.pointer(&take.pointer).with_context(|| format!("there is no {}", take.pointer))?;
        *value = part.clone();
        return Ok(());
    }
    match value {
        Value::Object(fields) => fields.values_mut().try_for_each(|field| complete(field, sources)),
        Value::Array(items) => items.iter_mut().try_for_each(|item| complete(item, sources)),
        _ => Ok(()),
    }
}

fn of_module(module: &Module) -> Result<Vec<Definition>> {
    let folder = module.folder()?;
    let mut found = BTreeMap::new();
    for path in &module.paths {
        let path = folder.join(path);
        for file in if path.is_dir() { files(&path)? } else { vec![path] } {
            for (name, mut object) in read(&file)? {
                object["metadata"]["annotations"][SOURCE] = json!(module.name());
                ensure!(found.insert(name.clone(), object).is_none(), "{name} is there twice");
            }
        }
    }
    let named: BTreeSet<&String> = module.except.iter().chain(module.from_of.keys()).collect();
    for name in named {
        ensure!(found.contains_key(name), "there is no {name}");
    }
    found.retain(|name, _| !module.except.contains(name));
    let definitions = found.into_iter().map(|(name, object)| Definition {
        from: module.from_of.get(&name).or(module.from.as_ref()).cloned(),
        until: module.until.clone(),
        name,
        object,
    });
    Ok(definitions.collect())
}

/// The YAML files of a folder, by name, without those of other feature sets.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".yaml") && !OTHER_FEATURE_SETS.iter().any(|set| name.contains(set)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The definitions in a file, by name.
fn read(file: &Path) -> Result<Vec<(String, Value)>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("reading {}", file.display()))?;
    let mut found = Vec::new();
    for mut object in documents {
        if object["kind"] != "CustomResourceDefinition" {
            continue;
        }
        let name = object["metadata"]["name"].as_str().context("a definition has no name")?.to_owned();
        clean(&mut object);
        found.push((name, object));
    }
    Ok(found)
}

/// Takes out what generators leave behind and a server fills in, and marks it as ours.
fn clean(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("creationTimestamp");
    }
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("picoshift");
}
