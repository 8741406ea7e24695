//! The embedded engine's tests: the suite of all engines, and what only a file can get wrong.

mod damage;
mod disk;
mod full_disk;
mod kill;
mod power_loss;
mod retention;

use std::path::PathBuf;
use std::sync::Arc;

use super::{Embedded, Options};
use crate::store::Engine;
use crate::store::engine_suite::engine_suite;

/// Opens the store of a temporary directory, which lives as long as the function.
fn opener() -> impl Fn() -> Arc<dyn Engine> {
    let directory = tempfile::tempdir().unwrap();
    move || -> Arc<dyn Engine> { Embedded::open(&path_in(&directory), Options::default()).unwrap() }
}

fn path_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("state/store.redb")
}

engine_suite!(opener());
