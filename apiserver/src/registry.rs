//! Resources that live in the store: the [`Strategy`] of each says what is its own, the registry does the rest.

pub mod chunk;
pub mod strategy;

pub use strategy::{Computed, Plan, Strategy};
