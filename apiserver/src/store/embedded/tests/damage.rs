//! Files that are refused: they stay byte for byte what they were.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use redb::{Database, ReadableDatabase};

use super::disk::Disk;
use super::path_in;
use super::power_loss::empty;
use crate::store::embedded::disk::{FORMAT, META};
use crate::store::embedded::open::FIRST_REVISION;
use crate::store::embedded::{Embedded, Options, Refusal};
use crate::store::engine_suite::put;
use crate::store::{Engine, Expect, Record};

/// A store that was used and closed, and what it holds.
async fn closed_store() -> (Vec<u8>, Vec<Record>) {
    let disk = empty();
    let engine = Embedded::open_on(disk.backend(), Options::default()).unwrap();
    for number in 0..40 {
        put(&*engine, &format!("k/{number}"), Expect::Absent, Some(&"x".repeat(number * 20))).await;
    }
    put(&*engine, "k/1", Expect::At(FIRST_REVISION + 2), Some("changed")).await;
    let records = engine.list("", None).unwrap().records;
    engine.shutdown().unwrap();
    (disk.bytes(), records)
}

/// Opens an image: either it is refused and untouched, or all is there.
fn refused_or_whole(image: &[u8], records: &[Record], label: &str) -> bool {
    let disk = Disk::with(image.to_vec());
    match Embedded::open_on(disk.backend(), Options::default()) {
        Ok(engine) => {
            assert_eq!(engine.list("", None).unwrap().records, records, "{label}");
            assert_eq!(engine.revision(), FIRST_REVISION + 41, "{label}");
            false
        }
        Err(why) => {
            assert!(matches!(why, Refusal::Damaged(_)), "{label}: {why}");
            assert!(disk.bytes() == image, "{label}: refused, but written to");
            assert!(disk.events().is_empty(), "{label}: refused, but written to");
            true
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_is_refused_or_harmless() {
    let (image, records) = closed_store().await;
    let mut refused = 0;
    let header = 0..320;
    let body = (320..image.len()).step_by(image.len() / 200);
    for (count, at) in header.chain(body).enumerate() {
        let mut flipped = image.clone();
        flipped[at] ^= 1 << (count % 8);
        refused +=
            usize::from(refused_or_whole(&flipped, &records, &format!("bit {} of byte {at}", count % 8)));
    }
    assert!(refused > 50, "only {refused} flips were noticed");
}

#[tokio::test]
async fn every_bit_of_the_values_counts() {
    let (image, records) = closed_store().await;
    let value = image.windows(100).position(|window| window.iter().all(|byte| *byte == b'x')).unwrap();
    let mut flipped = image.clone();
    // Superseded copies of a page may lie about; all of them are flipped.
    let runs: Vec<usize> =
        (value..image.len() - 60).filter(|at| image[*at..at + 60].iter().all(|b| *b == b'x')).collect();
    for at in runs {
        flipped[at + 30] ^= 4;
    }
    assert!(refused_or_whole(&flipped, &records, "values"));
}

#[tokio::test]
async fn cut_and_foreign_files_are_refused() {
    let (image, records) = closed_store().await;
    for length in [0, 1, 100, 4096, 5000, image.len() / 2, image.len() - 4096, image.len() - 1] {
        assert!(refused_or_whole(&image[..length], &records, &format!("cut at {length}")));
    }
    for (label, foreign) in [
        ("text", b"apiVersion: v1\n".repeat(1000)),
        ("zeros", vec![0; 100_000]),
        ("extended", [image.as_slice(), &[0; 333]].concat()),
        ("zeroed middle", [&image[..8192], &vec![0; image.len() - 8192]].concat()),
    ] {
        assert!(refused_or_whole(&foreign, &records, label), "{label}");
    }
}

#[test]
fn files_are_refused_by_name_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    for content in [b"".as_slice(), b"not a store", &[0; 70_000]] {
        fs::write(&path, content).unwrap();
        let error = Embedded::open(&path, Options::default()).map(|_| ()).unwrap_err();
        assert!(matches!(error.why, Refusal::Damaged(_)), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    fs::remove_file(&path).unwrap();
    drop(Database::create(&path).unwrap());
    let other = fs::read(&path).unwrap();
    let error = Embedded::open(&path, Options::default()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("not a picoshift store"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), other, "another program's redb file");
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let engine = Embedded::open(&path, Options::default()).unwrap();
    put(&*engine, "k", Expect::Absent, Some("v")).await;
    drop(engine);
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(FORMAT, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let newer = fs::read(&path).unwrap();
    let error = Embedded::open(&path, Options::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error.why, Refusal::Newer { found: 2, supported: 1 }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), newer);
    assert!(Database::open(&path).unwrap().begin_read().is_ok(), "and its lock is free again");
}

#[tokio::test]
async fn one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let engine = Embedded::open(&path, Options::default()).unwrap();
    put(&*engine, "k", Expect::Absent, Some("v")).await;
    let error = Embedded::open(&path, Options::default()).map(|_| ()).unwrap_err();
    assert!(matches!(error.why, Refusal::Locked), "{error}");
    put(&*engine, "l", Expect::Absent, Some("v")).await;
    engine.shutdown().unwrap();
    assert!(engine.get("k").is_err(), "closed");
    let again = Embedded::open(&path, Options::default()).unwrap();
    assert_eq!(again.list("", None).unwrap().records.len(), 2);
}

#[test]
fn only_the_owner_may_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let engine = Embedded::open(&path, Options::default()).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    drop(engine);
    // What a creation that was cut left behind is in nobody's way.
    fs::remove_file(&path).unwrap();
    fs::write(path.with_file_name("store.redb.new"), b"half").unwrap();
    assert_eq!(Embedded::open(&path, Options::default()).unwrap().revision(), FIRST_REVISION);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}
