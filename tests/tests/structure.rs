//! The shape of the code: file sizes, names, module headers and the direction of dependencies (CONTRIBUTING.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// From here on a product file earns a warning.
const WARN_LINES: usize = 300;
/// A product file may not be longer.
const MAX_LINES: usize = 500;
/// A file may not be longer with the tests inside, or when it is all tests.
const MAX_LINES_WITH_TESTS: usize = 800;
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 4] = ["common", "helpers", "misc", "utils"];

/// Which crates of this workspace each one may use. A crate that is not listed fails the test: say where it belongs.
const ARROWS: [(&str, &[&str]); 8] = [
    ("picoshift-machinery", &[]),
    ("picoshift-structured-merge", &["picoshift-machinery"]),
    ("picoshift-scc-engine", &["picoshift-machinery"]),
    ("picoshift-apiserver", &["picoshift-machinery", "picoshift-scc-engine", "picoshift-structured-merge"]),
    ("picoshift-shim", &["picoshift-machinery"]),
    ("picoshift-controllers", &["picoshift-machinery", "picoshift-scc-engine"]),
    ("picoshift", &["picoshift-machinery", "picoshift-scc-engine"]),
    ("picoshift-tests", &[]),
];
/// Further crates that only the tests of a crate may use.
const TEST_ARROWS: [(&str, &[&str]); 1] = [("picoshift-controllers", &["picoshift-apiserver"])];

fn workspace() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies nowhere")
}

/// What cargo knows of the workspace.
fn metadata() -> anyhow::Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace()?)
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Every Rust file of every crate.
fn sources() -> anyhow::Result<Vec<PathBuf>> {
    let metadata = metadata()?;
    let mut folders = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        folders.extend(manifest.parent().map(Path::to_owned));
    }
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no source file was found");
    Ok(files)
}

/// Whether the file, named from the top of the repository, holds nothing but tests.
fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.iter().any(|part| part == "tests")
}

/// Lines before the first inline test module, and all lines.
fn lengths(text: &str) -> (usize, usize) {
    let all = text.lines().count();
    let product = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    (product, all)
}

fn fail_if_any(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn files_stay_small() -> anyhow::Result<()> {
    let mut too_long = Vec::new();
    for path in sources()? {
        let (product, all) = lengths(&fs::read_to_string(&path)?);
        let test = is_test(path.strip_prefix(workspace()?)?);
        if all > MAX_LINES_WITH_TESTS || (!test && product > MAX_LINES) {
            too_long.push(format!("{}: {product} lines, {all} with tests", path.display()));
        } else if !test && product > WARN_LINES {
            println!("warning: {}: {product} lines, aim at {WARN_LINES}", path.display());
        }
    }
    fail_if_any("files that are too long", &too_long);
    Ok(())
}

#[test]
fn files_say_what_they_are_for() -> anyhow::Result<()> {
    let mut silent = Vec::new();
    for path in sources()? {
        if !fs::read_to_string(&path)?.starts_with("//!") {
            silent.push(path.display().to_string());
        }
    }
    fail_if_any("files that do not open with //!", &silent);
    Ok(())
}

#[test]
fn names_say_what_is_inside() -> anyhow::Result<()> {
    let mut bad = Vec::new();
    for path in sources()? {
        let inside = path.strip_prefix(workspace()?)?;
        let names: Vec<_> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let empty = |name: &String| EMPTY_NAMES.contains(&name.trim_end_matches(".rs"));
        if names.iter().any(empty) || names.last().is_some_and(|name| name == "mod.rs") {
            bad.push(inside.display().to_string());
        }
    }
    fail_if_any("mod.rs, or names that say nothing", &bad);
    Ok(())
}

#[test]
fn dependencies_point_one_way() -> anyhow::Result<()> {
    let (allowed, for_tests) = (BTreeMap::from(ARROWS), BTreeMap::from(TEST_ARROWS));
    let metadata = metadata()?;
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(may) = allowed.get(name) else {
            wrong.push(format!("{name} has no place among the arrows"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            let test_only = dependency["kind"] == "dev";
            let fine = may.contains(&target)
                || (test_only && for_tests.get(name).is_some_and(|more| more.contains(&target)));
            if ours.contains(&target) && !fine {
                wrong.push(format!("{name} → {target}"));
            }
        }
    }
    fail_if_any("dependencies that point the wrong way", &wrong);
    Ok(())
}

/// The other way round is tested where the targets are.
#[test]
fn every_corpus_has_a_target() -> anyhow::Result<()> {
    let mut targets = String::new();
    for path in sources()?.iter().filter(|path| path.ends_with("src/untrusted.rs")) {
        targets.push_str(&fs::read_to_string(path)?);
    }
    let mut lonely = Vec::new();
    for folder in fs::read_dir(workspace()?.join("fuzz/corpus"))? {
        let name = folder?.file_name().to_string_lossy().into_owned();
        if !targets.contains(&format!("(\"{name}\", ")) {
            lonely.push(name);
        }
    }
    fail_if_any("corpora without a target", &lonely);
    Ok(())
}

#[test]
fn lengths_leave_inline_tests_out() {
    assert_eq!(lengths("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), (2, 5));
    assert_eq!(lengths("a\n    #[cfg(test)]\nb\n"), (3, 3));
}
