//! Server-side apply without a server: sets of field paths, schemas, typed values, who owns which field, and what an
//! update or an apply makes of it.
//!
//! In: objects as JSON, the schema of their kind, the `managedFields` that an object has. Out: the merged object and
//! the new `managedFields`, or the conflicts. Nothing here does I/O or reads a clock. Behaviour:
//! `sigs.k8s.io/structured-merge-diff/v6` and `k8s.io/apimachinery/pkg/util/managedfields`, which the fixtures in
//! `fixtures/` are recorded from.

mod conflict;
mod entries;
mod last_applied;
pub mod manager;
pub mod path;
#[cfg(test)]
mod recorded_tests;
pub mod schema;
pub mod set;
pub mod typed;
mod updater;
mod value;

pub use conflict::{Conflict, Conflicts};
pub use entries::validate;
pub use manager::{Applied, ApplyError, FieldManager, Request};
pub use schema::{Schema, SchemaError};
pub use set::FieldSet;
