//! Real processes, really killed: what they said was written is there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::path_in;
use crate::store::embedded::{Embedded, Options};
use crate::store::engine_suite::write;
use crate::store::{Engine, Expect, Revision};

const FILE: &str = "PICOSHIFT_TEST_STORE";
const ACKNOWLEDGED: &str = "acknowledged ";

/// The process that is killed, when `killed_at_any_moment` starts it; otherwise there is nothing to do. Writes until
/// then, and says each time what is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let options = Options { keep_changes: 200, ..Options::default() };
    let engine = Embedded::open(Path::new(&path), options).unwrap();
    println!("{ACKNOWLEDGED}{}", engine.revision());
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let engine = engine.clone();
        tasks.spawn(async move {
            let key = format!("k/{writer}");
            let mut at = engine.get(&key).unwrap().map(|record| record.revision);
            loop {
                let value = format!("{writer} {}", "x".repeat(300));
                let pending =
                    engine.submit(write(&key, at.map_or(Expect::Absent, Expect::At), Some(&value))).unwrap();
                at = Some(pending.revision);
                pending.done.await.unwrap();
                println!("{ACKNOWLEDGED}{} {key}", pending.revision);
            }
        });
    }
    tasks.join_next().await;
}

/// Runs the child for a while, kills it, and returns the last acknowledged revision of each key.
fn run_and_kill(path: &Path, lines: usize) -> (Revision, BTreeMap<String, Revision>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::embedded::tests::kill::child", "--nocapture", "--test-threads=1"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut newest = 0;
    let mut keys = BTreeMap::new();
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The harness writes its own words before the first line.
        if let Some((_, rest)) = line.split_once(ACKNOWLEDGED) {
            let mut words = rest.split(' ');
            let Some(revision) = words.next().and_then(|word| word.parse::<Revision>().ok()) else {
                continue;
            };
            newest = newest.max(revision);
            if let Some(key) = words.next().filter(|key| key.len() == 3) {
                keys.insert(key.to_owned(), revision);
            }
            count += 1;
            if count == lines {
                // Somewhere in the middle of a commit.
                std::thread::sleep(Duration::from_micros(lines as u64 * 97 % 1500));
                child.kill().unwrap();
            }
        }
    }
    child.wait().unwrap();
    assert!(count >= lines, "the child ended by itself after {count} lines");
    (newest, keys)
}

#[test]
fn killed_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let mut before = 0;
    for lines in [1, 2, 40, 3, 200, 77, 500, 9] {
        let (newest, keys) = run_and_kill(&path, lines);
        assert!(newest >= before, "the child found {newest}, {before} was there");
        let engine = Embedded::open(&path, Options::default()).unwrap();
        assert!(engine.revision() >= newest, "{newest} was acknowledged, {} is there", engine.revision());
        for (key, revision) in keys {
            let record = engine.get(&key).unwrap().unwrap();
            assert!(
                record.revision >= revision,
                "{key}: {revision} was acknowledged, {} is there",
                record.revision
            );
            assert_eq!(record.value.len(), 302);
        }
        before = engine.revision();
    }
}
